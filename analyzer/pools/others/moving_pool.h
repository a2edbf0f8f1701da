// The bounds `live`, `compact` and `pages`: one pool whose live blocks may move at every request.
// It has no holes, so what it reserves is what nobody who follows the same rounding can undercut
// (docs/metrics.md, section Bounds).
//
// What it holds of the device is the sum of its blocks, changed with every request; it makes no
// driver calls worth counting. Places are told as if the blocks lay packed, oldest first, and are
// good until the next call. Memory of a CUDA graph's pool is in use whatever its blocks say: the
// most it ever held stays held until nobody uses the pool any more. Not thread-safe.
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

// What tells the bounds apart.
struct MovingRules {
    std::string_view name;
    std::uint64_t quantum_bytes = 1;  // blocks are rounded up to this
    // Not 0: blocks of this size and more take whole pages, smaller ones share pages.
    std::uint64_t page_bytes = 0;
    bool waits_for_streams = true;  // a block that another stream still reads stays
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
    // Blocks move anyway: any place will do.
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
        std::uint64_t age = 0;  // ascending with every request
        std::uint64_t requested_bytes = 0;
        std::uint64_t size_bytes = 0;  // 0: the slot is free
        BlockId block = 0;
        std::uint32_t private_pool = 0;
        StreamId stream = 0;
        bool live = false;
    };

    // Bytes that need pages of their own, and bytes that share them.
    struct Amount {
        std::uint64_t whole_bytes = 0;
        std::uint64_t shared_bytes = 0;

        [[nodiscard]] std::uint64_t bytes() const { return whole_bytes + shared_bytes; }
    };

    // A private pool.
    struct Private {
        Amount now = {};
        std::uint64_t most_bytes = 0;     // held at any time since it keeps
        std::uint64_t adopted_bytes = 0;  // the segments that it came with
        bool keeps = false;               // of a graph that may be launched
    };

    [[nodiscard]] Amount amount_of(std::uint64_t size_bytes) const;
    [[nodiscard]] std::uint64_t bytes_of(const Amount& amount) const;
    [[nodiscard]] bool keeps(std::uint32_t private_pool) const;
    // Of a keeping pool its number, 0 for all others.
    [[nodiscard]] std::uint32_t segment_of(const Held& held) const;
    // Counts a block in or out.
    void count(const Held& held, bool in);
    // Takes from the device or gives back what the sums say. False: it has not so much.
    bool settle();
    void remove(BlockIndex slot);
    void clear();

    MovingRules rules_;
    ClonePtr<Device> device_;
    std::uint64_t taken_bytes_ = 0;  // of the device
    BlockTable table_;
    std::vector<Held> slots_;
    std::vector<BlockIndex> free_slots_;
    PendingBlocks pending_;
    std::uint64_t next_age_ = 0;
    Amount movable_;                // of all blocks but those of pools that keep
    std::uint64_t kept_bytes_ = 0;  // by pools that keep
    std::map<std::uint32_t, Private> private_pools_;
    PoolStatistics statistics_;
};

}  // namespace fragtrace::analyzer
