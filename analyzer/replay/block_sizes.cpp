#include "analyzer/replay/block_sizes.h"

#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/replay/recorded_layout.h"
#include "analyzer/replay/replayer.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {
namespace {

using Sizes = std::vector<std::pair<EventIndex, std::uint64_t>>;

// Returns the blocks whose size differs in the replay. Empty if the replay diverges from the
// recording.
Sizes other_sizes(const Timeline& timeline,
                  const ReplayScript& script,
                  Pool* pool,
                  RecordedDevice* device) {
    RecordedPlacements placements(timeline, script);
    Sizes sizes;
    bool equal = true;
    ReplayHooks hooks;
    hooks.before_step = [&equal](std::size_t, Pool&) { return equal; };
    hooks.after_request = [&](std::size_t i, const AllocateResult& served, Pool&) {
        const Step& step = script.steps[i];
        const bool failed =
            served.outcome == Outcome::kOutOfMemory || served.outcome == Outcome::kRejected;
        if (failed || step.recorded_oom) {
            equal = equal && failed && step.recorded_oom;
            return;
        }
        const auto recorded = placements.of(step.event);
        equal = equal && recorded && recorded->segment == served.placement.segment &&
                recorded->offset_bytes == served.placement.offset_bytes;
        if (served.placement.block_bytes != timeline.events[step.event].extra) {
            sizes.emplace_back(step.event, served.placement.block_bytes);
            // The snapshot contains the exact sizes of blocks that are live at its end, so these
            // must be equal.
            equal = equal && timeline.partner[step.event] != kNoEvent;
        }
    };
    replay(script, *pool, device, hooks);
    return equal ? sizes : Sizes{};
}

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
        for (const auto& [at, size_bytes] : other_sizes(*timeline, script, pool->get(), recorded)) {
            Event event = timeline->events[at];
            event.extra = size_bytes;
            timeline->events.set(at, event);
        }
    }
}

}  // namespace fragtrace::analyzer
