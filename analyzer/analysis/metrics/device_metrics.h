// Metrics of a recorded run on one device: peaks, waste, driver calls and failed requests.
// docs/metrics.md has the definitions.
#pragma once

#include "analyzer/analysis/metrics/run_figures.h"
#include "analyzer/model/ledger.h"
#include "analyzer/model/timeline.h"
#include "analyzer/replay/beside_pool.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace fragtrace::analyzer {

// An out-of-memory or a retry as the summary counts it. `event` is the one that ended the request.
struct RecordedTrouble {
    EventIndex event = kNoEvent;
    bool retry = false;
};

inline constexpr std::size_t kMostRecordedTroubles = 2000;

struct DeviceMetrics {
    RunFigures summary;
    std::vector<RecordedTrouble> troubles;  // the first kMostRecordedTroubles that `summary` counts
    std::optional<std::uint64_t> first_oom_ns;
    bool block_layer = false;  // false: the device's own allocations were counted as blocks
    std::uint64_t blocks = 0;  // of the pool; without a block layer, device allocations
    // Only the pool's memory at one moment is known: no request was recorded.
    bool state_only = false;

    EventIndex peak_event = kNoEvent;  // the event at which reserved reached its maximum
    // waste_at_peak splits the state after all events before this one; 0 = there is no peak.
    EventIndex peak_state_end = 0;

    // Total and capacity come from a report of the driver. All are 0 if there is no report.
    std::uint64_t total_bytes = 0;
    std::uint64_t capacity_bytes = 0;            // bytes for the pool at that moment
    std::uint64_t context_and_others_bytes = 0;  // total - capacity: context, libraries, others
    BesidePool beside_pool;                      // compares other moments with that report
    MemorySample last_sample;                    // the driver's last report in the trace
    // The most bytes of segments that had no memory (sleep modes) after any request.
    std::uint64_t peak_unmapped = 0;

    std::uint64_t violations = 0;  // broken invariants in the whole trace
    // Events that would be violations but follow from gaps in recording.
    std::uint64_t after_gap = 0;
};

// Measures one device while a Ledger walks the trace. Its memory grows with what the process has
// allocated at a time, not with the length of the trace.
class DeviceMeasurement : public LedgerWatcher {
  public:
    // `at_peak` is called whenever reserved memory has reached a new maximum, with the state that
    // waste_at_peak splits. The last call is the peak.
    explicit DeviceMeasurement(DeviceId device,
                               std::function<void(const RecordedState&)> at_peak = {});
    DeviceMeasurement(DeviceMeasurement&&) noexcept;
    ~DeviceMeasurement() override;

    void before(EventIndex i, const Event& event, const RecordedState& state) override;
    void after(EventIndex i, const Event& event, const RecordedState& state) override;

    // `state` is the state after all events.
    DeviceMetrics finish(const RecordedState& state);

  private:
    class Progress;
    std::unique_ptr<Progress> progress_;
};

// The device's name as recorded, or "unknown device".
std::string device_name(const Timeline& timeline, DeviceId device);

// Splits the currently reserved bytes. The parts add up exactly.
WasteSplit waste_split(const RecordedState& state, DeviceId device);

}  // namespace fragtrace::analyzer
