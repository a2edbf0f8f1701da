// Metrics of phases, and calls that failed because of too little memory. These parts of a run's
// metrics need the recorded state.
#pragma once

#include "analyzer/analysis/metrics/run_metrics.h"
#include "analyzer/model/ledger.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace fragtrace::analyzer {

// One range of a phase. PhaseTotals adds these up.
struct PhaseRange {
    std::uint32_t phase = 0;  // index into Timeline::phases
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

    // Ranges in the order in which they ended. Valid after finish().
    [[nodiscard]] std::vector<PhaseRange> take_ranges();

  private:
    class Progress;
    std::unique_ptr<Progress> progress_;
};

}  // namespace fragtrace::analyzer
