// CuPy's default memory pool (cupy.cuda.MemoryPool; source: cupy/cuda/memory.pyx).
//
// Requests round to 512 bytes. Each stream has an arena of its own: best fit among its free blocks,
// the lowest address on ties (CuPy takes any of them). A block is always split. If none fits, the
// driver allocates exactly the rounded request. If it refuses, all wholly free segments of all
// arenas are released, and it is asked again. The same happens at the limit (since CuPy 13). A
// request that is larger than the limit itself fails at once, and releases nothing. CuPy also runs
// Python's garbage collector before its third attempt. A replay cannot know what that would free.
// Not thread-safe.
#pragma once

#include "analyzer/pools/others/segment_pool.h"
#include "analyzer/pools/pool_settings.h"
#include "analyzer/support/result.h"

namespace fragtrace::analyzer {

class CupyPool final : public SegmentPool {
  public:
    static Result<std::unique_ptr<Pool>> make(std::string_view config,
                                              std::unique_ptr<Device> device);

    [[nodiscard]] std::string_view name() const override { return "cupy"; }

    AllocateResult allocate(const Request& request) override;
    [[nodiscard]] std::uint64_t largest_free_bytes(const Request& request) const override;
    [[nodiscard]] std::uint64_t releasable_bytes() const override;
    [[nodiscard]] std::uint64_t rounded_bytes(std::uint64_t requested_bytes) const override;
    void empty_cache() override;
    // Supports kReleaseFree and kNoLimit.
    bool relax(Relaxation relaxation) override;

    [[nodiscard]] std::unique_ptr<Pool> clone() const override {
        return std::make_unique<CupyPool>(*this);
    }

  private:
    using SegmentPool::SegmentPool;

    void freed(BlockIndex index) override;
    void forget() override;
    FreeBlocks::List arena_of(StreamId stream);

    // Settings.
    Amount limit_;  // of the card; 0 = none

    std::uint64_t limit_bytes_ = 0;
    FreeBlocks free_;
    std::map<StreamId, FreeBlocks::List> arenas_;
};

}  // namespace fragtrace::analyzer
