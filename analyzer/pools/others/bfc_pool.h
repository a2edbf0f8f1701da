// BFC, the best-fit-with-coalescing allocator of TensorFlow, JAX (XLA's bfc_allocator) and ONNX
// Runtime (bfc_arena).
//
// The driver provides regions: either one region before the first request, a configured share of
// the card, or growing regions, each twice as large as the last, up to that share. Best fit over
// all regions, the lowest address on ties. A chunk is split only if it is at least twice the
// request or too much would be wasted. Streams are ignored, except in ONNX Runtime's: one compute
// stream is assumed.
//
// A partitioned pool (JAX 0.12.0) has one region. Each request names the end from which it
// is served. In the middle is the gap, from which both ends take what their own free blocks cannot
// serve. A freed block at the border of the gap becomes a part of it; any other one can only be
// used by its own end.
//
// A pool of ONNX Runtime grows. Its blocks belong to the stream that requested them. A free one
// serves this stream only, and does not merge with others, until the work of the stream has ended.
// Memory that no stream has used yet serves all streams. Not thread-safe.
#pragma once

#include "analyzer/pools/others/segment_pool.h"
#include "analyzer/support/result.h"

#include <map>
#include <vector>

namespace fragtrace::analyzer {

class BfcPool final : public SegmentPool {
  public:
    static Result<std::unique_ptr<Pool>> make(std::string_view config,
                                              std::unique_ptr<Device> device,
                                              const std::vector<std::uint64_t>& stream_handles);

    [[nodiscard]] std::string_view name() const override { return "bfc"; }

    AllocateResult allocate(const Request& request) override;
    [[nodiscard]] std::uint64_t largest_free_bytes(const Request& request) const override;
    [[nodiscard]] std::uint64_t releasable_bytes() const override;
    [[nodiscard]] std::uint64_t rounded_bytes(std::uint64_t requested_bytes) const override;
    // A shrinkage of ONNX Runtime's arena; other pools ignore it.
    void empty_cache() override;
    void end_stream(StreamId stream) override;
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
    Status check_settings();
    void double_next_region();
    // Size of the region to request after the driver refused one of `bytes`; 0 = none.
    [[nodiscard]] std::uint64_t smaller_region(std::uint64_t bytes) const;

    // The lists of free blocks. A pool that is not partitioned has only the first, and one of ONNX
    // Runtime one more for each stream.
    static constexpr FreeBlocks::List kLower = 0;
    static constexpr FreeBlocks::List kUpper = 1;
    static constexpr FreeBlocks::List kGap = 2;

    [[nodiscard]] FreeBlocks::List list_of(const Request& request) const;
    // The same, and makes the list of a stream.
    FreeBlocks::List obtain_list(const Request& request);

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
    bool onnxruntime_ = false;
    bool exact_regions_ = false;  // regions have the size of the request
    std::uint64_t first_region_bytes_ = 0;
    std::uint64_t most_waste_bytes_ = std::uint64_t{128} << 20;
    std::uint64_t most_doubled_bytes_ = 0;  // regions double up to this size
    std::uint64_t region_after_shrink_bytes_ = std::uint64_t{2} << 20;

    StreamId no_stream_ = 0;  // of requests without a stream
    std::map<StreamId, FreeBlocks::List> lists_;
    std::uint64_t limit_bytes_ = 0;
    std::uint64_t next_region_bytes_ = 0;
    FreeBlocks free_;
};

}  // namespace fragtrace::analyzer
