// What no record says, and what replays take for it: one flag each (--pending, --driver-page,
// --context), named under "assumptions".
#pragma once

#include "analyzer/replay/script.h"

#include <cstdint>
#include <optional>

namespace fragtrace::analyzer {

// When a block that other streams used is free for reuse, once its owner has freed it.
enum class PendingRule : std::uint8_t {
    kRecorded,  // when the recorded pool saw it
    kAtOnce,    // at the next request: the most that any device can do
    kNever,     // not before the pool itself waits for the device: the least
};

struct ReplayAssumptions {
    PendingRule pending = PendingRule::kRecorded;
    std::uint64_t driver_page_bytes = std::uint64_t{2} << 20;  // what one driver request takes
    // What context and other holders take of the card; nullopt = as recorded.
    std::optional<std::uint64_t> context_bytes;
};

// Rewrites a script's completions; kRecorded leaves it alone.
void assume_pending(PendingRule rule, ReplayScript* script);

}  // namespace fragtrace::analyzer
