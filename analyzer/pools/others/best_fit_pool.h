// A reference for comparison: best fit in one heap that grows at its end and merges free neighbours
// immediately.
//
// A request gets the smallest free block between live blocks that is large enough, and the lowest
// of equal ones. It gets the end of the heap only if there is no such block. Streams are ignored,
// and the heap never shrinks. Not thread-safe.
#pragma once

#include "analyzer/pools/others/segment_pool.h"
#include "analyzer/support/result.h"

namespace fragtrace::analyzer {

class BestFitPool final : public SegmentPool {
  public:
    static Result<std::unique_ptr<Pool>> make(std::string_view config,
                                              std::unique_ptr<Device> device);

    [[nodiscard]] std::string_view name() const override { return "best-fit"; }

    AllocateResult allocate(const Request& request) override;
    [[nodiscard]] std::uint64_t largest_free_bytes(const Request& request) const override;
    [[nodiscard]] std::uint64_t rounded_bytes(std::uint64_t requested_bytes) const override;

    [[nodiscard]] std::unique_ptr<Pool> clone() const override {
        return std::make_unique<BestFitPool>(*this);
    }

  private:
    using SegmentPool::SegmentPool;

    void freed(BlockIndex index) override;
    void forget() override;
    bool grow(std::uint64_t size_bytes, StreamId stream);

    std::uint64_t rounding_bytes_ = 512;
    std::uint64_t page_bytes_ = std::uint64_t{2} << 20;  // the heap grows by multiples of this
    FreeBlocks holes_;
    BlockIndex end_ = kNoBlock;  // the free block at the end of the heap; not in holes_
};

}  // namespace fragtrace::analyzer
