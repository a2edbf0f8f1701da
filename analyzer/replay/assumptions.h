// Facts that no recording contains, and the values that replays assume for them. Each has an option
// (--pending, --driver-page, --context) and is listed under "assumptions" in reports.
#pragma once

#include "analyzer/replay/script.h"
#include "analyzer/support/units.h"

#include <cstdint>
#include <optional>

namespace fragtrace::analyzer {

// When a freed block that other streams used becomes reusable.
enum class PendingRule : std::uint8_t {
    kRecorded,  // when the recorded pool noticed it
    kAtOnce,    // at the next request: the earliest possible time on any device
    kNever,     // not before the pool itself waits for the device: the latest possible time
};

struct ReplayAssumptions {
    PendingRule pending = PendingRule::kRecorded;
    std::uint64_t driver_page_bytes = kDriverPageBytes;  // the driver's page size
    // Bytes of the card used by the CUDA context and by others outside the pool; nullopt = as
    // recorded.
    std::optional<std::uint64_t> context_bytes;
};

// Changes when cross-stream events complete in a script. kRecorded changes nothing.
void assume_pending(PendingRule rule, ReplayScript* script);

}  // namespace fragtrace::analyzer
