#include "analyzer/analysis/verdict/verdict.h"

#include "analyzer/pools/pytorch/pytorch_sizes.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <array>

namespace fragtrace::analyzer {
namespace {

struct Rung {
    Relaxation relaxation;
    std::string_view id;
};

constexpr std::array kPoolRungs = {
    Rung{Relaxation::kPendingComplete, "pending"},
    Rung{Relaxation::kReleaseFree, "releasable"},
    Rung{Relaxation::kExactSegmentSize, "granularity"},
    Rung{Relaxation::kNoLimit, "limit"},
    Rung{Relaxation::kOneStream, "stream_bound"},
    Rung{Relaxation::kOnePool, "other_pool"},
};

std::uint64_t free_in_pool(const Pool& pool) {
    return pool.statistics().reserved.current - pool.statistics().active.current;
}

// Memory that a rung makes available, measured by the difference it makes.
struct Available {
    std::uint64_t pool_free;
    std::uint64_t device_free;
    std::uint64_t usable;  // largest block that the request could use

    [[nodiscard]] std::uint64_t gained_since(const Available& before) const {
        const auto gain = [](std::uint64_t now, std::uint64_t then) {
            return now > then ? now - then : 0;
        };
        return std::max({gain(pool_free, before.pool_free),
                         gain(device_free, before.device_free),
                         gain(usable, before.usable)});
    }
};

Available available(Pool& pool, const Request& request) {
    return {free_in_pool(pool), pool.device().free_bytes(), pool.largest_free_bytes(request)};
}

// True if the pool serves the request without a retry: from a free block or by growing.
bool serves_as_it_is(const Pool& pool, const Request& request) {
    const std::unique_ptr<Pool> trial = pool.clone();
    const Outcome outcome = trial->allocate(request).outcome;
    return outcome == Outcome::kHit || outcome == Outcome::kGrow;
}

// True if a clone serves the request, so that the recorded refusal cannot be explained. A free
// block does not count if the pool waited for pending memory: after its failed retry it did not
// look again, which is the verdict "pending".
bool is_unexplained(const Pool& state, const Request& request, std::uint64_t waited_for_bytes) {
    const Outcome outcome = state.clone()->allocate(request).outcome;
    return outcome == Outcome::kGrow || (outcome == Outcome::kHit && waited_for_bytes == 0);
}

// Also tries to return what the rung made free to the driver, but only for the rung "other_pool".
// The rung "releasable" comes before it, so it missed that memory.
bool serves(Pool& pool, const Request& request, Relaxation relaxation) {
    if (serves_as_it_is(pool, request)) {
        return true;
    }
    return relaxation == Relaxation::kOnePool && pool.relax(Relaxation::kReleaseFree) &&
           serves_as_it_is(pool, request);
}

// The place that may serve the request. Size classes are PyTorch's, as are these rungs.
FreePlace own_place(const Pool& pool, const Request& request) {
    const bool small = pool.rounded_bytes(request.requested_bytes) <= pytorch::kSmallSizeBytes;
    return {.stream = request.stream,
            .private_pool = request.private_pool,
            .size_class = small ? SizeClass::kSmall : SizeClass::kLarge};
}

// The private pools that remain after pools were merged as far as possible: those of CUDA graphs.
std::vector<std::uint32_t> private_pools(const HeapSnapshot& heap) {
    std::vector<std::uint32_t> pools;
    for (const HeapSegment& segment : heap.segments) {
        if (segment.private_pool != 0 &&
            std::find(pools.begin(), pools.end(), segment.private_pool) == pools.end()) {
            pools.push_back(segment.private_pool);
        }
    }
    return pools;
}

// Finds other rungs that would be enough alone.
void find_others(const Pool& state, const Request& request, Verdict* verdict) {
    for (const Rung& rung : kPoolRungs) {
        const std::unique_ptr<Pool> relaxed = state.clone();
        if (rung.id != verdict->id && !serves_as_it_is(*relaxed, request) &&
            relaxed->relax(rung.relaxation) && serves_as_it_is(*relaxed, request)) {
            verdict->also_served_by.push_back(rung.id);
        }
    }
}

bool in_use_throughout(const HeapSegment& segment) {
    return segment.private_pool != 0 && !segment.may_release;  // a CUDA graph's pool
}

// Bytes of whole pages without a live or pending byte. Pages count from each segment's start.
std::uint64_t whole_free_pages(const HeapSnapshot& heap, std::uint64_t page_bytes) {
    std::uint64_t total = 0;
    for (const HeapSegment& segment : heap.segments) {
        if (in_use_throughout(segment)) {
            continue;
        }
        for (std::uint32_t i = 0; i < segment.block_count; ++i) {
            const HeapBlock& block = heap.blocks[segment.first_block + i];
            if (block.state != BlockState::kFree) {
                continue;
            }
            const std::uint64_t begin = block.address - segment.address;
            const std::uint64_t end = begin + block.size_bytes;
            const std::uint64_t first_page = (begin + page_bytes - 1) / page_bytes;
            const std::uint64_t last_page = end / page_bytes;
            total += last_page > first_page ? (last_page - first_page) * page_bytes : 0;
        }
    }
    return total;
}

std::uint64_t free_outside_graphs(const HeapSnapshot& heap) {
    std::uint64_t total = 0;
    for (const HeapSegment& segment : heap.segments) {
        for (std::uint32_t i = 0; !in_use_throughout(segment) && i < segment.block_count; ++i) {
            const HeapBlock& block = heap.blocks[segment.first_block + i];
            total += block.state == BlockState::kFree ? block.size_bytes : 0;
        }
    }
    return total;
}

// Tries the rungs that no allocator offers. They follow from the address map alone.
void judge_by_map(Pool& relaxed, std::uint64_t others_bytes, Verdict* verdict) {
    const HeapSnapshot heap = relaxed.snapshot();
    const std::uint64_t device_free = relaxed.device().free_bytes();
    const std::uint64_t rounded = verdict->rounded_bytes;
    const auto settle =
        [verdict](
            std::string_view id, std::uint64_t frees, std::uint64_t page_bytes, bool serving) {
            verdict->steps.push_back({id, frees, page_bytes, serving});
            if (serving) {
                verdict->id = id;
                verdict->page_bytes = page_bytes;
            }
            return serving;
        };
    for (const std::uint64_t page_bytes : {relaxed.page_bytes(rounded), kDriverPageBytes}) {
        const std::uint64_t pages = whole_free_pages(heap, page_bytes);
        // Free memory of the device is rounded down to whole pages of the tried size.
        if (settle(
                "stitchable",
                pages,
                page_bytes,
                pages + device_free / page_bytes * page_bytes >= round_up(rounded, page_bytes))) {
            return;
        }
    }
    const std::uint64_t free_bytes = free_outside_graphs(heap);
    if (settle("compaction_only", free_bytes, 0, free_bytes + device_free >= rounded)) {
        return;
    }
    const PoolStatistics& statistics = relaxed.statistics();
    const std::uint64_t internal = statistics.allocated.current - statistics.requested.current;
    if (settle("rounding",
               internal,
               0,
               free_bytes + device_free + internal >= verdict->requested_bytes)) {
        return;
    }
    if (settle("outside_pool",
               others_bytes,
               0,
               free_bytes + device_free + internal + others_bytes >= verdict->requested_bytes)) {
        return;
    }
    settle("genuine", 0, 0, true);
}

}  // namespace

Verdict describe_state(Pool& state, std::uint64_t requested_bytes) {
    Verdict verdict;
    const PoolStatistics& statistics = state.statistics();
    verdict.requested_bytes = requested_bytes;
    verdict.rounded_bytes = state.rounded_bytes(requested_bytes);
    verdict.free_bytes = free_in_pool(state);
    verdict.device_free_bytes = state.device().free_bytes();
    verdict.allocated_bytes = statistics.allocated.current;
    verdict.active_bytes = statistics.active.current;
    verdict.reserved_bytes = statistics.reserved.current;
    for (const HeapBlock& block : state.snapshot().blocks) {
        if (block.state == BlockState::kFree) {
            verdict.largest_hole_bytes = std::max(verdict.largest_hole_bytes, block.size_bytes);
        }
    }
    return verdict;
}

Verdict judge(Pool& state,
              const Request& request,
              std::uint64_t others_bytes,
              std::uint64_t waited_for_bytes) {
    Verdict verdict = describe_state(state, request.requested_bytes);
    verdict.largest_free_bytes = state.largest_free_bytes(request);
    if (is_unexplained(state, request, waited_for_bytes)) {
        verdict.id = "unexplained";
        return verdict;
    }
    const std::unique_ptr<Pool> relaxed = state.clone();
    for (const Rung& rung : kPoolRungs) {
        const Available before = available(*relaxed, request);
        const bool by_stream = rung.relaxation == Relaxation::kOneStream;
        const bool by_pool = rung.relaxation == Relaxation::kOnePool;
        const HeapSnapshot map = by_stream || by_pool ? relaxed->snapshot() : HeapSnapshot{};
        if (!relaxed->relax(rung.relaxation)) {
            continue;
        }
        const std::vector<std::uint32_t> graphs =
            by_pool ? private_pools(relaxed->snapshot()) : std::vector<std::uint32_t>{};
        const bool serving = serves(*relaxed, request, rung.relaxation);
        std::uint64_t frees = available(*relaxed, request).gained_since(before);
        if (rung.relaxation == Relaxation::kPendingComplete) {
            frees = std::max(frees, waited_for_bytes);
        }
        verdict.steps.push_back({rung.id, frees, 0, serving});
        if (serving) {
            verdict.id = rung.id;
            if (by_stream) {
                verdict.places = free_by_stream(map, own_place(state, request));
            } else if (by_pool) {
                verdict.places = free_by_pool(map, own_place(state, request), graphs);
            }
            break;
        }
    }
    if (verdict.id == "genuine") {
        judge_by_map(*relaxed, others_bytes, &verdict);
    }
    find_others(state, request, &verdict);
    return verdict;
}

}  // namespace fragtrace::analyzer
