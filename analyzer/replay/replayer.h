// Replays a script on a simulated pool and reports the outcome.
//
// Every function is pure: same script, same pool, same result. Safe to call from many threads with
// one pool each.
#pragma once

#include "analyzer/pools/pool.h"
#include "analyzer/replay/recorded_device.h"
#include "analyzer/replay/script.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

namespace fragtrace::analyzer {

// The components of reserved memory (docs/metrics.md). They add up to `reserved` exactly.
struct WasteSplit {
    std::uint64_t reserved = 0;
    std::uint64_t requested = 0;
    std::uint64_t rounding = 0;
    std::uint64_t slack = 0;
    std::uint64_t pending = 0;
    std::uint64_t releasable = 0;
    std::uint64_t inactive_split = 0;

    [[nodiscard]] std::uint64_t wasted() const {
        return rounding + slack + pending + releasable + inactive_split;
    }
};

// Converts a step to a request.
Request request_of(const Step& step);

WasteSplit waste_split(const Pool& pool);

// A request that failed or needed a retry.
struct Trouble {
    std::size_t step = 0;
    EventIndex event = kNoEvent;
    Outcome outcome = Outcome::kOutOfMemory;
    std::uint64_t requested_bytes = 0;
};

// The first point at which the program would see another result than in the recorded run. The
// replay shows what would have happened up to here. After it the program might behave differently.
struct Divergence {
    enum class Kind : std::uint8_t {
        kFails,       // a request that the recorded run served: out of memory in the replay
        kIsServed,    // a request that ran out of memory in the recording, and was the last one
        kGoesOn,      // as kIsServed, but the program continued: it might continue differently now
        kPoolLost,    // PyTorch loses a private pool (PoolStatistics::pool_lost)
        kFreeMemory,  // the program queried the free memory and would get another value
    };
    Kind kind = Kind::kFails;
    EventIndex event = kNoEvent;
    PoolStatistics statistics;  // after the request
    std::uint64_t ooms = 0;     // up to then, counted as in ReplayResult
    std::uint64_t retries = 0;
};

struct ReplayResult {
    PoolStatistics statistics;
    std::optional<Divergence> divergence;
    // State at the first maximum of reserved memory, after the request or the adoption of a
    // checkpoint completed.
    WasteSplit waste_at_peak;
    EventIndex peak_event = kNoEvent;
    std::vector<Trouble> troubles;  // OOMs and retries, in order
    // Failed requests outside the pool, including requests that bypass it.
    std::uint64_t libraries_failed = 0;
    // Smallest margin in bytes of a library's request; negative: its request was short by that
    // much.
    std::int64_t libraries_spare = std::numeric_limits<std::int64_t>::max();
    std::uint64_t requests_served = 0;
    // Smallest free memory of the device after a request that bypassed the pool, or after any
    // request while such memory is allocated.
    std::uint64_t least_free_bytes = ~std::uint64_t{0};
    // True if a request before the divergence was served only because small driver requests share
    // pages.
    bool pages_decide = false;

    // Counted like those of the recording (docs/metrics.md, "Failed requests and retries").
    // PyTorch's own statistics count differently.
    [[nodiscard]] std::uint64_t ooms() const;
    [[nodiscard]] std::uint64_t retries() const;
};

struct ReplayHooks {
    // Called before a step; return false to stop the replay there.
    std::function<bool(std::size_t step, Pool& pool)> before_step;
    // Called after each request.
    std::function<void(std::size_t step, const AllocateResult& result, Pool& pool)> after_request;
    // Called after a checkpoint was adopted.
    std::function<void(std::size_t step, Pool& pool)> after_adopt;
};

// A request that failed in the recorded run may succeed in this pool. Its block is then freed
// immediately, because the program never used it (docs/metrics.md, "After an OOM").
ReplayResult replay(const ReplayScript& script,
                    Pool& pool,
                    RecordedDevice* recorded = nullptr,
                    const ReplayHooks& hooks = {});

}  // namespace fragtrace::analyzer
