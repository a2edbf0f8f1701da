// What a recorded run did with the memory of one device: peaks, waste, segments and troubles. One
// pass over the events; docs/metrics.md has the definitions.
#pragma once

#include "analyzer/analysis/metrics/maximum_history.h"
#include "analyzer/analysis/metrics/memory_summary.h"
#include "analyzer/model/recorded_state.h"
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
    MemorySummary summary;
    std::vector<RecordedTrouble> troubles;  // the first kMostRecordedTroubles of the summary's
    std::optional<std::uint64_t> first_oom_ns;
    bool block_layer = false;  // false: the device's own allocations were counted as blocks
    // The pool's memory at one moment is all that is known: no request was recorded.
    bool state_only = false;

    EventIndex peak_event = kNoEvent;  // brought reserved to its maximum
    std::uint64_t driver_time_ns = 0;  // in allocating and freeing calls; 0 = not measured

    // From the last report of the driver; all 0 when there was none.
    std::uint64_t total_bytes = 0;
    std::uint64_t capacity_bytes = 0;            // budget of the pool at that moment
    std::uint64_t context_and_others_bytes = 0;  // total - capacity: context, libraries, others
    BesidePool beside_pool;                      // against the moment of the report

    std::uint64_t violations = 0;  // of the whole trace
    std::uint64_t after_gap = 0;   // what would be violations but follows from gaps in recording
};

// The measurement itself, for events that come one by one; what it holds is in proportion to what
// the process holds.
class DeviceMeasurement {
  public:
    // `state`: at its start, and told of all devices. `at_peak`: called each time that the state of
    // now is the one to split, the last time for the peak.
    DeviceMeasurement(RecordedState state, DeviceId device, std::function<void()> at_peak = {});
    DeviceMeasurement(DeviceMeasurement&&) noexcept;
    ~DeviceMeasurement();

    // The i-th event, and its pool.
    void visit(EventIndex i, const Event& event, std::uint32_t pool);
    void add_call_time(const Event& event, std::uint64_t duration_ns);

    [[nodiscard]] const RecordedState& recorded() const;

    DeviceMetrics finish();

  private:
    class State;
    std::unique_ptr<State> state_;
};

// What the recorder was told of the device, or "unknown device".
std::string device_name(const Timeline& timeline, DeviceId device);

// `peaks`, if given, is told of what was allocated and reserved after each event.
DeviceMetrics measure_device(const Timeline& timeline,
                             DeviceId device,
                             PeakHistory* peaks = nullptr);

// The split of what is reserved right now; adds up exactly.
WasteSplit waste_split(const RecordedState& state, DeviceId device);

}  // namespace fragtrace::analyzer
