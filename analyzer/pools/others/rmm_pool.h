// RAPIDS RMM's pool_memory_resource: best fit over a list of free blocks per stream.
//
// A stream takes from its own list; then a block of another stream's list (and waits for that
// stream); then other lists are merged into its own, one by one; then the pool grows. Lists join
// neighbours of their own only. The lists of other streams are looked at with the default stream's
// first, then in the order of the stream numbers. Nothing is given back. Not thread-safe.
#pragma once

#include "analyzer/pools/others/segment_pool.h"
#include "analyzer/pools/pool_settings.h"
#include "analyzer/support/result.h"

#include <vector>

namespace fragtrace::analyzer {

// The largest free block of each list, in a tree: which list is the first that has one of some
// size.
class LargestByList {
  public:
    static constexpr std::uint32_t kNone = 0xffffffffu;

    void set(std::uint32_t list, std::uint64_t size_bytes);
    // From list `from` on; kNone = no list has. `size_bytes` > 0.
    [[nodiscard]] std::uint32_t first_with(std::uint64_t size_bytes, std::uint32_t from = 0) const;

    // Of all lists.
    [[nodiscard]] std::uint64_t largest() const { return tree_.empty() ? 0 : tree_[1]; }

    void clear() { tree_.clear(); }

  private:
    // Of node n the children are 2n and 2n+1; the second half are the lists.
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
    // kNoLimit has a meaning here.
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
