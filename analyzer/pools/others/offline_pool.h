// The bound `offline`: a plan made in advance decides each block's place. Its reserved memory is
// sufficient for a program that repeats itself exactly and plans its memory.
//
// One region per stream. A region grows by whole pages of 2 MiB and never shrinks. A request that
// is not in the plan runs out of memory. The plan is never changed. It must have been made for the
// requests that are replayed (replay/script_plan.h). Not thread-safe.
#pragma once

#include "analyzer/pools/block_table.h"
#include "analyzer/pools/pending_blocks.h"
#include "analyzer/pools/pool.h"
#include "analyzer/support/copied_members.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

struct PlannedBlock {
    BlockId block = 0;
    std::uint32_t region = 0;
    std::uint64_t offset_bytes = 0;
};

struct PoolPlan {
    std::vector<PlannedBlock> blocks;  // ascending by block
    std::vector<StreamId> regions;     // the stream of each region
    std::string method;                // the algorithm that placed the largest region
};

// Block sizes are rounded up to a multiple of this.
inline constexpr std::uint64_t kPlannedQuantumBytes = 512;

class OfflinePool final : public Pool {
  public:
    OfflinePool(std::string config,
                std::shared_ptr<const PoolPlan> plan,
                std::unique_ptr<Device> device);

    [[nodiscard]] std::string_view name() const override { return "offline"; }

    [[nodiscard]] std::string config() const override { return config_; }

    AllocateResult allocate(const Request& request) override;
    bool release(BlockId block, const std::vector<PendingOn>& pending) override;
    void complete(PendingId id) override;

    bool adopt(const HeapSnapshot& heap) override;

    [[nodiscard]] const PoolStatistics& statistics() const override { return statistics_; }

    [[nodiscard]] std::optional<Placement> find(BlockId block) const override;
    [[nodiscard]] HeapSnapshot snapshot() const override;

    [[nodiscard]] std::uint64_t rounded_bytes(std::uint64_t requested_bytes) const override;
    std::vector<DriverCall> take_driver_calls() override;

    [[nodiscard]] Device& device() override { return *device_; }

    [[nodiscard]] std::unique_ptr<Pool> clone() const override {
        return std::make_unique<OfflinePool>(*this);
    }

  private:
    struct Held {
        PlannedBlock place;
        std::uint64_t requested_bytes = 0;
        std::uint64_t size_bytes = 0;  // 0: the slot is free
        StreamId stream = 0;
        bool live = false;
    };

    const PlannedBlock* look_up(BlockId block);
    bool grow(std::uint32_t region, std::uint64_t end_bytes);
    void remove(BlockIndex slot);

    std::string config_;
    std::shared_ptr<const PoolPlan> plan_;
    std::size_t next_ = 0;  // position in the plan: most requests come in its order
    ClonePtr<Device> device_;
    std::vector<std::uint64_t> region_bytes_;
    BlockTable table_;
    std::vector<Held> slots_;
    std::vector<BlockIndex> free_slots_;
    PendingBlocks pending_;
    PoolStatistics statistics_;
    NotCopied<std::vector<DriverCall>> driver_calls_;
};

}  // namespace fragtrace::analyzer
