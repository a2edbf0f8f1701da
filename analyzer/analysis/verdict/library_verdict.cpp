#include "analyzer/analysis/verdict/library_verdict.h"

#include "analyzer/analysis/verdict/releasable_bytes.h"
#include "analyzer/support/units.h"

namespace fragtrace::analyzer {
namespace {

// Bytes in wholly free driver pages, as if every segment could return single pages.
std::uint64_t whole_free_pages(HeapSnapshot heap) {
    std::uint64_t total = 0;
    for (HeapSegment& segment : heap.segments) {
        segment.expandable = true;
        segment.page_bytes = kDriverPageBytes;
        segment.reservation = segment.address;
        total += ReleasableBytes(heap, segment).bytes();
    }
    return total;
}

std::uint64_t free_where_it_may_go(const HeapSnapshot& heap) {
    std::uint64_t total = 0;
    for (const HeapSegment& segment : heap.segments) {
        for (std::uint32_t i = 0; segment.may_release && i < segment.block_count; ++i) {
            const HeapBlock& block = heap.blocks[segment.first_block + i];
            total += block.state == BlockState::kFree ? block.size_bytes : 0;
        }
    }
    return total;
}

}  // namespace

Verdict judge_library(Pool& state,
                      std::uint64_t asked_bytes,
                      std::uint64_t device_free_bytes,
                      std::uint64_t others_bytes) {
    Verdict verdict = describe_state(state, asked_bytes);
    verdict.requester = "library";
    verdict.rounded_bytes = asked_bytes;
    verdict.device_free_bytes = device_free_bytes;
    const auto settle = [&](std::string_view id,
                            std::uint64_t frees,
                            std::uint64_t page_bytes,
                            std::uint64_t available) {
        const bool serves = available >= asked_bytes;
        verdict.steps.push_back({id, frees, page_bytes, serves});
        if (serves) {
            verdict.id = id;
            verdict.page_bytes = page_bytes;
        }
        return serves;
    };
    const std::unique_ptr<Pool> relaxed = state.clone();
    if (relaxed->relax(Relaxation::kPendingComplete)) {
        settle("pending", 0, 0, 0);  // returns memory to the pool, but not yet to the driver
    }
    const std::uint64_t before = relaxed->device().free_bytes();
    relaxed->relax(Relaxation::kReleaseFree);
    const std::uint64_t released = relaxed->device().free_bytes() - before;
    const std::uint64_t free = device_free_bytes + released;
    if (settle("releasable", released, 0, free)) {
        return verdict;
    }
    const HeapSnapshot heap = relaxed->snapshot();
    const std::uint64_t pages = whole_free_pages(heap);
    if (settle("stitchable", pages, kDriverPageBytes, free + pages)) {
        return verdict;
    }
    const std::uint64_t holes = free_where_it_may_go(heap);
    if (settle("compaction_only", holes, 0, free + holes)) {
        return verdict;
    }
    const PoolStatistics& statistics = relaxed->statistics();
    const std::uint64_t internal = statistics.allocated.current - statistics.requested.current;
    if (settle("rounding", internal, 0, free + holes + internal) ||
        settle("outside_pool", others_bytes, 0, free + holes + internal + others_bytes)) {
        return verdict;
    }
    settle("genuine", 0, 0, asked_bytes);
    return verdict;
}

}  // namespace fragtrace::analyzer
