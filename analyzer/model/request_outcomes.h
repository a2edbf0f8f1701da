// Which requests of a recorded run failed, and which were refused at first and served later. All
// reports count with this class; docs/metrics.md, "Failed requests and retries", has the
// definition.
#pragma once

#include "analyzer/model/event.h"

#include <array>
#include <cstdint>
#include <functional>

namespace fragtrace::analyzer {

enum class RequestOutcome : std::uint8_t {
    kNone,             // the event ends no request, or a request served at once
    kRetry,            // refused first, then served
    kOutOfMemory,      // of the pool; without a recorded pool, of the program itself
    kLibraryRefused,   // the driver refused a caller outside the pool
    kCallOutOfMemory,  // a call other than an allocation failed for lack of memory
};

constexpr bool is_out_of_memory(RequestOutcome outcome) {
    return outcome != RequestOutcome::kNone && outcome != RequestOutcome::kRetry;
}

// visit() must see every event of a trace, in order.
class RequestOutcomes {
  public:
    // `has_pool` says whether a device has a pool with recorded blocks
    // (RecordedState::has_block_layer()).
    explicit RequestOutcomes(const std::function<bool(DeviceId)>& has_pool);

    // The outcome of the request that this event ends.
    RequestOutcome visit(EventIndex index, const Event& event);

  private:
    struct Device {
        bool has_pool = false;
        bool refused = false;  // the pool's request in progress was refused
        EventIndex library_event = kNoEvent;
        std::uint64_t library_bytes = 0;
    };

    RequestOutcome visit_refusal(EventIndex index, const Event& event);

    std::array<Device, kMaxDevices + 1> devices_ = {};
};

}  // namespace fragtrace::analyzer
