#include "analyzer/export/stack_weights.h"

#include "analyzer/support/terminal.h"

#include <algorithm>
#include <fmt/format.h>
#include <unordered_map>

namespace fragtrace::analyzer {
namespace {

using Sums = std::unordered_map<OriginId, std::uint64_t>;

// The diagnosis (or the map at peak reserved) whose event is nearest to `moment`; nullptr = none.
const Diagnosis* nearest_map(const DeviceAnalysis& device, EventIndex moment) {
    const Diagnosis* nearest = device.peak ? &*device.peak : nullptr;
    const auto distance = [moment](const Diagnosis& one) {
        const EventIndex at = one.trouble.event;
        return at > moment ? at - moment : moment - at;
    };
    for (const Diagnosis& one : device.diagnoses) {
        if (nearest == nullptr || distance(one) < distance(*nearest)) {
            nearest = &one;
        }
    }
    return nearest;
}

// The memory that a checkpoint lists is complete at its end.
EventIndex after_checkpoint(const Timeline& timeline, EventIndex event) {
    for (const EventSpan& checkpoint : timeline.checkpoints) {
        if (checkpoint.begin <= event && event <= checkpoint.end) {
            // A checkpoint that the end of the trace cut off has no last event.
            return std::min(checkpoint.end, static_cast<EventIndex>(timeline.events.size() - 1));
        }
    }
    return event;
}

// The stack of a live or pending block.
OriginId origin_of(const Timeline& timeline, const HeapBlock& block) {
    return block.allocated_by < timeline.events.size() ? timeline.events[block.allocated_by].origin
                                                       : 0;
}

Sums held(const Timeline& timeline, const HeapSnapshot& heap) {
    Sums sums;
    for (const HeapBlock& block : heap.blocks) {
        if (block.state != BlockState::kFree) {
            sums[origin_of(timeline, block)] += block.size_bytes;
        }
    }
    return sums;
}

Sums wasted(const Timeline& timeline, const Diagnosis& map) {
    Sums sums;
    for (std::size_t i = 0; i < map.heap.blocks.size(); ++i) {
        if (map.heap.blocks[i].state != BlockState::kFree) {
            sums[origin_of(timeline, map.heap.blocks[i])] += map.held_open[i];
        }
    }
    return sums;
}

// Bytes that the event allocates in this layer; 0 = none, or not known.
std::uint64_t allocated_bytes(const Event& event, ScriptSource layer) {
    const bool counts =
        layer == ScriptSource::kBlocks
            ? event.kind == EventKind::kBlockAlloc
            : event.kind == EventKind::kDeviceAlloc || event.kind == EventKind::kAsyncAlloc ||
                  event.kind == EventKind::kPhysicalCreate || event.kind == EventKind::kArrayAlloc;
    const std::uint64_t bytes =
        event.kind == EventKind::kBlockAlloc ? event.extra : event.size_bytes;
    return counts && bytes != kUnknown64 ? bytes : 0;
}

// Without checkpoints: they list allocations from before the recording, or list them again.
Sums allocated(const Timeline& timeline, const DeviceAnalysis& device) {
    Sums sums;
    std::size_t next = 0;
    for (EventIndex i = 0; i < timeline.events.size(); ++i) {
        if (next < timeline.checkpoints.size() && i == timeline.checkpoints[next].begin) {
            i = timeline.checkpoints[next++].end;
            continue;
        }
        const Event event = timeline.events[i];
        if (event.device == device.device) {
            sums[event.origin] += allocated_bytes(event, device.script.source);
        }
    }
    return sums;
}

std::vector<StackWeight> largest_first(const Sums& sums) {
    std::vector<StackWeight> weights;
    for (const auto& [origin, bytes] : sums) {
        if (bytes != 0) {
            weights.push_back({origin, bytes});
        }
    }
    std::sort(weights.begin(), weights.end(), [](const StackWeight& a, const StackWeight& b) {
        return a.bytes != b.bytes ? a.bytes > b.bytes : a.origin < b.origin;
    });
    return weights;
}

std::string frame_text(const Frame& frame) {
    std::string text = frame.function;
    if (!frame.file.empty()) {
        text += fmt::format(" ({}:{})", frame.file, frame.line);
    } else if (!frame.module.empty()) {
        text += fmt::format(" ({})", frame.module);
    }
    return printable(text);
}

}  // namespace

EventIndex oom_moment(const Analysis& analysis) {
    EventIndex moment = kNoEvent;
    for (const DeviceAnalysis& device : analysis.devices) {
        if (const Diagnosis* failed = reported_oom(device)) {
            moment = std::min(moment, failed->trouble.event);
        }
    }
    return moment;
}

EventIndex peak_moment(const Analysis& analysis) {
    const auto most = std::max_element(
        analysis.devices.begin(), analysis.devices.end(), [](const auto& a, const auto& b) {
            return a.recorded.peak_allocated < b.recorded.peak_allocated;
        });
    if (most == analysis.devices.end() || most->recorded.peak_allocated == 0) {
        return kNoEvent;
    }
    RecordedState state(analysis.timeline);
    while (state.position() < analysis.timeline.events.size()) {
        state.advance();
        if (state.totals(most->device).allocated == most->recorded.peak_allocated) {
            return after_checkpoint(analysis.timeline, state.position() - 1);
        }
    }
    return kNoEvent;
}

EventIndex shown_moment(const Analysis& analysis, const ExportOptions& options) {
    EventIndex moment = options.moment;
    if (moment == kNoEvent) {
        moment = oom_moment(analysis);
    }
    if (moment == kNoEvent) {
        moment = peak_moment(analysis);
    }
    return moment == kNoEvent ? kNoEvent : after_checkpoint(analysis.timeline, moment);
}

RecordedState state_at_moment(const Analysis& analysis, const ExportOptions& options) {
    const EventIndex moment = shown_moment(analysis, options);
    RecordedState state(analysis.timeline);
    if (moment != kNoEvent) {
        state.advance_to(moment + 1);
    }
    return state;
}

WeightedStacks weighted_stacks(const Analysis& analysis,
                               const DeviceAnalysis& device,
                               StackQuantity quantity,
                               const RecordedState& state) {
    const EventIndex moment = state.position() == 0 ? kNoEvent : state.position() - 1;
    switch (quantity) {
        case StackQuantity::kHolders:
            return {largest_first(held(analysis.timeline, state.snapshot(device.device))), moment};
        case StackQuantity::kWaste:
            if (const Diagnosis* map = nearest_map(device, moment)) {
                return {largest_first(wasted(analysis.timeline, *map)),
                        after_checkpoint(analysis.timeline, map->trouble.event)};
            }
            return {};
        case StackQuantity::kAllocations:
            return {largest_first(allocated(analysis.timeline, device)), kNoEvent};
    }
    return {};
}

std::vector<std::string> flame_frames(Symbolizer* symbols, OriginId origin) {
    const std::vector<Frame>& frames = symbols->frames(origin);
    std::vector<std::string> texts;
    texts.reserve(frames.size() + 1);
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
        texts.push_back(frame_text(*frame));
    }
    if (const std::string label = symbols->label_of(origin); !label.empty()) {
        texts.push_back(printable(label.substr(1)));  // it begins with a space
    }
    if (texts.empty()) {
        texts.emplace_back("unknown");
    }
    return texts;
}

}  // namespace fragtrace::analyzer
