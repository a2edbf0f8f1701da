// The visible state of the simulated allocator: placements, the address map and free memory.
#include "analyzer/pools/pytorch/pytorch_pool.h"
#include "analyzer/pools/pytorch/pytorch_sizes.h"

#include <algorithm>

namespace fragtrace::analyzer {

std::optional<Placement> PytorchPool::find(BlockId id) const {
    const BlockIndex index = table_.find(id);
    if (index == kNoBlock) {
        return std::nullopt;
    }
    const Block& block = blocks_[index];
    return Placement{block.segment, block.offset, block.size_bytes};
}

// Adds one entry for an ordinary segment, or one per mapped range of an expandable segment.
void PytorchPool::append_segment(const Segment& segment, HeapSnapshot& heap) const {
    bool open = false;
    for (BlockIndex index = segment.first; index != kNoBlock; index = blocks_[index].next) {
        const Block& block = blocks_[index];
        if (block.state == State::kUnmapped) {
            open = false;
            continue;
        }
        if (!open) {
            open = true;
            const PoolPair& owner = pair(block.pool);
            heap.segments.push_back(
                {.address = segment.address + block.offset,
                 .first_block = static_cast<std::uint32_t>(heap.blocks.size()),
                 .private_pool = owner.private_pool,
                 .stream = block.stream,
                 .size_class = size_class(block.pool) == 0 ? SizeClass::kSmall : SizeClass::kLarge,
                 .expandable = block.expandable,
                 .may_release = owner.options.freeable,
                 .page_bytes = segment.page_bytes,
                 .obtained_by = block.segment,
                 .reservation = block.expandable ? segment.address : 0,
                 .reservation_bytes = block.expandable ? segment.size_bytes : 0});
        }
        HeapSegment& range = heap.segments.back();
        range.size_bytes += block.size_bytes;
        ++range.block_count;
        const bool free = block.state == State::kFree;
        heap.blocks.push_back({.address = segment.address + block.offset,
                               .size_bytes = block.size_bytes,
                               .requested_bytes = free ? 0 : block.requested_bytes,
                               .allocated_by = free ? kNoEvent : block.id,
                               .stream = block.stream,
                               .state = free                          ? BlockState::kFree
                                        : block.state == State::kLive ? BlockState::kLive
                                                                      : BlockState::kPending});
    }
}

HeapSnapshot PytorchPool::snapshot() const {
    HeapSnapshot heap;
    heap.device_free_bytes = device_->free_bytes();
    heap.blocks.reserve(blocks_.size());
    for (const auto& [begin, range] : addresses_.ranges()) {
        append_segment(segments_[range.owner], heap);
    }
    return heap;
}

std::uint64_t PytorchPool::largest_free_bytes(const Request& request) const {
    const auto slot = known_slot(request.stream);
    auto pair_index = find_pair(request.private_pool);
    if (!slot || !pair_index) {
        return 0;
    }
    if (pairs_[*pair_index].merged) {
        pair_index = 0;
    }
    const std::uint64_t rounded = rounded_bytes(request.requested_bytes);
    const bool small = rounded <= pytorch::kSmallSizeBytes && !(one_pool_ && *pair_index == 0);
    const SetIndex set = pools_[2 * *pair_index + (small ? 0 : 1)].free.find(*slot);
    if (set == kNoSet) {
        return 0;
    }
    // Start at the largest block that the split rules allow for this request.
    const std::uint64_t below_bytes =
        rounded < config_.max_split_size_bytes
            ? config_.max_split_size_bytes
            : rounded + std::min(config_.max_non_split_rounding_bytes, kNoLimit - rounded);
    const BlockIndex too_large = sets_.lower_bound(set, FreeKey::make(below_bytes, 0, 0));
    BlockIndex at = too_large == kNoBlock ? sets_.last(set) : sets_.previous(too_large);
    while (at != kNoBlock && blocks_[at].expandable && !config_.expandable_segments) {
        at = sets_.previous(at);
    }
    return at == kNoBlock ? 0 : blocks_[at].size_bytes;
}

std::uint64_t PytorchPool::releasable_bytes() const {
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
        if (pairs_[i].options.freeable) {
            total += pools_[2 * i].releasable_bytes + pools_[2 * i + 1].releasable_bytes;
        }
    }
    return total;
}

PytorchStatistic PytorchPool::reserved_by_private_pool(std::uint32_t private_pool) const {
    const auto index = find_pair(private_pool);
    return index ? pairs_[*index].reserved : PytorchStatistic{};
}

}  // namespace fragtrace::analyzer
