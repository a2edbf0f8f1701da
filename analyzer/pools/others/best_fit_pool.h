// A yardstick: best fit over one heap that grows at its end and joins free neighbours at once.
//
// A request takes the smallest hole that is large enough, the lowest on ties; only when there is
// none, the end of the heap. Streams do not count, nothing is given back. Not thread-safe.
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
    std::uint64_t page_bytes_ = std::uint64_t{2} << 20;  // what the heap grows by
    FreeBlocks holes_;
    BlockIndex end_ = kNoBlock;  // the free block at the end of the heap, which is no hole
};

}  // namespace fragtrace::analyzer
