#include "analyzer/export/stack_weights.h"

#include "analyzer/support/terminal.h"

#include <algorithm>
#include <fmt/format.h>
#include <unordered_map>

namespace fragtrace::analyzer {
namespace {

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

EventIndex default_moment(const Analysis& analysis) {
    EventIndex moment = kNoEvent;
    for (const DeviceAnalysis& device : analysis.devices) {
        if (const Diagnosis* failed = first_oom(device)) {
            moment = std::min(moment, failed->trouble.event);
        }
    }
    if (moment != kNoEvent) {
        return moment;
    }
    std::uint64_t most = 0;
    for (const DeviceAnalysis& device : analysis.devices) {
        if (device.at_peak_allocated.event != kNoEvent && device.recorded.peak_allocated > most) {
            most = device.recorded.peak_allocated;
            moment = device.at_peak_allocated.event;
        }
    }
    return moment;
}

EventIndex shown_moment(const Analysis& analysis, const ExportOptions& options) {
    const EventIndex moment =
        options.moment != kNoEvent ? options.moment : default_moment(analysis);
    for (const EventSpan& checkpoint : analysis.timeline.checkpoints) {
        if (checkpoint.begin <= moment && moment < checkpoint.end) {
            const std::size_t last = analysis.timeline.events.size() - 1;
            return static_cast<EventIndex>(std::min<std::size_t>(checkpoint.end, last));
        }
    }
    return moment;
}

std::vector<StackWeight> stack_weights(const Analysis& analysis,
                                       const DeviceAnalysis& device,
                                       StackQuantity quantity,
                                       EventIndex moment) {
    std::unordered_map<OriginId, std::uint64_t> sums;
    if (quantity == StackQuantity::kWaste) {
        if (const Diagnosis* map = nearest_map(device, moment)) {
            for (const CulpritGroup& group : group_culprits(analysis, *map, false)) {
                sums[group.held.origin] += group.held_open_bytes;
            }
        }
    } else if (quantity == StackQuantity::kAllocations) {
        const EventTable& events = analysis.timeline.events;
        const bool blocks = device.script.source == ScriptSource::kBlocks;
        for (EventIndex i = 0; i < events.size(); ++i) {
            const EventKind kind = events.kind(i);
            if (events.device(i) == device.device &&
                (blocks ? kind == EventKind::kBlockAlloc : kind == EventKind::kDeviceAlloc)) {
                const Event event = events[i];
                // PyTorch's blocks: the size that was taken from the pool is in `extra`.
                sums[event.origin] += blocks ? event.extra : event.size_bytes;
            }
        }
    } else if (moment != kNoEvent) {
        RecordedState state(analysis.timeline);
        state.advance_to(moment + 1);
        const HeapSnapshot heap = state.snapshot(device.device);
        for (const HeapBlock& block : heap.blocks) {
            if (block.state != BlockState::kFree) {
                const EventIndex by = block.allocated_by;
                sums[by == kNoEvent ? 0 : analysis.timeline.events[by].origin] += block.size_bytes;
            }
        }
    }
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
