#include "analyzer/replay/block_sizes.h"

#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/replay/replayer.h"

#include <memory>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// The size of the card at the last report of the driver; kUnlimitedBytes if there is none.
std::uint64_t last_total_bytes(const Timeline& timeline, DeviceId device) {
    const EventTable& events = timeline.events;
    for (auto i = static_cast<EventIndex>(events.size()); i-- > 0;) {
        if (events.kind(i) == EventKind::kMemoryInfo && events.device(i) == device) {
            const std::uint64_t total_bytes = events[i].extra;
            return total_bytes != 0 ? total_bytes : kUnlimitedBytes;
        }
    }
    return kUnlimitedBytes;
}

}  // namespace

bool needs_replayed_sizes(const Timeline& timeline) {
    return timeline.fact("source") == "pytorch snapshot";
}

bool correct_sizes(const OtherSizes& sizes, Timeline* timeline) {
    if (!sizes.same_places) {
        return false;
    }
    for (const auto& [at, size_bytes] : sizes.blocks) {
        Event event = timeline->events[at];
        event.extra = size_bytes;
        timeline->events.set(at, event);
    }
    return !sizes.blocks.empty();
}

void take_replayed_sizes(Timeline* timeline) {
    for (const DeviceId id : replayable_devices(*timeline)) {
        const ReplayScript script = make_script(*timeline, id);
        if (script.source != ScriptSource::kBlocks) {
            continue;
        }
        const std::uint64_t total = last_total_bytes(*timeline, id);
        auto device = std::make_unique<RecordedDevice>(total, total);
        RecordedDevice* recorded = device.get();
        const auto pool = make_pool("pytorch",
                                    timeline->fact("allocator_conf"),
                                    std::move(device),
                                    script.streams,
                                    script.rules);
        if (!pool) {
            continue;  // settings that cannot be replayed
        }
        OtherSizes sizes;
        measure_fidelity(*timeline, script, **pool, *recorded, nullptr, &sizes);
        correct_sizes(sizes, timeline);
    }
}

}  // namespace fragtrace::analyzer
