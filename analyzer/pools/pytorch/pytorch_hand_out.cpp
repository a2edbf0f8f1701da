// Allocates blocks to the program, frees them, and updates every statistic.
#include "analyzer/pools/pytorch/pytorch_blocks.h"
#include "analyzer/pools/pytorch/pytorch_sizes.h"

#include <algorithm>

namespace fragtrace::analyzer {

void PytorchPool::count_obtained(PoolIndex pool, std::uint64_t size_bytes) {
    obtained_bytes_ += size_bytes;
    detail_.reserved_bytes.increase(size_class(pool), size_bytes);
    pairs_[pool / 2].reserved.increase(size_bytes);
    ++detail_.num_device_alloc;
    statistics_.reserved.add(size_bytes);
    ++statistics_.segments_allocated;
}

void PytorchPool::count_returned(PoolIndex pool, std::uint64_t size_bytes) {
    obtained_bytes_ -= size_bytes;
    detail_.reserved_bytes.decrease(size_class(pool), size_bytes);
    pairs_[pool / 2].reserved.decrease(size_bytes);
    ++detail_.num_device_free;
    statistics_.reserved.subtract(size_bytes);
    ++statistics_.segments_freed;
}

bool PytorchPool::should_split(const Search& search, BlockIndex block) const {
    if (pair(search.pool).options.no_split) {
        return false;
    }
    const std::uint64_t remainder = blocks_[block].size_bytes - search.rounded_bytes;
    if (search.small || search.expandable) {
        return remainder >= pytorch::kMinBlockBytes;
    }
    return search.rounded_bytes < config_.max_split_size_bytes &&
           remainder > pytorch::kSmallSizeBytes;
}

Placement PytorchPool::hand_out(const Search& search, BlockIndex found, const Request& request) {
    const bool was_split = is_split(blocks_[found]);
    BlockIndex rest = kNoBlock;
    if (should_split(search, found)) {
        rest = new_block();
        Block& block = blocks_[found];
        Block& remainder = blocks_[rest];
        remainder = block;
        remainder.state = State::kFree;
        remainder.offset += search.rounded_bytes;
        remainder.size_bytes -= search.rounded_bytes;
        remainder.previous = found;
        if (block.next != kNoBlock) {
            blocks_[block.next].previous = rest;
        }
        block.next = rest;
        block.size_bytes = search.rounded_bytes;
        insert_free(rest);
    }
    if (counts_blocks_ && !blocks_[found].expandable) {
        count_split(blocks_[found], rest, was_split);
    }
    count_live(found, request, search.rounded_bytes);
    const Block& block = blocks_[found];
    note(PytorchTraceEntry::Action::kAlloc, block, request.requested_bytes);
    return {block.segment, block.offset, block.size_bytes};
}

// Counts the free rest of a segment after a block was taken from a free block. `rest` is kNoBlock
// if nothing was left. `was_split`: the free block was a part of its segment.
void PytorchPool::count_split(const Block& block, BlockIndex rest, bool was_split) {
    const std::size_t kind = size_class(block.pool);
    if (was_split) {
        detail_.inactive_split_bytes.decrease(kind, block.size_bytes);
        if (rest == kNoBlock) {
            detail_.inactive_split.decrease(kind, 1);
        }
    } else if (rest != kNoBlock) {
        detail_.inactive_split_bytes.increase(kind, blocks_[rest].size_bytes);
        detail_.inactive_split.increase(kind, 1);
    }
}

// Rounded size of a request in the block that serves it, at most the block size: settings may have
// changed since the block was allocated.
std::uint64_t PytorchPool::rounded_part(const Block& block, std::uint64_t requested_bytes) const {
    return std::min(rounded_bytes(requested_bytes), block.size_bytes);
}

// Counts a block that became live.
void PytorchPool::count_allocated(const Block& block) {
    const std::size_t kind = size_class(block.pool);
    detail_.allocation.increase(kind, 1);
    detail_.allocated_bytes.increase(kind, block.size_bytes);
    detail_.active.increase(kind, 1);
    detail_.active_bytes.increase(kind, block.size_bytes);
    detail_.requested_bytes.increase(kind, block.requested_bytes);
    if (block.size_bytes >= config_.max_split_size_bytes) {
        detail_.oversize_allocations.increase(1);
    }
}

bool PytorchPool::release(BlockId id, const std::vector<PendingOn>& pending) {
    const BlockTable::Place place = table_.place_of(id);
    const BlockIndex index = table_.block_at(place);
    if (index == kNoBlock || blocks_[index].state != State::kLive) {
        return false;
    }
    Block& block = blocks_[index];
    note(PytorchTraceEntry::Action::kFreeRequested, block, block.requested_bytes);
    if (counts_blocks_) {
        const std::size_t kind = size_class(block.pool);
        detail_.allocation.decrease(kind, 1);
        detail_.allocated_bytes.decrease(kind, block.size_bytes);
        if (block.size_bytes >= config_.max_split_size_bytes) {
            detail_.oversize_allocations.decrease(1);
        }
    }
    const std::uint64_t rounded = block.rounded_bytes;
    statistics_.requested.subtract(block.requested_bytes);
    statistics_.allocated.subtract(block.size_bytes);
    statistics_.rounding_bytes -= rounded - block.requested_bytes;
    statistics_.slack_bytes -= block.size_bytes - rounded;
    if (pending.empty()) {
        table_.erase_at(place);
        free_block(index);
    } else {
        block.state = State::kPending;
        if (capturing_) {
            parked_.push_back({id, pending});
        } else {
            wait_for(index, pending);
        }
    }
    return true;
}

}  // namespace fragtrace::analyzer
