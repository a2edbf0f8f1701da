// Metrics of a run outside its devices' pools: time in driver calls, phases, host and managed
// memory, calls that failed because of too little memory. docs/metrics.md has the definitions.
#pragma once

#include "analyzer/analysis/metrics/run_figures.h"
#include "analyzer/analysis/metrics/side_memory.h"
#include "analyzer/model/ledger.h"
#include "analyzer/model/timeline.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

// Driver calls of one kind. Times are 0 if they were not measured.
struct CallCosts {
    EventKind kind = EventKind::kNone;
    std::uint64_t count = 0;
    std::uint64_t total_ns = 0;
    std::uint64_t max_ns = 0;
};

// The cost of a request that the driver refused at first, whether it succeeded afterwards or not.
struct RetryCost {
    EventIndex event = kNoEvent;  // the block allocation or out-of-memory that ended the request
    // Time in driver calls from the refusal on, the refused call included.
    std::uint64_t driver_ns = 0;
};

// All phases of one name and kind. Counts what any thread does while such a phase is open.
struct PhaseTotals {
    std::string name;
    RangeKind kind = RangeKind::kApi;
    std::string library;  // library that marked it; empty = the program itself
    std::uint64_t count = 0;
    std::uint64_t time_ns = 0;
    StretchFigures figures;           // all devices together
    std::uint64_t driver_allocs = 0;  // cudaMallocs, maps and stream-ordered allocations
    std::uint64_t driver_ns = 0;
    std::uint64_t retries = 0;
    std::uint64_t ooms = 0;
};

// A call other than an allocation that failed because of too little memory, with the state at that
// moment.
struct CallOutOfMemory {
    EventIndex event = kNoEvent;
    std::string function;
    bool device_known = true;  // false: the state is not known
    std::uint64_t allocated_bytes = 0;
    std::uint64_t reserved_bytes = 0;
    std::uint64_t free_bytes = 0;  // in the pool
    std::uint64_t largest_free_bytes = 0;
    std::optional<std::uint64_t> device_free_bytes;
};

struct RunMetrics {
    std::vector<CallCosts> calls;  // most time first
    std::vector<RetryCost> retries;
    std::vector<PhaseTotals> phases;  // in the order in which they began first
    std::vector<CallOutOfMemory> call_ooms;
    SideMemory pinned;   // pinned or registered host memory
    SideMemory managed;  // managed memory; it is virtual until touched
    std::uint64_t arrays = 0;
    std::uint64_t arrays_unknown = 0;    // arrays without a known size
    std::uint64_t stream_ordered = 0;    // stream-ordered allocations
    std::uint64_t imports = 0;           // memory of other processes; counts 0 bytes here
    std::uint64_t graph_peak_bytes = 0;  // reserved by launched CUDA graphs
    std::uint64_t modules = 0;
    std::uint64_t cut_stacks = 0;  // events whose stack reaches the recorder's limit of frames
};

// Measures everything but `phases` and `call_ooms` while a Ledger walks the trace. phase_metrics.h
// measures those two.
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
