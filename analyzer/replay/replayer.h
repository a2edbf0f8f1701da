// Drives a simulated pool with a script and says what came of it.
//
// Every function is pure: same script, same pool, same result; safe to call from many threads
// with one pool each.
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

// Grants what the recorded driver granted. It refuses a request where the record has a refusal of
// the same size, in the same step and after at least as many granted requests. It grants everything
// else.
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

    // Before each step: the refusals recorded in it, and what was obtained in it.
    void expect(std::span<const RefusedTake> refusals, std::span<const ObtainedSegment> obtained) {
        refusals_ = refusals;
        granted_ = 0;
        obtained_ = obtained;
        address_ = 0;
    }

    [[nodiscard]] std::uint64_t recorded_address() const override { return address_; }

    // After the record ends to matter (verdicts try what was not recorded): capacity decides.
    void decide_by_capacity() { by_capacity_ = true; }

  private:
    std::uint64_t total_bytes_;
    std::uint64_t capacity_bytes_;
    std::uint64_t used_bytes_ = 0;
    std::span<const RefusedTake> refusals_;  // to come in this step
    std::uint32_t granted_ = 0;              // in this step
    std::span<const ObtainedSegment> obtained_;
    std::uint64_t address_ = 0;
    bool by_capacity_ = false;
};

// The split of reserved memory (docs/metrics.md): the parts add up to reserved exactly.
struct WasteSplit {
    std::uint64_t reserved = 0;
    std::uint64_t requested = 0;
    std::uint64_t rounding = 0;
    std::uint64_t slack = 0;
    std::uint64_t pending = 0;
    std::uint64_t releasable = 0;
    std::uint64_t inactive_split = 0;
};

// What a step asks of a pool.
Request request_of(const Step& step);

WasteSplit waste_split(const Pool& pool);

// A request that did not go smoothly.
struct Trouble {
    std::size_t step = 0;
    EventIndex event = kNoEvent;
    Outcome outcome = Outcome::kOutOfMemory;
    std::uint64_t requested_bytes = 0;
};

// Where a replay first shows the program something else than the recorded run did. Up to here the
// replay is what would have happened; from here on the program may do other things.
struct Divergence {
    enum class Kind : std::uint8_t {
        kFails,       // a request that was served: out of memory here
        kIsServed,    // a request that ran out of memory, and nothing was recorded after it
        kGoesOn,      // likewise, but the program went on in a way in which it may not here
        kPoolLost,    // PyTorch loses a private pool: PoolStatistics::pool_lost
        kFreeMemory,  // the program asked how much memory is free: another amount is
    };
    Kind kind = Kind::kFails;
    EventIndex event = kNoEvent;
    PoolStatistics statistics;  // after the request
    std::uint64_t ooms = 0;     // up to then, as ReplayResult counts
    std::uint64_t retries = 0;
};

struct ReplayResult {
    PoolStatistics statistics;
    std::optional<Divergence> divergence;
    // After the request completed, or the checkpoint was taken over, at the first maximum of
    // reserved.
    WasteSplit waste_at_peak;
    EventIndex peak_event = kNoEvent;
    std::vector<Trouble> troubles;       // OOMs and retries, in order
    std::uint64_t libraries_failed = 0;  // requests beside the pool for which too little was left,
                                         // those past it included
    // The least that such a request would have left free; negative: it failed by so much.
    std::int64_t libraries_spare = std::numeric_limits<std::int64_t>::max();
    std::uint64_t requests_served = 0;
    // The least that was free on the device after a request past the pool, or after any while such
    // memory is held.
    std::uint64_t least_free_bytes = ~std::uint64_t{0};
    // Before the replay parted a request was served that would not have been if small requests of
    // the driver shared no page.
    bool pages_decide = false;

    // As the record's are counted (docs/metrics.md, "Failed requests and retries"); PyTorch's own
    // statistics count otherwise.
    [[nodiscard]] std::uint64_t ooms() const;
    [[nodiscard]] std::uint64_t retries() const;
};

struct ReplayHooks {
    // Called before a step; return false to stop the replay there.
    std::function<bool(std::size_t step, Pool& pool)> before_step;
    // Called after each request.
    std::function<void(std::size_t step, const AllocateResult& result, Pool& pool)> after_request;
    // Called after what a checkpoint tells was taken over.
    std::function<void(std::size_t step, Pool& pool)> after_adopt;
};

// What happens to a block whose request the recorded run could not serve but this pool can: the
// program never used it, so it is given back at once (docs/metrics.md, "After an OOM").
ReplayResult replay(const ReplayScript& script,
                    Pool& pool,
                    RecordedDevice* recorded = nullptr,
                    const ReplayHooks& hooks = {});

}  // namespace fragtrace::analyzer
