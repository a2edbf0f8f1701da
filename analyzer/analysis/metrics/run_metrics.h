// What a run did beside the memory of its devices' pools: time in driver calls, phases, host and
// managed memory, calls that failed for want of memory. docs/metrics.md has the definitions.
#pragma once

#include "analyzer/analysis/metrics/run_figures.h"
#include "analyzer/model/ledger.h"
#include "analyzer/model/timeline.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

// Calls of one kind to the driver. Times are 0 where they were not measured.
struct CallCosts {
    EventKind kind = EventKind::kNone;
    std::uint64_t count = 0;
    std::uint64_t total_ns = 0;
    std::uint64_t max_ns = 0;
};

// A request that the driver refused first: what getting the memory after all, or not, took.
struct RetryCost {
    EventIndex event = kNoEvent;  // the block alloc or out-of-memory that ended it
    std::uint64_t driver_ns = 0;  // in driver calls from the refusal on, it included
};

// All phases of one name and kind. What happens on any thread while it is open counts.
struct PhaseTotals {
    std::string name;
    RangeKind kind = RangeKind::kApi;
    std::string library;  // that marked it; empty for the program
    std::uint64_t count = 0;
    std::uint64_t time_ns = 0;
    StretchFigures figures;           // of all devices together
    std::uint64_t driver_allocs = 0;  // cudaMallocs, maps and their like
    std::uint64_t driver_ns = 0;
    std::uint64_t retries = 0;
    std::uint64_t ooms = 0;
};

// A call that is no allocation and failed for want of memory, with the state at that moment.
struct CallOutOfMemory {
    EventIndex event = kNoEvent;
    std::string function;
    std::uint64_t allocated_bytes = 0;
    std::uint64_t reserved_bytes = 0;
    std::uint64_t free_bytes = 0;  // in the pool
    std::uint64_t largest_free_bytes = 0;
    std::uint64_t device_free_bytes = 0;  // 0 = not known
};

// Memory that is no device's: live sums of which the peak is kept.
struct SideMemory {
    std::uint64_t peak_bytes = 0;
    std::uint64_t allocations = 0;
    EventIndex peak_event = kNoEvent;
    std::vector<std::pair<OriginId, std::uint64_t>> holders;  // at the peak, most bytes first
};

struct RunMetrics {
    std::vector<CallCosts> calls;  // most time first
    std::vector<RetryCost> retries;
    std::vector<PhaseTotals> phases;  // in the order in which they began first
    std::vector<CallOutOfMemory> call_ooms;
    SideMemory pinned;   // host memory, allocated pinned or registered
    SideMemory managed;  // virtual until touched
    std::uint64_t arrays = 0;
    std::uint64_t arrays_unknown = 0;    // of these, without a known size
    std::uint64_t stream_ordered = 0;    // allocations in a stream's order
    std::uint64_t imports = 0;           // memory of other processes, 0 bytes of ours
    std::uint64_t graph_peak_bytes = 0;  // reserved by launched graphs
    std::uint64_t modules = 0;
    std::uint64_t cut_stacks = 0;  // events whose stack reaches the limit of frames
};

// Measures all but `phases` and `call_ooms` (phase_metrics.h) during a walk.
class RunMeasurement : public LedgerWatcher {
  public:
    // The timeline must outlive the measurement.
    explicit RunMeasurement(const Timeline& timeline);
    ~RunMeasurement() override;

    void after(EventIndex i, const Event& event, const RecordedState& state) override;

    RunMetrics finish();

  private:
    class Progress;
    std::unique_ptr<Progress> progress_;
};

}  // namespace fragtrace::analyzer
