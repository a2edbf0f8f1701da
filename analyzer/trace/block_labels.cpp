#include "analyzer/trace/block_labels.h"

#include "analyzer/model/pair_map.h"

namespace fragtrace::analyzer {

void BlockLabeler::label(EventIndex event, std::uint32_t text) {
    Event labelled = timeline_.events[event];
    Origin origin = timeline_.origins[labelled.origin];
    if (origin.label == text) {
        return;
    }
    origin.label = text;
    const auto [found, is_new] =
        origins_.try_emplace(origin, static_cast<OriginId>(timeline_.origins.size()));
    if (is_new) {
        timeline_.origins.push_back(origin);
    }
    labelled.origin = found->second;
    timeline_.events.set(event, labelled);
}

void label_blocks(Timeline* timeline) {
    BlockLabeler labeler(timeline);
    PairMap allocated_by;    // the last allocation at an address
    PairMap program_blocks;  // the same for pools of the program, by address and pool
    std::size_t cursor = 0;
    const auto find = [&](DeviceAddress address, DeviceId device) {
        std::uint32_t found = allocated_by.find(address, device);
        for (DeviceId other = 0;
             other < kMaxDevices && found == PairMap::kAbsent && device == kUnknownDevice;
             ++other) {
            found = allocated_by.find(address, other);
        }
        return found;
    };
    timeline->events.for_each_address(
        0,
        timeline->events.size(),
        [&](std::size_t at, EventKind kind, DeviceAddress address, DeviceId device) {
            const auto index = static_cast<EventIndex>(at);
            if (kind == EventKind::kBlockAlloc) {
                allocated_by.set(address, device, index);
            } else if (kind == EventKind::kProgramBlockAlloc) {
                program_blocks.set(address, timeline->event_pools.at(index, &cursor), index);
            } else if (kind == EventKind::kBlockLabel) {
                const std::uint32_t pool = timeline->event_pools.at(index, &cursor);
                const std::uint32_t block =
                    pool == 0 ? find(address, device) : program_blocks.find(address, pool);
                const std::uint64_t text = timeline->events[index].size_bytes;
                if (block != PairMap::kAbsent && text < kUnknown32 &&
                    timeline->partner[block] > index) {
                    labeler.label(block, static_cast<std::uint32_t>(text));
                }
            }
        });
}

}  // namespace fragtrace::analyzer
