// BFC, the best-fit-with-coalescing allocator of TensorFlow and JAX (XLA's bfc_allocator).
//
// The driver provides regions: either one region before the first request, a configured share of
// the card, or growing regions, each twice as large as the last, up to that share. Best fit over
// all regions, the lowest address on ties. A chunk is split only if it is at least twice the
// request or too much would be wasted. Streams are ignored: one compute stream is assumed.
//
// A partitioned pool (JAX 0.12.0) has one region. Each request names the end from which it
// is served. In the middle is the gap, from which both ends take what their own free blocks cannot
// serve. A freed block at the border of the gap becomes a part of it; any other one can only be
// used by its own end. Not thread-safe.
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

    // The lists of free blocks. A pool that is not partitioned has only the first.
    static constexpr FreeBlocks::List kLower = 0;
    static constexpr FreeBlocks::List kUpper = 1;
    static constexpr FreeBlocks::List kGap = 2;

    [[nodiscard]] FreeBlocks::List list_of(const Request& request) const {
        return partitioned_ && request.upper_end ? kUpper : kLower;
    }

    BlockIndex find_free(std::uint64_t size_bytes, FreeBlocks::List list);
    [[nodiscard]] bool should_split(std::uint64_t block_bytes, std::uint64_t size_bytes) const;
    // Returns the part of a free block that serves a request of this list, and inserts the rest.
    BlockIndex carve(BlockIndex index, std::uint64_t size_bytes, FreeBlocks::List list);
    void freed_in_partitions(BlockIndex index);

    // Settings.
    double preallocate_ = 0.75;  // share of the card; 0 = grow on demand
    double limit_ = 0.75;        // share of the card
    double fragmentation_fraction_ = 0;
    bool garbage_collection_ = false;
    bool partitioned_ = false;

    std::uint64_t limit_bytes_ = 0;
    std::uint64_t next_region_bytes_ = 0;
    FreeBlocks free_;
};

}  // namespace fragtrace::analyzer
