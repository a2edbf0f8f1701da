// Replays a script on a simulated pool and reports the outcome.
//
// Every function is pure: same script, same pool, same result. Safe to call from many threads with
// one pool each.
#pragma once

#include "analyzer/pools/pool.h"
#include "analyzer/replay/script.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace fragtrace::analyzer {

// Grants what the recorded driver granted. It refuses a request where the recording has a refusal
// of the same size, in the same step, and after at least as many granted requests. It grants
// everything else.
class RecordedDevice final : public Device {
  public:
    RecordedDevice(std::uint64_t total_bytes, std::uint64_t capacity_bytes)
        : total_bytes_(total_bytes), capacity_bytes_(capacity_bytes) {}

    [[nodiscard]] std::uint64_t total_bytes() const override { return total_bytes_; }

    [[nodiscard]] std::uint64_t free_bytes() const override {
        return capacity_bytes_ > used_bytes_ ? capacity_bytes_ - used_bytes_ : 0;
    }

    bool take(std::uint64_t size_bytes) override;

    void give_back(std::uint64_t size_bytes) override { used_bytes_ -= size_bytes; }

    void give_back_all() override { used_bytes_ = 0; }

    [[nodiscard]] std::unique_ptr<Device> clone() const override {
        return std::make_unique<RecordedDevice>(*this);
    }

    // Call before each step, with the refusals recorded in it and the segments allocated in it.
    void expect(std::span<const RefusedTake> refusals, std::span<const ObtainedSegment> obtained) {
        refusals_ = refusals;
        granted_ = 0;
        obtained_ = obtained;
        address_ = 0;
    }

    [[nodiscard]] std::uint64_t recorded_address() const override { return address_; }

    [[nodiscard]] std::uint64_t capacity_bytes() const { return capacity_bytes_; }

    void set_capacity(std::uint64_t bytes) { capacity_bytes_ = bytes; }

    // From here on the capacity decides. Verdicts use it for requests that were not recorded.
    void decide_by_capacity() { by_capacity_ = true; }

  private:
    std::uint64_t total_bytes_;
    std::uint64_t capacity_bytes_;
    std::uint64_t used_bytes_ = 0;
    std::span<const RefusedTake> refusals_;  // not yet used in this step
    std::uint32_t granted_ = 0;              // grants in this step
    std::span<const ObtainedSegment> obtained_;
    std::uint64_t address_ = 0;
    bool by_capacity_ = false;
};

// The components of reserved memory (docs/metrics.md). They add up to `reserved` exactly.
struct WasteSplit {
    std::uint64_t reserved = 0;
    std::uint64_t requested = 0;
    std::uint64_t rounding = 0;
    std::uint64_t slack = 0;
    std::uint64_t pending = 0;
    std::uint64_t releasable = 0;
    std::uint64_t inactive_split = 0;
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
