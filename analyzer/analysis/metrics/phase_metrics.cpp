#include "analyzer/analysis/metrics/phase_metrics.h"

#include "analyzer/analysis/metrics/maximum_history.h"
#include "analyzer/model/library_ranges.h"
#include "analyzer/model/phase_index.h"
#include "analyzer/model/request_outcomes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// Totals since the start of the trace.
struct Counters {
    std::uint64_t driver_allocs = 0;
    std::uint64_t driver_ns = 0;
    std::uint64_t retries = 0;
    std::uint64_t ooms = 0;
    std::uint64_t allocated = 0;  // current value, not a total
};

}  // namespace

class PhaseMeasurement::Progress {
  public:
    explicit Progress(const Timeline& timeline) : timeline_(timeline) {
        for (std::uint32_t i = 0; i < timeline.phases.size(); ++i) {
            ends_.emplace_back(timeline.phases[i].end, i);
        }
        std::sort(ends_.begin(), ends_.end());
        at_begin_.resize(timeline.phases.size());
    }

    void begin_phases(EventIndex i) {
        for (; next_begin_ < timeline_.phases.size() && timeline_.phases[next_begin_].begin == i;
             ++next_begin_) {
            at_begin_[next_begin_] = counters_;
        }
    }

    void count_event(EventIndex i, const Event& event, const RecordedState& state) {
        if (!outcomes_) {
            outcomes_.emplace([&state](DeviceId id) { return state.has_block_layer(id); });
        }
        if (!ends_.empty()) {
            std::uint64_t reserved = 0;
            counters_.allocated = 0;
            for (const DeviceId device : state.devices()) {
                counters_.allocated += state.totals(device).allocated;
                reserved += state.totals(device).reserved;
            }
            allocated_.add(i, counters_.allocated);
            reserved_.add(i, reserved);
        }
        counters_.driver_allocs += event.kind == EventKind::kDeviceAlloc ||
                                           event.kind == EventKind::kAsyncAlloc ||
                                           event.kind == EventKind::kMap
                                       ? 1
                                       : 0;
        const RequestOutcome outcome = outcomes_->visit(i, event);
        counters_.ooms += is_out_of_memory(outcome) ? 1 : 0;
        counters_.retries += outcome == RequestOutcome::kRetry ? 1 : 0;
        for (; next_duration_ < timeline_.durations.size() &&
               timeline_.durations[next_duration_].first <= i;
             ++next_duration_) {
            counters_.driver_ns += timeline_.durations[next_duration_].second;
        }
        if (outcome == RequestOutcome::kCallOutOfMemory) {
            add_call(event, i, state);
        }
    }

    void end_phases(EventIndex end, EventIndex last) {
        for (; next_end_ < ends_.size() && ends_[next_end_].first == end; ++next_end_) {
            const Phase& phase = timeline_.phases[ends_[next_end_].second];
            const Counters& before = at_begin_[ends_[next_end_].second];
            PhaseTotals& totals = totals_of(phase);
            const StretchFigures figures = {
                .peak_allocated = allocated_.since(phase.begin),
                .peak_reserved = reserved_.since(phase.begin),
                .left_bytes = static_cast<std::int64_t>(counters_.allocated - before.allocated)};
            ranges_.push_back({ends_[next_end_].second, figures});
            ++totals.count;
            totals.time_ns +=
                std::max(timeline_.events[last].time_ns, timeline_.events[phase.begin].time_ns) -
                timeline_.events[phase.begin].time_ns;
            totals.figures.add(figures);
            totals.driver_allocs += counters_.driver_allocs - before.driver_allocs;
            totals.driver_ns += counters_.driver_ns - before.driver_ns;
            totals.retries += counters_.retries - before.retries;
            totals.ooms += counters_.ooms - before.ooms;
        }
    }

    void finish(RunMetrics* metrics) {
        const auto count = static_cast<EventIndex>(timeline_.events.size());
        if (count != 0) {
            end_phases(count, count - 1);
        }
        metrics->phases = std::move(totals_);
        metrics->call_ooms = std::move(call_ooms_);
    }

    std::vector<PhaseRange> take_ranges() { return std::move(ranges_); }

  private:
    PhaseTotals& totals_of(const Phase& phase) {
        const auto [row, is_new] = rows_.try_emplace({phase.name, phase.kind}, totals_.size());
        if (is_new) {
            PhaseTotals& totals = totals_.emplace_back();
            totals.name = text_of(timeline_, phase.name);
            totals.kind = phase.kind;
            if (phase.kind == RangeKind::kNvtx) {
                totals.library = library_of_range(totals.name);
            }
        }
        return totals_[row->second];
    }

    void add_call(const Event& event, EventIndex i, const RecordedState& state) {
        CallOutOfMemory call;
        call.event = i;
        call.function = text_of(timeline_, event.size_bytes);
        call.device_known = event.device != kUnknownDevice;
        call.allocated_bytes = state.totals(event.device).allocated;
        call.reserved_bytes = state.totals(event.device).reserved;
        call.free_bytes = state.totals(event.device).free_pool();
        call.largest_free_bytes = state.largest_free_bytes(event.device);
        if (state.sample(event.device).event != kNoEvent) {
            call.device_free_bytes = state.device_free_bytes(event.device);
        }
        call_ooms_.push_back(std::move(call));
    }

    const Timeline& timeline_;
    std::optional<RequestOutcomes> outcomes_;                 // set at the first event
    std::vector<std::pair<EventIndex, std::uint32_t>> ends_;  // (end, phase)
    std::vector<Counters> at_begin_;
    Counters counters_;
    MaximumSince allocated_;
    MaximumSince reserved_;
    std::vector<PhaseRange> ranges_;
    std::vector<PhaseTotals> totals_;
    std::vector<CallOutOfMemory> call_ooms_;
    // (name, kind): index into totals_.
    std::map<std::pair<std::uint32_t, RangeKind>, std::size_t> rows_;
    std::size_t next_begin_ = 0;
    std::size_t next_end_ = 0;
    std::size_t next_duration_ = 0;
};

PhaseMeasurement::PhaseMeasurement(const Timeline& timeline)
    : progress_(std::make_unique<Progress>(timeline)) {}

PhaseMeasurement::~PhaseMeasurement() = default;

void PhaseMeasurement::before(EventIndex i, const Event& /*event*/, const RecordedState&) {
    progress_->begin_phases(i);
}

void PhaseMeasurement::after(EventIndex i, const Event& event, const RecordedState& state) {
    progress_->count_event(i, event, state);
    progress_->end_phases(i, i);
}

void PhaseMeasurement::finish(RunMetrics* metrics) {
    progress_->finish(metrics);
}

std::vector<PhaseRange> PhaseMeasurement::take_ranges() {
    return progress_->take_ranges();
}

}  // namespace fragtrace::analyzer
