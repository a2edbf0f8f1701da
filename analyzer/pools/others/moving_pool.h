// The bounds `live`, `compact` and `pages`: a pool whose live blocks may move at every request. It
// has no free memory between blocks, so its reserved memory is a lower bound for every allocator
// with the same rounding (docs/metrics.md, section Bounds).
//
// It uses the sum of its blocks on the device, updated with every request, and reports no driver
// calls. Placements are reported as if the blocks lay packed, oldest first, and are valid until the
// next call. The memory of a CUDA graph's pool stays in use whatever its blocks are: its maximum
// stays reserved until the pool has no users any more. Not thread-safe.
#pragma once

#include "analyzer/pools/block_table.h"
#include "analyzer/pools/pending_blocks.h"
#include "analyzer/pools/pool.h"
#include "analyzer/support/copied_members.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

// The rules in which the three bounds differ.
struct MovingRules {
    std::string_view name;
    std::uint64_t quantum_bytes = 1;  // block sizes are rounded up to a multiple of this
    // If not 0: blocks of at least this size use whole pages of this size, and smaller blocks share
    // pages.
    std::uint64_t page_bytes = 0;
    bool waits_for_streams = true;  // a freed block stays while another stream still uses it
};

inline constexpr MovingRules kLiveRules = {.name = "live", .waits_for_streams = false};
inline constexpr MovingRules kCompactRules = {.name = "compact", .quantum_bytes = 512};
inline constexpr MovingRules kPagesRules = {.name = "pages", .page_bytes = std::uint64_t{2} << 20};

class MovingPool final : public Pool {
  public:
    MovingPool(const MovingRules& rules, std::unique_ptr<Device> device)
        : rules_(rules), device_(std::move(device)) {}

    [[nodiscard]] std::string_view name() const override { return rules_.name; }

    [[nodiscard]] std::string config() const override { return {}; }

    AllocateResult allocate(const Request& request) override;
    bool release(BlockId block, const std::vector<PendingOn>& pending) override;
    void complete(PendingId id) override;

    bool adopt(const HeapSnapshot& heap) override;
    // Ignores the place, because blocks may move at any time.
    bool allocate_at(const Request& request, const Placement& place) override;
    void set_private_pool(std::uint32_t private_pool, const PrivatePoolOptions& options) override;

    [[nodiscard]] const PoolStatistics& statistics() const override { return statistics_; }

    [[nodiscard]] std::optional<Placement> find(BlockId block) const override;
    [[nodiscard]] HeapSnapshot snapshot() const override;

    [[nodiscard]] std::uint64_t rounded_bytes(std::uint64_t requested_bytes) const override;

    std::vector<DriverCall> take_driver_calls() override { return {}; }

    [[nodiscard]] Device& device() override { return *device_; }

    [[nodiscard]] std::unique_ptr<Pool> clone() const override {
        return std::make_unique<MovingPool>(*this);
    }

  private:
    struct Held {
        std::uint64_t age = 0;  // increases with every request
        std::uint64_t requested_bytes = 0;
        std::uint64_t size_bytes = 0;  // 0: the slot is free
        BlockId block = 0;
        std::uint32_t private_pool = 0;
        StreamId stream = 0;
        bool live = false;
    };

    // Bytes in whole pages, and bytes in shared pages.
    struct Amount {
        std::uint64_t whole_bytes = 0;
        std::uint64_t shared_bytes = 0;

        [[nodiscard]] std::uint64_t bytes() const { return whole_bytes + shared_bytes; }
    };

    // A private pool.
    struct Private {
        Amount now = {};
        std::uint64_t most_bytes = 0;     // maximum since `keeps` was set
        std::uint64_t adopted_bytes = 0;  // size of the segments that adopt() gave this pool
        bool keeps = false;               // belongs to a graph that may still be launched
    };

    [[nodiscard]] Amount amount_of(std::uint64_t size_bytes) const;
    [[nodiscard]] std::uint64_t bytes_of(const Amount& amount) const;
    [[nodiscard]] bool keeps(std::uint32_t private_pool) const;
    // The block's private pool if that pool keeps its memory, else 0.
    [[nodiscard]] std::uint32_t segment_of(const Held& held) const;
    // Adds a block to the sums or subtracts it.
    void count(const Held& held, bool in);
    // Allocates or releases device memory until it matches the sums. Returns false if the device
    // has too little.
    bool settle();
    void remove(BlockIndex slot);
    void clear();

    MovingRules rules_;
    ClonePtr<Device> device_;
    std::uint64_t taken_bytes_ = 0;  // allocated from the device
    BlockTable table_;
    std::vector<Held> slots_;
    std::vector<BlockIndex> free_slots_;
    PendingBlocks pending_;
    std::uint64_t next_age_ = 0;
    Amount movable_;                // all blocks except those of pools that keep their memory
    std::uint64_t kept_bytes_ = 0;  // in pools that keep their memory
    std::map<std::uint32_t, Private> private_pools_;
    PoolStatistics statistics_;
};

}  // namespace fragtrace::analyzer
