#include "analyzer/replay/divergence_cause.h"

#include "analyzer/support/units.h"

#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

// The block that contains a place, and its size including a free block directly after it.
struct Spot {
    const HeapBlock* block = nullptr;
    std::uint64_t with_rest_bytes = 0;
};

Spot find_spot(const HeapSnapshot& heap, std::uint32_t segment, std::uint64_t offset_bytes) {
    for (const HeapSegment& one : heap.segments) {
        const DeviceAddress base = one.expandable ? one.reservation : one.address;
        if (one.obtained_by != segment || base + offset_bytes < one.address ||
            base + offset_bytes - one.address >= one.size_bytes) {
            continue;
        }
        const HeapBlock* const first = heap.blocks.data() + one.first_block;
        for (const HeapBlock* block = first; block != first + one.block_count; ++block) {
            if (base + offset_bytes - block->address >= block->size_bytes) {
                continue;
            }
            const HeapBlock* const next = block + 1;
            const bool rest = block->state != BlockState::kFree &&
                              next != first + one.block_count && next->state == BlockState::kFree;
            return {block, block->size_bytes + (rest ? next->size_bytes : 0)};
        }
    }
    return {};
}

}  // namespace

std::string divergence_cause(const Pool& pool,
                             const Placement& replayed,
                             std::uint32_t segment,
                             std::uint64_t offset_bytes) {
    const HeapSnapshot heap = pool.snapshot();
    const Spot ours = find_spot(heap, replayed.segment, replayed.offset_bytes);
    const Spot theirs = find_spot(heap, segment, offset_bytes);
    if (theirs.block == nullptr) {
        return "the replay has no such segment: one of its cudaMallocs or cudaFrees differs from "
               "the recording";
    }
    if (theirs.block->state == BlockState::kPending) {
        return "in the replay this memory still waits for another stream: the recording does not "
               "show when the free completed";
    }
    if (theirs.block->state == BlockState::kLive) {
        return "in the replay a block is still live there: the recording lacks its free, or the "
               "recorded run completed it earlier";
    }
    if (ours.block == nullptr) {
        return {};
    }
    if (theirs.with_rest_bytes == ours.with_rest_bytes) {
        return "a tie: both free blocks have the same size, and the order of their segments is "
               "unknown";
    }
    if (theirs.with_rest_bytes > ours.with_rest_bytes) {
        return fmt::format(
            "the recorded run did not use the free block of {}: there it was not free, or belonged "
            "to another stream or pool",
            format_bytes(ours.with_rest_bytes));
    }
    return fmt::format(
        "the recorded run used a free block of {}, smaller than the replay's: other blocks were "
        "merged or split before",
        format_bytes(theirs.with_rest_bytes));
}

}  // namespace fragtrace::analyzer
