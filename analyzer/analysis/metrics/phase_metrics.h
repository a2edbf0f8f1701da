// What happened while phases were open, and calls that failed for want of memory: the parts of a
// run's metrics that need the recorded state.
#pragma once

#include "analyzer/analysis/metrics/run_metrics.h"
#include "analyzer/model/ledger.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace fragtrace::analyzer {

// One range of a phase. PhaseTotals sums these up.
struct PhaseRange {
    std::uint32_t phase = 0;  // in Timeline::phases
    StretchFigures figures;
};

class PhaseMeasurement : public LedgerWatcher {
  public:
    // The timeline must outlive the measurement.
    explicit PhaseMeasurement(const Timeline& timeline);
    ~PhaseMeasurement() override;

    void before(EventIndex i, const Event& event, const RecordedState& state) override;
    void after(EventIndex i, const Event& event, const RecordedState& state) override;

    // Fills `phases` and `call_ooms`.
    void finish(RunMetrics* metrics);

    // In the order in which they ended. Valid after finish().
    [[nodiscard]] std::vector<PhaseRange> take_ranges();

  private:
    class Progress;
    std::unique_ptr<Progress> progress_;
};

}  // namespace fragtrace::analyzer
