// Initialises the pool with the state of another pool: segments, blocks and the gaps between them.
#include "analyzer/pools/pytorch/pytorch_blocks.h"
#include "analyzer/pools/pytorch/pytorch_sizes.h"

#include <algorithm>
#include <map>

namespace fragtrace::analyzer {
namespace {

// PyTorch maps at least kSmallSegmentBytes at once.
std::uint64_t usable_page(std::uint64_t page_bytes) {
    return std::max(page_bytes, pytorch::kSmallSegmentBytes);
}

}  // namespace

// Removes all memory from the pool. Peaks and counts of the past stay in the statistics.
void PytorchPool::forget_all() {
    device_->give_back_all();
    obtained_bytes_ = 0;
    blocks_.clear();
    unused_ = kNoBlock;
    segments_.clear();
    addresses_.clear();
    sets_.clear();
    free_places_.clear();
    free_places_known_ = false;
    for (BlockPool& pool : pools_) {
        pool = {};
    }
    for (PoolPair& pair : pairs_) {
        pair.reserved.current = 0;
    }
    table_ = {};
    waiting_.clear();
    events_.clear();
    events_completed_ = false;
    parked_.clear();
    statistics_.forget_held();
    for (PytorchStatisticByClass* one : {&detail_.allocation,
                                         &detail_.segment,
                                         &detail_.active,
                                         &detail_.inactive_split,
                                         &detail_.allocated_bytes,
                                         &detail_.reserved_bytes,
                                         &detail_.active_bytes,
                                         &detail_.inactive_split_bytes,
                                         &detail_.requested_bytes}) {
        one->all.current = 0;
        one->by_class[0].current = 0;
        one->by_class[1].current = 0;
    }
    detail_.oversize_allocations.current = 0;
    detail_.oversize_segments.current = 0;
    driver_calls_->clear();
}

// Appends a block after the last one of its segment. The block is in no set.
BlockIndex PytorchPool::append_block(std::uint32_t segment, const Block& block, BlockIndex last) {
    const BlockIndex index = new_block();
    blocks_[index] = block;
    blocks_[index].segment = segment;
    blocks_[index].previous = last;
    blocks_[index].next = kNoBlock;
    if (last == kNoBlock) {
        segments_[segment].first = index;
    } else {
        blocks_[last].next = index;
    }
    return index;
}

// Adopts the blocks of one segment, or of one mapped range that begins at `offset`.
bool PytorchPool::adopt_range(const HeapSnapshot& heap,
                              const HeapSegment& range,
                              std::uint32_t segment,
                              std::uint64_t offset,
                              BlockIndex* last) {
    if (!device_->take(range.size_bytes)) {
        return false;
    }
    const PoolIndex pool =
        2 * pair_of(range.private_pool) + (range.size_class == SizeClass::kSmall ? 0u : 1u);
    const StreamId stream = range.stream == kNoStream ? StreamId{0} : range.stream;
    for (std::uint32_t i = 0; i < range.block_count; ++i) {
        const HeapBlock& held = heap.blocks[range.first_block + i];
        *last = append_block(segment,
                             {.offset = offset + (held.address - range.address),
                              .size_bytes = held.size_bytes,
                              .pool = pool,
                              .stream = stream,
                              .expandable = range.expandable},
                             *last);
        if (held.state != BlockState::kFree) {
            blocks_[*last].state = State::kLive;
        }
    }
    obtained_bytes_ += range.size_bytes;
    detail_.reserved_bytes.increase(size_class(pool), range.size_bytes);
    pairs_[pool / 2].reserved.increase(range.size_bytes);
    pairs_[pool / 2].segments_known = false;
    statistics_.reserved.add(range.size_bytes);
    return true;
}

bool PytorchPool::adopt(const HeapSnapshot& heap) {
    forget_all();
    std::map<DeviceAddress, std::uint32_t> reservations;
    std::vector<std::vector<const HeapSegment*>> ranges;  // per segment of this pool
    for (const HeapSegment& range : heap.segments) {
        if (range.expandable) {
            const auto [found, is_new] = reservations.try_emplace(
                range.reservation, static_cast<std::uint32_t>(ranges.size()));
            if (!is_new) {
                ranges[found->second].push_back(&range);
                continue;
            }
        }
        ranges.push_back({&range});
    }
    for (std::vector<const HeapSegment*>& parts : ranges) {
        std::sort(parts.begin(), parts.end(), [](const HeapSegment* a, const HeapSegment* b) {
            return a->address < b->address;
        });
        const HeapSegment& first = *parts.front();
        const HeapSegment& back = *parts.back();
        const bool reserved =
            first.expandable && first.reservation_bytes != 0 && first.reservation <= first.address;
        const DeviceAddress base = reserved ? first.reservation : first.address;
        const std::uint64_t size_bytes =
            std::max(reserved ? first.reservation_bytes : 0, back.address + back.size_bytes - base);
        const auto number = static_cast<std::uint32_t>(segments_.size());
        const std::uint64_t address = addresses_.reserve_at(base, size_bytes, number)
                                          ? base
                                          : addresses_.reserve(size_bytes, number);
        segments_.push_back({.address = address,
                             .size_bytes = size_bytes,
                             .page_bytes = first.expandable ? usable_page(first.page_bytes) : 0,
                             .live = true});
        BlockIndex last = kNoBlock;
        std::uint64_t end = 0;
        const auto fill_to = [&](std::uint64_t offset, const HeapSegment& like) {
            if (offset > end) {
                last = append_block(number,
                                    {.offset = end,
                                     .size_bytes = offset - end,
                                     .pool = 2 * pair_of(like.private_pool) +
                                             (like.size_class == SizeClass::kSmall ? 0u : 1u),
                                     .stream = like.stream == kNoStream ? StreamId{0} : like.stream,
                                     .state = State::kUnmapped,
                                     .expandable = true},
                                    last);
            }
        };
        for (const HeapSegment* part : parts) {
            const std::uint64_t offset = part->address - base;
            fill_to(offset, *part);
            if (!adopt_range(heap, *part, number, offset, &last)) {
                return false;
            }
            end = offset + part->size_bytes;
        }
        fill_to(first.expandable ? size_bytes : end, back);
        if (!first.expandable) {
            detail_.segment.increase(size_class(blocks_[segments_[number].first].pool), 1);
        }
        // All chains are complete: sort free, unmapped and live blocks into their sets and tables.
        std::size_t part = 0;
        std::uint32_t at = 0;
        for (BlockIndex index = segments_[number].first; index != kNoBlock;
             index = blocks_[index].next) {
            if (blocks_[index].state == State::kUnmapped) {
                insert_unmapped(index);
                continue;
            }
            const HeapBlock& held = heap.blocks[parts[part]->first_block + at];
            if (++at == parts[part]->block_count) {
                ++part;
                at = 0;
            }
            if (blocks_[index].state == State::kLive) {
                count_live(index,
                           {.block = held.allocated_by, .requested_bytes = held.requested_bytes},
                           rounded_part(blocks_[index], held.requested_bytes));
                continue;
            }
            insert_free(index);
            if (!blocks_[index].expandable && is_split(blocks_[index])) {
                const std::size_t kind = size_class(blocks_[index].pool);
                detail_.inactive_split.increase(kind, 1);
                detail_.inactive_split_bytes.increase(kind, blocks_[index].size_bytes);
            }
        }
    }
    return true;
}

}  // namespace fragtrace::analyzer
