// What a recorded run did with the memory of one device: peaks, waste, driver calls and failed
// requests. docs/metrics.md has the definitions.
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

// An out-of-memory or a retry as the summary counts it; its event ended the request.
struct RecordedTrouble {
    EventIndex event = kNoEvent;
    bool retry = false;
};

inline constexpr std::size_t kMostRecordedTroubles = 2000;

struct DeviceMetrics {
    RunFigures summary;
    std::vector<RecordedTrouble> troubles;  // the first kMostRecordedTroubles of the summary's
    std::optional<std::uint64_t> first_oom_ns;
    bool block_layer = false;  // false: the device's own allocations were counted as blocks
    std::uint64_t blocks = 0;  // of the pool; device allocations where there is no block layer
    // The pool's memory at one moment is all that is known: no request was recorded.
    bool state_only = false;

    EventIndex peak_event = kNoEvent;  // brought reserved to its maximum
    // The state that waste_at_peak splits is that of all events before this one; 0 = none.
    EventIndex peak_state_end = 0;

    // From the last report of the driver; all 0 when there was none.
    std::uint64_t total_bytes = 0;
    std::uint64_t capacity_bytes = 0;            // budget of the pool at that moment
    std::uint64_t context_and_others_bytes = 0;  // total - capacity: context, libraries, others
    BesidePool beside_pool;                      // against the moment of the report
    MemorySample last_sample;                    // the driver's last report

    std::uint64_t violations = 0;  // of the whole trace
    std::uint64_t after_gap = 0;   // what would be violations but follows from gaps in recording
};

// Measures one device during a walk. What it holds is in proportion to what the process holds.
class DeviceMeasurement : public LedgerWatcher {
  public:
    // `at_peak`: called with the state that waste_at_peak splits, of each new maximum of reserved
    // memory.
    explicit DeviceMeasurement(DeviceId device,
                               std::function<void(const RecordedState&)> at_peak = {});
    DeviceMeasurement(DeviceMeasurement&&) noexcept;
    ~DeviceMeasurement() override;

    void before(EventIndex i, const Event& event, const RecordedState& state) override;
    void after(EventIndex i, const Event& event, const RecordedState& state) override;

    // `state`: that of all events.
    DeviceMetrics finish(const RecordedState& state);

  private:
    class Progress;
    std::unique_ptr<Progress> progress_;
};

// What the recorder was told of the device, or "unknown device".
std::string device_name(const Timeline& timeline, DeviceId device);

// The split of what is reserved right now; adds up exactly.
WasteSplit waste_split(const RecordedState& state, DeviceId device);

}  // namespace fragtrace::analyzer
