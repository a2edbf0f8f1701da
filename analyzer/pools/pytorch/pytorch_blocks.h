// Blocks, their chains and their free sets in the simulated allocator: functions that serve nearly
// every request. They are inline because a replay spends most of its time in them.
#pragma once

#include "analyzer/pools/pytorch/pytorch_pool.h"

#include <algorithm>

namespace fragtrace::analyzer {

inline BlockIndex PytorchPool::new_block() {
    if (unused_ != kNoBlock) {
        const BlockIndex block = unused_;
        unused_ = blocks_[block].next;
        return block;
    }
    blocks_.emplace_back();
    return static_cast<BlockIndex>(blocks_.size() - 1);
}

inline void PytorchPool::drop_block(BlockIndex block) {
    blocks_[block].state = State::kUnused;
    blocks_[block].next = unused_;
    unused_ = block;
}

inline FreeKey PytorchPool::key_of(const Block& block) const {
    if (rules_.tie_break == PytorchRules::TieBreak::kAddress) {
        return FreeKey::make(block.size_bytes, 0, segments_[block.segment].address + block.offset);
    }
    return FreeKey::make(block.size_bytes, block.segment, block.offset);
}

// Bytes of a free block that could return to the driver.
inline std::uint64_t PytorchPool::releasable_part(const Block& block) const {
    return block.expandable ? whole_pages(block) : is_split(block) ? 0 : block.size_bytes;
}

inline void PytorchPool::insert_free(BlockIndex index) {
    Block& block = blocks_[index];
    BlockPool& pool = pools_[block.pool];
    block.state = State::kFree;
    block.age_base = pool.search_count;
    pool.releasable_bytes += releasable_part(block);
    sets_.insert(pool.free.obtain(slot_of(block.stream), sets_), key_of(block), index);
    if (free_places_known_) {
        free_places_[{block.segment, block.offset}] = index;
    }
}

inline void PytorchPool::erase_free(BlockIndex index) {
    const Block& block = blocks_[index];
    pools_[block.pool].releasable_bytes -= releasable_part(block);
    sets_.erase(index);
    if (free_places_known_) {
        free_places_.erase({block.segment, block.offset});
    }
}

// Merges a neighbour into `block` if it has the same state. `block` is in no set. Returns the bytes
// that were added.
inline std::uint64_t PytorchPool::merge(BlockIndex index, BlockIndex neighbour) {
    Block& block = blocks_[index];
    if (neighbour == kNoBlock || blocks_[neighbour].state != block.state) {
        return 0;
    }
    if (block.state == State::kUnmapped) {
        sets_.erase(neighbour);
    } else {
        erase_free(neighbour);
    }
    const Block& other = blocks_[neighbour];
    if (block.previous == neighbour) {
        block.offset = other.offset;
        block.previous = other.previous;
        if (block.previous != kNoBlock) {
            blocks_[block.previous].next = index;
        } else {
            segments_[block.segment].first = index;
        }
    } else {
        block.next = other.next;
        if (block.next != kNoBlock) {
            blocks_[block.next].previous = index;
        }
    }
    const std::uint64_t joined_bytes = other.size_bytes;
    block.size_bytes += joined_bytes;
    drop_block(neighbour);
    return joined_bytes;
}

inline void PytorchPool::free_block(BlockIndex index) {
    Block& block = blocks_[index];
    const std::uint64_t size_bytes = block.size_bytes;
    note(PytorchTraceEntry::Action::kFreeCompleted, block, block.requested_bytes);
    block.state = State::kFree;
    const std::uint64_t before_bytes = merge(index, block.previous);
    const std::uint64_t after_bytes = merge(index, block.next);
    insert_free(index);
    if (counts_blocks_) {
        count_freed(block, before_bytes, after_bytes);
    }
    statistics_.active.subtract(size_bytes);
}

// Marks a block that is in no set as live. `rounded_bytes` is the request's rounded size, at most
// the block size.
inline void PytorchPool::count_live(BlockIndex index,
                                    const Request& request,
                                    std::uint64_t rounded_bytes) {
    Block& block = blocks_[index];
    block.state = State::kLive;
    block.requested_bytes = std::min(request.requested_bytes, block.size_bytes);
    block.id = request.block;
    table_.insert(request.block, index);

    const std::uint64_t size_bytes = block.size_bytes;
    if (counts_blocks_) {
        count_allocated(block);
    }
    block.rounded_bytes = rounded_bytes;
    statistics_.requested.add(block.requested_bytes);
    statistics_.allocated.add(size_bytes);
    statistics_.active.add(size_bytes);
    statistics_.rounding_bytes += rounded_bytes - block.requested_bytes;
    statistics_.slack_bytes += size_bytes - rounded_bytes;
}

}  // namespace fragtrace::analyzer
