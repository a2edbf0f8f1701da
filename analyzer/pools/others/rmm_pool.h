// RAPIDS RMM's pool_memory_resource: best fit in one list of free blocks per stream.
//
// A stream first uses its own list, then a block of another stream's list (and waits for that
// stream). Next, other lists are merged into its own, one by one. Finally the pool grows. Only
// neighbours in the same list are merged. Other streams' lists are searched in this order: the
// default stream, then by stream number. The pool never shrinks. Not thread-safe.
#pragma once

#include "analyzer/pools/others/segment_pool.h"
#include "analyzer/pools/pool_settings.h"
#include "analyzer/support/result.h"

#include <vector>

namespace fragtrace::analyzer {

// Tree of the largest free block per list. It finds the first list that has a block of at least a
// given size.
class LargestByList {
  public:
    static constexpr std::uint32_t kNone = 0xffffffffu;

    void set(std::uint32_t list, std::uint64_t size_bytes);
    // Searches from list `from` on; kNone = no list has one. Requires `size_bytes` > 0.
    [[nodiscard]] std::uint32_t first_with(std::uint64_t size_bytes, std::uint32_t from = 0) const;

    // Largest free block of all lists.
    [[nodiscard]] std::uint64_t largest() const { return tree_.empty() ? 0 : tree_[1]; }

    void clear() { tree_.clear(); }

  private:
    // Node n has the children 2n and 2n+1. The second half of the nodes are the lists.
    std::vector<std::uint64_t> tree_;
};

class RmmPool final : public SegmentPool {
  public:
    static Result<std::unique_ptr<Pool>> make(std::string_view config,
                                              std::unique_ptr<Device> device,
                                              std::vector<std::uint64_t> stream_handles);

    [[nodiscard]] std::string_view name() const override { return "rmm-pool"; }

    AllocateResult allocate(const Request& request) override;
    [[nodiscard]] std::uint64_t largest_free_bytes(const Request& request) const override;
    [[nodiscard]] std::uint64_t rounded_bytes(std::uint64_t requested_bytes) const override;
    // Supports kNoLimit.
    bool relax(Relaxation relaxation) override;

    [[nodiscard]] std::unique_ptr<Pool> clone() const override {
        return std::make_unique<RmmPool>(*this);
    }

  private:
    using SegmentPool::SegmentPool;

    void freed(BlockIndex index) override;
    void forget() override;
    [[nodiscard]] std::uint32_t number_of(StreamId stream) const;
    void ensure_list(std::uint32_t number);
    void note_largest(std::uint32_t number);
    bool begin(StreamId stream);
    [[nodiscard]] BlockIndex find_in_other_list(std::uint64_t size_bytes) const;
    BlockIndex merge_other_lists(std::uint32_t own, std::uint64_t size_bytes);
    BlockIndex grow(std::uint32_t own, std::uint64_t size_bytes, StreamId stream);

    // Settings.
    Amount initial_ = {.percent = 50};
    std::uint64_t maximum_bytes_ = 0;  // 0 = none

    std::vector<std::uint64_t> stream_handles_;
    bool begun_ = false;
    FreeBlocks free_;
    std::vector<FreeBlocks::List> lists_;  // by number; number 0 is the default stream's
    std::vector<std::uint32_t> numbers_;   // by list
    LargestByList largest_;                // by number
};

}  // namespace fragtrace::analyzer
