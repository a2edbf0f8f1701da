// BFC, the best-fit-with-coalescing allocator of TensorFlow and JAX (XLA's bfc_allocator).
//
// The driver provides regions: either one region before the first request, a configured share of
// the card, or growing regions, each twice as large as the last, up to that share. Best fit over
// all regions, the lowest address on ties. A chunk is split only if it is at least twice the
// request or too much would be wasted. Streams are ignored: one compute stream is assumed. Not
// thread-safe.
#pragma once

#include "analyzer/pools/others/segment_pool.h"
#include "analyzer/support/result.h"

namespace fragtrace::analyzer {

class BfcPool final : public SegmentPool {
  public:
    static Result<std::unique_ptr<Pool>> make(std::string_view config,
                                              std::unique_ptr<Device> device);

    [[nodiscard]] std::string_view name() const override { return "bfc"; }

    AllocateResult allocate(const Request& request) override;
    [[nodiscard]] std::uint64_t largest_free_bytes(const Request& request) const override;
    [[nodiscard]] std::uint64_t releasable_bytes() const override;
    [[nodiscard]] std::uint64_t rounded_bytes(std::uint64_t requested_bytes) const override;
    // Supports kReleaseFree and kNoLimit.
    bool relax(Relaxation relaxation) override;

    [[nodiscard]] std::unique_ptr<Pool> clone() const override {
        return std::make_unique<BfcPool>(*this);
    }

  private:
    using SegmentPool::SegmentPool;

    void freed(BlockIndex index) override;
    void forget() override;
    bool extend(std::uint64_t size_bytes, StreamId stream);

    // Settings.
    double preallocate_ = 0.75;  // share of the card; 0 = grow on demand
    double limit_ = 0.75;        // share of the card
    double fragmentation_fraction_ = 0;
    bool garbage_collection_ = false;

    std::uint64_t limit_bytes_ = 0;
    std::uint64_t next_region_bytes_ = 0;
    FreeBlocks free_;
};

}  // namespace fragtrace::analyzer
