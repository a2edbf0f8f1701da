#include "analyzer/replay/fidelity.h"

#include "analyzer/replay/parting.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <vector>

namespace fragtrace::analyzer {
namespace {

struct RecordedPlacement {
    EventIndex event = kNoEvent;
    std::uint32_t segment = kUnknown32;
    std::uint64_t offset_bytes = 0;
};

struct RecordedSegment {
    DriverCall::Kind kind = DriverCall::Kind::kSegmentAlloc;
    std::uint64_t size_bytes = 0;
    EventIndex event = kNoEvent;
};

// What the record says about placements and segments of one device.
struct RecordedLayout {
    std::vector<RecordedPlacement> placements;  // ascending by event
    std::vector<RecordedSegment> segments;
};

// Finds what is recorded of one request after the other; fast where they ascend.
class Placements {
  public:
    explicit Placements(const std::vector<RecordedPlacement>& placements)
        : all_(placements), next_(placements.begin()) {}

    // nullptr: nothing is.
    const RecordedPlacement* of(EventIndex event) {
        if (next_ != all_.begin() && std::prev(next_)->event >= event) {
            next_ = std::lower_bound(
                all_.begin(), next_, event, [](const RecordedPlacement& one, EventIndex wanted) {
                    return one.event < wanted;
                });
        }
        while (next_ != all_.end() && next_->event < event) {
            ++next_;
        }
        return next_ != all_.end() && next_->event == event ? &*next_ : nullptr;
    }

  private:
    const std::vector<RecordedPlacement>& all_;
    std::vector<RecordedPlacement>::const_iterator next_;
};

class LayoutBuilder {
  public:
    LayoutBuilder(const Timeline& timeline, const ReplayScript& script)
        : timeline_(timeline), script_(script), device_(script.device) {}

    RecordedLayout build() {
        for (EventIndex i = 0; i < timeline_.events.size(); ++i) {
            const Event& event = timeline_.events[i];
            if (next_checkpoint_ < timeline_.checkpoints.size() &&
                i == timeline_.checkpoints[next_checkpoint_].begin) {
                adopt(script_.checkpoints[next_checkpoint_]);
                i = timeline_.checkpoints[next_checkpoint_++].end;
            } else if (event.device == device_) {
                add(event, i);
            }
        }
        return std::move(layout_);
    }

  private:
    struct Range {
        std::uint64_t size_bytes;
        std::uint32_t ordinal;
    };

    // As the pool numbers what it takes over: one segment per reservation.
    void adopt(const HeapSnapshot& heap) {
        ranges_.clear();
        next_ordinal_ = 0;
        map_end_ = 0;
        for (const HeapSegment& segment : heap.segments) {
            const bool reserved = segment.expandable && segment.reservation_bytes != 0;
            const DeviceAddress begin = reserved ? segment.reservation : segment.address;
            const std::uint64_t bytes = reserved ? segment.reservation_bytes : segment.size_bytes;
            if (ranges_.try_emplace(begin, Range{bytes, next_ordinal_}).second) {
                ++next_ordinal_;
            }
        }
    }

    void add(const Event& event, EventIndex i) {
        const bool from_allocator = (event.flags & kFlagFromAllocator) != 0;
        switch (event.kind) {
            case EventKind::kDeviceAlloc:
                if (from_allocator) {
                    ranges_[event.address] = {event.size_bytes, next_ordinal_++};
                    layout_.segments.push_back(
                        {DriverCall::Kind::kSegmentAlloc, event.size_bytes, i});
                }
                break;
            case EventKind::kAddressReserve:
                if (from_allocator) {
                    ranges_[event.address] = {event.size_bytes, next_ordinal_++};
                }
                break;
            case EventKind::kDeviceFree:
            case EventKind::kAddressFree:
                ranges_.erase(event.address);
                break;
            case EventKind::kMap:
                if (from_allocator) {
                    add_map(event, i);
                }
                break;
            case EventKind::kBlockAlloc:
                place(event, i);
                break;
            default:
                break;
        }
        if (event.kind == EventKind::kBlockAlloc || event.kind == EventKind::kBlockFree) {
            map_end_ = 0;
        }
    }

    // The allocator maps a range page by page: contiguous maps of one request are one map call.
    void add_map(const Event& event, EventIndex i) {
        if (map_end_ != 0 && event.address == map_end_) {
            layout_.segments.back().size_bytes += event.size_bytes;
        } else {
            layout_.segments.push_back({DriverCall::Kind::kMap, event.size_bytes, i});
        }
        map_end_ = event.address + event.size_bytes;
    }

    void place(const Event& event, EventIndex i) {
        auto found = ranges_.upper_bound(event.address);
        if (found == ranges_.begin()) {
            return;
        }
        --found;
        const std::uint64_t offset = event.address - found->first;
        if (offset < found->second.size_bytes) {
            layout_.placements.push_back({i, found->second.ordinal, offset});
        }
    }

    const Timeline& timeline_;
    const ReplayScript& script_;
    DeviceId device_;
    std::size_t next_checkpoint_ = 0;
    RecordedLayout layout_;
    std::map<DeviceAddress, Range> ranges_;
    std::uint32_t next_ordinal_ = 0;
    DeviceAddress map_end_ = 0;
};

std::string first_difference(const Timeline& timeline,
                             EventIndex event,
                             const RecordedPlacement* recorded,
                             const AllocateResult& served) {
    const std::uint64_t requested = timeline.events[event].size_bytes;
    if (served.outcome == Outcome::kOutOfMemory || served.outcome == Outcome::kRejected) {
        return fmt::format(
            "event {}: the record serves {}, the replay does not", event, format_bytes(requested));
    }
    if (recorded == nullptr) {
        return fmt::format("event {}: the record has no segment around this block", event);
    }
    return fmt::format("event {}: {} placed in segment {} at +{}, recorded in segment {} at +{}",
                       event,
                       format_bytes(requested),
                       served.placement.segment,
                       served.placement.offset_bytes,
                       recorded->segment,
                       recorded->offset_bytes);
}

// What the recorder was told to leave out, or did not live to see, the replay cannot know.
std::string why_not_judged(const Timeline& timeline) {
    if (timeline.fact("snapshot.entries") == "0") {
        return "the snapshot has no history (torch.cuda.memory._record_memory_history was off)";
    }
    if (timeline.facts.contains("options.min_bytes")) {
        return fmt::format("blocks below {} bytes were not recorded (FRAGTRACE_MIN_BYTES)",
                           timeline.fact("options.min_bytes"));
    }
    // A checkpoint behind a gap tells everything anew, and the replay takes it over.
    for (const RecordingGap& gap : timeline.gaps) {
        const bool told =
            gap.end >= timeline.events.size() ||
            std::any_of(timeline.checkpoints.begin(),
                        timeline.checkpoints.end(),
                        [&gap](const EventSpan& one) { return one.begin >= gap.end; });
        if (!told) {
            return "recording was stopped for a part of the run";
        }
    }
    return {};
}

}  // namespace

Fidelity measure_fidelity(const Timeline& timeline,
                          const ReplayScript& script,
                          Pool& pool,
                          RecordedDevice& recorded,
                          ReplayResult* result) {
    const RecordedLayout layout = LayoutBuilder(timeline, script).build();
    Fidelity fidelity;
    fidelity.segments = layout.segments.size();
    Placements placements(layout.placements);
    std::size_t next_segment = 0;

    ReplayHooks hooks;
    hooks.after_request = [&](std::size_t i, const AllocateResult& served, Pool& driven) {
        const Step& step = script.steps[i];
        for (const DriverCall& call : driven.take_driver_calls()) {
            if (call.refused || (call.kind != DriverCall::Kind::kSegmentAlloc &&
                                 call.kind != DriverCall::Kind::kMap)) {
                continue;
            }
            const bool equal = next_segment < layout.segments.size() &&
                               layout.segments[next_segment].kind == call.kind &&
                               layout.segments[next_segment].size_bytes == call.size_bytes;
            fidelity.segments_equal += equal ? 1 : 0;
            if (!equal && fidelity.reason.empty()) {
                fidelity.reason = fmt::format(
                    "event {}: the replay asks the driver for {}, "
                    "the record does not",
                    step.event,
                    format_bytes(call.size_bytes));
            }
            ++next_segment;
        }
        const bool failed =
            served.outcome == Outcome::kOutOfMemory || served.outcome == Outcome::kRejected;
        if (step.recorded_oom) {
            if (!failed && fidelity.reason.empty()) {
                fidelity.reason = fmt::format(
                    "event {}: the record ran out of memory, the replay did not", step.event);
            }
            return;
        }
        ++fidelity.placements;
        const RecordedPlacement* placed = placements.of(step.event);
        const bool equal = !failed && placed != nullptr &&
                           placed->segment == served.placement.segment &&
                           placed->offset_bytes == served.placement.offset_bytes;
        fidelity.placements_equal += equal ? 1 : 0;
        if (!equal && fidelity.reason.empty()) {
            fidelity.reason = first_difference(timeline, step.event, placed, served);
            if (!failed && placed != nullptr) {
                const std::string cause =
                    why_parted(driven, served.placement, placed->segment, placed->offset_bytes);
                fidelity.reason += cause.empty() ? "" : " (" + cause + ")";
            }
        }
    };
    ReplayResult replayed = replay(script, pool, &recorded, hooks);
    if (next_segment < layout.segments.size() && fidelity.reason.empty()) {
        fidelity.reason = fmt::format(
            "event {}: the record asks the driver for {}, "
            "the replay does not",
            layout.segments[next_segment].event,
            format_bytes(layout.segments[next_segment].size_bytes));
    }
    if (result != nullptr) {
        *result = std::move(replayed);
    }
    fidelity.not_judged = why_not_judged(timeline);
    return fidelity;
}

}  // namespace fragtrace::analyzer
