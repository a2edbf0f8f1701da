#include "analyzer/analysis/metrics/phase_metrics.h"

#include "analyzer/analysis/metrics/maximum_history.h"
#include "analyzer/model/library_ranges.h"
#include "analyzer/model/phase_index.h"
#include "analyzer/model/recorded_state.h"
#include "analyzer/model/request_outcomes.h"

#include <algorithm>
#include <map>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// Everything that has been counted since the begin of the trace.
struct Counters {
    std::uint64_t driver_allocs = 0;
    std::uint64_t driver_ns = 0;
    std::uint64_t retries = 0;
    std::uint64_t ooms = 0;
    std::uint64_t allocated = 0;  // as it is now
};

class PhasePass {
  public:
    // Each range is added to `ranges`, if given.
    PhasePass(const Timeline& timeline,
              RunMetrics* metrics,
              std::vector<PhaseRange>* ranges = nullptr)
        : timeline_(timeline),
          metrics_(*metrics),
          ranges_(ranges),
          state_(timeline),
          outcomes_([this](DeviceId device) { return state_.has_block_layer(device); }) {
        for (std::uint32_t i = 0; i < timeline.phases.size(); ++i) {
            ends_.emplace_back(timeline.phases[i].end, i);
        }
        std::sort(ends_.begin(), ends_.end());
        at_begin_.resize(timeline.phases.size());
    }

    void run() {
        const auto count = static_cast<EventIndex>(timeline_.events.size());
        for (EventIndex i = 0; i < count; ++i) {
            begin_phases(i);
            state_.advance();
            count_event(i);
            end_phases(i, i);
        }
        if (count != 0) {
            end_phases(count, count - 1);
        }
    }

  private:
    void begin_phases(EventIndex i) {
        for (; next_begin_ < timeline_.phases.size() && timeline_.phases[next_begin_].begin == i;
             ++next_begin_) {
            at_begin_[next_begin_] = counters_;
        }
    }

    void count_event(EventIndex i) {
        const Event& event = timeline_.events[i];
        std::uint64_t reserved = 0;
        counters_.allocated = 0;
        for (const DeviceId device : state_.devices()) {
            counters_.allocated += state_.totals(device).allocated;
            reserved += state_.totals(device).reserved;
        }
        allocated_.add(i, counters_.allocated);
        reserved_.add(i, reserved);
        counters_.driver_allocs += event.kind == EventKind::kDeviceAlloc ||
                                           event.kind == EventKind::kAsyncAlloc ||
                                           event.kind == EventKind::kMap
                                       ? 1
                                       : 0;
        const RequestOutcome outcome = outcomes_.visit(i, event);
        counters_.ooms += is_out_of_memory(outcome) ? 1 : 0;
        counters_.retries += outcome == RequestOutcome::kRetry ? 1 : 0;
        for (; next_duration_ < timeline_.durations.size() &&
               timeline_.durations[next_duration_].first <= i;
             ++next_duration_) {
            counters_.driver_ns += timeline_.durations[next_duration_].second;
        }
        if (outcome == RequestOutcome::kCallOutOfMemory) {
            add_call(event, i);
        }
    }

    void add_call(const Event& event, EventIndex i) {
        CallOutOfMemory call;
        call.event = i;
        call.function = text_of(timeline_, event.size_bytes);
        call.allocated_bytes = state_.totals(event.device).allocated;
        call.reserved_bytes = state_.totals(event.device).reserved;
        call.free_bytes = state_.totals(event.device).free_pool();
        call.largest_free_bytes = state_.largest_free_bytes(event.device);
        call.device_free_bytes = state_.device_free_bytes(event.device);
        metrics_.call_ooms.push_back(std::move(call));
    }

    void end_phases(EventIndex end, EventIndex last) {
        for (; next_end_ < ends_.size() && ends_[next_end_].first == end; ++next_end_) {
            const Phase& phase = timeline_.phases[ends_[next_end_].second];
            const Counters& before = at_begin_[ends_[next_end_].second];
            PhaseTotals& totals = totals_of(phase);
            const PhaseRange range = {
                .phase = ends_[next_end_].second,
                .peak_allocated = allocated_.since(phase.begin),
                .peak_reserved = reserved_.since(phase.begin),
                .left_bytes = static_cast<std::int64_t>(counters_.allocated - before.allocated)};
            if (ranges_ != nullptr) {
                ranges_->push_back(range);
            }
            ++totals.count;
            totals.time_ns +=
                std::max(timeline_.events[last].time_ns, timeline_.events[phase.begin].time_ns) -
                timeline_.events[phase.begin].time_ns;
            totals.peak_allocated = std::max(totals.peak_allocated, range.peak_allocated);
            totals.peak_reserved = std::max(totals.peak_reserved, range.peak_reserved);
            totals.left_bytes += range.left_bytes;
            totals.driver_allocs += counters_.driver_allocs - before.driver_allocs;
            totals.driver_ns += counters_.driver_ns - before.driver_ns;
            totals.retries += counters_.retries - before.retries;
            totals.ooms += counters_.ooms - before.ooms;
        }
    }

    PhaseTotals& totals_of(const Phase& phase) {
        const auto [row, is_new] =
            rows_.try_emplace({phase.name, phase.kind}, metrics_.phases.size());
        if (is_new) {
            metrics_.phases.emplace_back();
            metrics_.phases.back().name = text_of(timeline_, phase.name);
            metrics_.phases.back().kind = phase.kind;
            if (phase.kind == RangeKind::kNvtx) {
                metrics_.phases.back().library = library_of_range(metrics_.phases.back().name);
            }
        }
        return metrics_.phases[row->second];
    }

    const Timeline& timeline_;
    RunMetrics& metrics_;
    std::vector<PhaseRange>* ranges_;
    RecordedState state_;
    RequestOutcomes outcomes_;
    std::vector<std::pair<EventIndex, std::uint32_t>> ends_;  // (end, phase)
    std::vector<Counters> at_begin_;
    Counters counters_;
    MaximumSince allocated_;
    MaximumSince reserved_;
    std::map<std::pair<std::uint32_t, RangeKind>, std::size_t> rows_;
    std::size_t next_begin_ = 0;
    std::size_t next_end_ = 0;
    std::size_t next_duration_ = 0;
};

}  // namespace

std::vector<PhaseRange> measure_phase_ranges(const Timeline& timeline) {
    std::vector<PhaseRange> ranges;
    if (!timeline.phases.empty()) {
        RunMetrics sums;
        PhasePass(timeline, &sums, &ranges).run();
    }
    return ranges;
}

void add_phase_metrics(const Timeline& timeline, RunMetrics* metrics) {
    bool needed = !timeline.phases.empty();
    for (std::size_t i = 0; i < timeline.events.size() && !needed; ++i) {
        needed = timeline.events.kind(i) == EventKind::kCallOutOfMemory;
    }
    if (needed) {
        PhasePass(timeline, metrics).run();
    }
}

}  // namespace fragtrace::analyzer
