// Which requests of a recorded run failed, and which were refused first and served after all. The
// one place that counts them; docs/metrics.md, "Failed requests and retries", has the definition.
#pragma once

#include "analyzer/model/event.h"

#include <array>
#include <cstdint>
#include <functional>

namespace fragtrace::analyzer {

enum class RequestOutcome : std::uint8_t {
    kNone,             // the event ends no request, or one that was simply served
    kRetry,            // refused first, then served
    kOutOfMemory,      // of the pool; of the program itself where no pool was recorded
    kLibraryRefused,   // somebody beside the pool asked the driver, which refused
    kCallOutOfMemory,  // a call that is no allocation failed for want of memory
};

constexpr bool is_out_of_memory(RequestOutcome outcome) {
    return outcome != RequestOutcome::kNone && outcome != RequestOutcome::kRetry;
}

// Shown every event of a trace in its order.
class RequestOutcomes {
  public:
    // Whether a device has a pool whose blocks are recorded: RecordedState::has_block_layer().
    explicit RequestOutcomes(const std::function<bool(DeviceId)>& has_pool);

    // What the event is for its device.
    RequestOutcome visit(EventIndex index, const Event& event);

  private:
    struct Device {
        bool has_pool = false;
        bool refused = false;  // a request of the pool, that has not ended yet
        EventIndex library_event = kNoEvent;
        std::uint64_t library_bytes = 0;
    };

    RequestOutcome visit_refusal(EventIndex index, const Event& event);

    std::array<Device, kMaxDevices + 1> devices_ = {};
};

}  // namespace fragtrace::analyzer
