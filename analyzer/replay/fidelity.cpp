#include "analyzer/replay/fidelity.h"

#include "analyzer/pools/others/segment_pool.h"
#include "analyzer/replay/compare_replay.h"
#include "analyzer/replay/divergence_cause.h"
#include "analyzer/replay/recorded_layout.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
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
                        ReplayResult* result) {
    const std::span<const RecordedSegmentCall> segments = run.segments;
    Fidelity fidelity;
    fidelity.segments = segments.size();
    std::size_t next_segment = 0;

    ReplayHooks hooks;
    if (run.chooses) {
        hooks.before_step = choose_places(script, run.place, pool, script.steps.size());
    }
    hooks.after_request = [&](std::size_t i, const AllocateResult& served, Pool& driven) {
        const Step& step = script.steps[i];
        for (const DriverCall& call : driven.take_driver_calls()) {
            if (call.refused || (call.kind != DriverCall::Kind::kSegmentAlloc &&
                                 call.kind != DriverCall::Kind::kMap)) {
                continue;
            }
            const bool equal = next_segment < segments.size() &&
                               segments[next_segment].kind == call.kind &&
                               segments[next_segment].size_bytes == call.size_bytes;
            fidelity.segments_equal += equal ? 1 : 0;
            if (!equal && fidelity.reason.empty()) {
                fidelity.reason = fmt::format(
                    "event {}: the replay requests {} from the driver, the recorded run does not",
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
                    "event {}: the recorded run ran out of memory, the replay did not", step.event);
            }
            return;
        }
        ++fidelity.placements;
        const std::optional<RecordedPlacement> placed = run.place(step.event);
        const bool equal = !failed && placed && placed->segment == served.placement.segment &&
                           placed->offset_bytes == served.placement.offset_bytes;
        fidelity.placements_equal += equal ? 1 : 0;
        if (!equal && fidelity.reason.empty()) {
            fidelity.reason = first_difference(timeline, step.event, placed, served);
            if (!failed && placed) {
                const std::string cause = divergence_cause(
                    driven, served.placement, placed->segment, placed->offset_bytes);
                fidelity.reason += cause.empty() ? "" : " (" + cause + ")";
            }
        }
    };
    ReplayResult replayed = replay(script, pool, &recorded, hooks);
    if (next_segment < segments.size() && fidelity.reason.empty()) {
        fidelity.reason = fmt::format(
            "event {}: the recorded run requests {} from the driver, the replay does not",
            segments[next_segment].event,
            format_bytes(segments[next_segment].size_bytes));
    }
    if (result != nullptr) {
        *result = std::move(replayed);
    }
    if (const auto* const segments_of = dynamic_cast<const SegmentPool*>(&pool)) {
        fidelity.placements_chosen = segments_of->preferred();
    }
    return fidelity;
}

Fidelity measure_fidelity(const Timeline& timeline,
                          const ReplayScript& script,
                          Pool& pool,
                          RecordedDevice& recorded,
                          ReplayResult* result) {
    const std::vector<RecordedSegmentCall> segments = recorded_segments(timeline, script.device);
    RecordedPlacements placements(timeline, script);
    const RecordedPlaces run{.segments = segments, .place = [&placements](EventIndex event) {
                                 return placements.of(event);
                             }};
    Fidelity fidelity = compare_replay(timeline, script, run, pool, recorded, result);
    fidelity.not_judged = why_not_judged(timeline);
    return fidelity;
}

}  // namespace fragtrace::analyzer
