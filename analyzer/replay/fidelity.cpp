#include "analyzer/replay/fidelity.h"

#include "analyzer/pools/others/segment_pool.h"
#include "analyzer/replay/compare_replay.h"
#include "analyzer/replay/divergence_cause.h"
#include "analyzer/replay/recorded_layout.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {
namespace {

std::string first_difference(const Timeline& timeline,
                             EventIndex event,
                             const std::optional<RecordedPlacement>& recorded,
                             const AllocateResult& served) {
    const std::uint64_t requested = timeline.events[event].size_bytes;
    if (served.outcome == Outcome::kOutOfMemory || served.outcome == Outcome::kRejected) {
        return fmt::format("event {}: the recorded run serves {}, the replay does not",
                           event,
                           format_bytes(requested));
    }
    if (!recorded) {
        return fmt::format("event {}: the recording has no segment around this block", event);
    }
    return fmt::format("event {}: {} placed in segment {} at +{}, recorded in segment {} at +{}",
                       event,
                       format_bytes(requested),
                       served.placement.segment,
                       served.placement.offset_bytes,
                       recorded->segment,
                       recorded->offset_bytes);
}

// A replay cannot be compared if the recorder was configured to omit events, or ended too early.
std::string why_not_judged(const Timeline& timeline) {
    if (timeline.fact("snapshot.entries") == "0") {
        return "the snapshot has no history (torch.cuda.memory._record_memory_history was off, or "
               "recorded only the state)";
    }
    if (timeline.facts.contains("options.min_bytes")) {
        return fmt::format("blocks below {} bytes were not recorded (FRAGTRACE_MIN_BYTES)",
                           timeline.fact("options.min_bytes"));
    }
    // A checkpoint after a gap lists every live allocation again, and the replay adopts it.
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

// Compares a replay with the recording, request by request.
class Comparison {
  public:
    // `sizes`: nullptr = not needed.
    Comparison(const Timeline& timeline, const RecordedPlaces& run, OtherSizes* sizes)
        : timeline_(timeline), run_(run), sizes_(sizes) {
        fidelity_.segments = run.segments.size();
    }

    void after_request(const Step& step, const AllocateResult& served, Pool& pool) {
        for (const DriverCall& call : pool.take_driver_calls()) {
            if (!call.refused && (call.kind == DriverCall::Kind::kSegmentAlloc ||
                                  call.kind == DriverCall::Kind::kMap)) {
                compare_segment(step.event, call);
            }
        }
        const bool failed =
            served.outcome == Outcome::kOutOfMemory || served.outcome == Outcome::kRejected;
        if (!step.recorded_oom) {
            compare_place(step.event, served, failed, pool);
        } else if (!failed) {
            note_same_place(false);
            if (fidelity_.reason.empty()) {
                fidelity_.reason = fmt::format(
                    "event {}: the recorded run ran out of memory, the replay did not", step.event);
            }
        }
    }

    Fidelity finish(const Pool& pool) {
        if (next_segment_ < run_.segments.size() && fidelity_.reason.empty()) {
            fidelity_.reason = fmt::format(
                "event {}: the recorded run requests {} from the driver, the replay does not",
                run_.segments[next_segment_].event,
                format_bytes(run_.segments[next_segment_].size_bytes));
        }
        if (const auto* const segments_of = dynamic_cast<const SegmentPool*>(&pool)) {
            fidelity_.placements_chosen = segments_of->preferred();
        }
        return std::move(fidelity_);
    }

  private:
    void compare_segment(EventIndex event, const DriverCall& call) {
        const bool equal = next_segment_ < run_.segments.size() &&
                           run_.segments[next_segment_].kind == call.kind &&
                           run_.segments[next_segment_].size_bytes == call.size_bytes;
        fidelity_.segments_equal += equal ? 1 : 0;
        if (!equal && fidelity_.reason.empty()) {
            fidelity_.reason = fmt::format(
                "event {}: the replay requests {} from the driver, the recorded run does not",
                event,
                format_bytes(call.size_bytes));
        }
        ++next_segment_;
    }

    void compare_place(EventIndex event, const AllocateResult& served, bool failed, Pool& pool) {
        ++fidelity_.placements;
        const std::optional<RecordedPlacement> placed = run_.place(event);
        const bool equal = !failed && placed && placed->segment == served.placement.segment &&
                           placed->offset_bytes == served.placement.offset_bytes;
        fidelity_.placements_equal += equal ? 1 : 0;
        note_same_place(equal);
        note_size(event, served.placement.block_bytes);
        if (!equal && fidelity_.reason.empty()) {
            fidelity_.reason = first_difference(timeline_, event, placed, served);
            if (!failed && placed) {
                const std::string cause =
                    divergence_cause(pool, served.placement, placed->segment, placed->offset_bytes);
                fidelity_.reason += cause.empty() ? "" : " (" + cause + ")";
            }
        }
    }

    void note_same_place(bool same) {
        if (sizes_ != nullptr) {
            sizes_->same_places = sizes_->same_places && same;
        }
    }

    // A snapshot contains the exact sizes of blocks that are live at its end, so a replay that
    // gives one of them another size differs from the recording.
    void note_size(EventIndex event, std::uint64_t block_bytes) {
        if (sizes_ != nullptr && sizes_->same_places &&
            block_bytes != timeline_.events[event].extra) {
            sizes_->blocks.emplace_back(event, block_bytes);
            sizes_->same_places = timeline_.partner[event] != kNoEvent;
        }
    }

    const Timeline& timeline_;
    const RecordedPlaces& run_;
    OtherSizes* sizes_;
    Fidelity fidelity_;
    std::size_t next_segment_ = 0;
};

}  // namespace

std::function<bool(std::size_t step, Pool& pool)> choose_places(const ReplayScript& script,
                                                                const RecordedPlace& place,
                                                                Pool& pool,
                                                                std::size_t steps) {
    auto* const chooser = dynamic_cast<SegmentPool*>(&pool);
    if (chooser == nullptr) {
        return nullptr;
    }
    return [&script, &place, chooser, steps](std::size_t i, Pool&) {
        const Step step = script.steps[i];
        if (i < steps && step.kind == Step::Kind::kAllocate && !step.recorded_oom) {
            if (const auto there = place(step.event)) {
                chooser->prefer({.segment = there->segment, .offset_bytes = there->offset_bytes});
            }
        }
        return true;
    };
}

Fidelity compare_replay(const Timeline& timeline,
                        const ReplayScript& script,
                        const RecordedPlaces& run,
                        Pool& pool,
                        RecordedDevice& recorded,
                        ReplayResult* result,
                        OtherSizes* sizes) {
    Comparison comparison(timeline, run, sizes);
    ReplayHooks hooks;
    if (run.chooses) {
        hooks.before_step = choose_places(script, run.place, pool, script.steps.size());
    }
    hooks.after_request = [&](std::size_t i, const AllocateResult& served, Pool& driven) {
        comparison.after_request(script.steps[i], served, driven);
    };
    ReplayResult replayed = replay(script, pool, &recorded, hooks);
    if (result != nullptr) {
        *result = std::move(replayed);
    }
    return comparison.finish(pool);
}

Fidelity measure_fidelity(const Timeline& timeline,
                          const ReplayScript& script,
                          Pool& pool,
                          RecordedDevice& recorded,
                          ReplayResult* result,
                          OtherSizes* sizes) {
    const std::vector<RecordedSegmentCall> segments = recorded_segments(timeline, script.device);
    RecordedPlacements placements(timeline, script);
    const RecordedPlaces run{.segments = segments, .place = [&placements](EventIndex event) {
                                 return placements.of(event);
                             }};
    Fidelity fidelity = compare_replay(timeline, script, run, pool, recorded, result, sizes);
    fidelity.not_judged = why_not_judged(timeline);
    return fidelity;
}

Fidelity measure_fidelity(const Timeline& timeline,
                          const ReplayScript& script,
                          Pool& pool,
                          RecordedDevice& recorded,
                          ReplayResult* result) {
    return measure_fidelity(timeline, script, pool, recorded, result, nullptr);
}

}  // namespace fragtrace::analyzer
