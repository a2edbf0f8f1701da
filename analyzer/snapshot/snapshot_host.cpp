#include "analyzer/snapshot/snapshot_host.h"

#include <map>
#include <span>

namespace fragtrace::analyzer {
namespace {

EventRecord host_event(EventKind kind,
                       std::uint64_t address,
                       std::uint64_t size_bytes,
                       std::uint32_t stack) {
    EventRecord event = {};
    event.kind = kind;
    event.address = address;
    event.size = size_bytes;
    event.python_stack = stack;
    event.device = kDeviceUnknown;
    return event;
}

}  // namespace

// Undoes the history from the end, as snapshot_start.h does for a device.
SnapshotHost host_events(const Snapshot& snapshot) {
    std::map<std::uint64_t, EventRecord> held;
    for (const SnapshotSegment& segment : snapshot.host_segments) {
        // A segment is one block. If the segment has no stack, the block has it.
        std::uint32_t stack = segment.stack;
        if (stack == 0 && segment.block_count != 0) {
            stack = snapshot.blocks[segment.first_block].stack;
        }
        held[segment.address] =
            host_event(EventKind::kHostAlloc, segment.address, segment.size_bytes, stack);
    }
    const auto [first, count] = snapshot.host_history;
    const auto entries = std::span(snapshot.entries).subspan(first, count);
    SnapshotHost host;
    for (const SnapshotEntry& entry : entries) {
        const bool alloc = entry.action == SnapshotAction::kSegmentAlloc;
        if (!alloc && entry.action != SnapshotAction::kSegmentFree) {
            continue;
        }
        host.events.push_back(host_event(alloc ? EventKind::kHostAlloc : EventKind::kHostFree,
                                         entry.address,
                                         alloc ? entry.size_bytes : 0,
                                         entry.stack));
        host.events.back().time_ns = entry.time_us;
    }
    for (std::size_t i = entries.size(); i-- > 0;) {
        const SnapshotEntry& entry = entries[i];
        if (entry.action == SnapshotAction::kSegmentAlloc) {
            held.erase(entry.address);
        } else if (entry.action == SnapshotAction::kSegmentFree) {
            held[entry.address] =
                host_event(EventKind::kHostAlloc, entry.address, entry.size_bytes, 0);
        }
    }
    for (const auto& [address, event] : held) {
        host.start.push_back(event);
    }
    return host;
}

}  // namespace fragtrace::analyzer
