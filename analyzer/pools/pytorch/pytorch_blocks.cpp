// Blocks, their chains and free sets, segments, streams and pools of the simulated allocator.
#include "analyzer/pools/pytorch/pytorch_pool.h"
#include "analyzer/pools/pytorch/pytorch_sizes.h"

#include <algorithm>

namespace fragtrace::analyzer {

BlockIndex PytorchPool::new_block() {
    if (unused_ != kNoBlock) {
        const BlockIndex block = unused_;
        unused_ = blocks_[block].next;
        return block;
    }
    blocks_.emplace_back();
    return static_cast<BlockIndex>(blocks_.size() - 1);
}

void PytorchPool::drop_block(BlockIndex block) {
    blocks_[block].state = State::kUnused;
    blocks_[block].next = unused_;
    unused_ = block;
}

FreeKey PytorchPool::key_of(const Block& block) const {
    if (rules_.tie_break == PytorchRules::TieBreak::kAddress) {
        return FreeKey::make(block.size_bytes, 0, segments_[block.segment].address + block.offset);
    }
    return FreeKey::make(block.size_bytes, block.segment, block.offset);
}

// Sorted by address in every release: with several reservations, the lowest is filled first.
FreeKey PytorchPool::unmapped_key_of(const Block& block) const {
    return FreeKey::make(0, 0, segments_[block.segment].address + block.offset);
}

// Bytes of a free block that could return to the driver.
std::uint64_t PytorchPool::releasable_part(const Block& block) const {
    if (!block.expandable) {
        return is_split(block) ? 0 : block.size_bytes;
    }
    const std::uint64_t page = segments_[block.segment].page_bytes;
    if (block.size_bytes < page) {
        return 0;
    }
    const std::uint64_t begin = (block.offset + page - 1) / page;
    const std::uint64_t end = (block.offset + block.size_bytes) / page;
    return end > begin ? (end - begin) * page : 0;
}

void PytorchPool::insert_free(BlockIndex index) {
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

void PytorchPool::erase_free(BlockIndex index) {
    const Block& block = blocks_[index];
    pools_[block.pool].releasable_bytes -= releasable_part(block);
    sets_.erase(index);
    if (free_places_known_) {
        free_places_.erase({block.segment, block.offset});
    }
}

void PytorchPool::insert_unmapped(BlockIndex index) {
    Block& block = blocks_[index];
    block.state = State::kUnmapped;
    sets_.insert(pools_[block.pool].unmapped.obtain(slot_of(block.stream), sets_),
                 unmapped_key_of(block),
                 index);
}

// Merges a neighbour into `block` if it has the same state. `block` is in no set. Returns the bytes
// that were added.
std::uint64_t PytorchPool::merge(BlockIndex index, BlockIndex neighbour) {
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

void PytorchPool::free_block(BlockIndex index) {
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

// Counts a block that became free and was merged with free neighbours of the given sizes (0 = with
// none).
void PytorchPool::count_freed(const Block& block,
                              std::uint64_t before_bytes,
                              std::uint64_t after_bytes) {
    const std::size_t kind = size_class(block.pool);
    const std::uint64_t size_bytes = block.size_bytes - before_bytes - after_bytes;
    if (!block.expandable) {
        // Apply the net change in one step. Intermediate steps would change the peaks.
        const int joined = (before_bytes != 0 ? 1 : 0) + (after_bytes != 0 ? 1 : 0);
        const bool split = is_split(block);
        if (split && joined == 0) {
            detail_.inactive_split.increase(kind, 1);
        } else if (const int gone = joined - (split ? 1 : 0); gone > 0) {
            detail_.inactive_split.decrease(kind, static_cast<std::uint64_t>(gone));
        }
        if (split) {
            detail_.inactive_split_bytes.increase(kind, size_bytes);
        } else if (joined != 0) {
            detail_.inactive_split_bytes.decrease(kind, before_bytes + after_bytes);
        }
    }
    detail_.active.decrease(kind, 1);
    detail_.active_bytes.decrease(kind, size_bytes);
    detail_.requested_bytes.decrease(kind, block.requested_bytes);
}

// Creates a segment that consists of one block, which is in no set.
BlockIndex PytorchPool::new_segment(std::uint64_t size_bytes, const Search& search) {
    const auto number = static_cast<std::uint32_t>(segments_.size());
    const BlockIndex index = new_block();
    blocks_[index] = {.size_bytes = size_bytes,
                      .segment = number,
                      .pool = search.pool,
                      .age_base = pools_[search.pool].search_count,
                      .stream = search.stream};
    std::uint64_t address = device_->recorded_address();
    if (address == 0 || !addresses_.reserve_at(address, size_bytes, number)) {
        address = addresses_.reserve(size_bytes, number);
    }
    segments_.push_back(
        {.address = address, .size_bytes = size_bytes, .first = index, .live = true});
    return index;
}

// Removes a segment and its last remaining block.
void PytorchPool::drop_segment(BlockIndex block) {
    Segment& segment = segments_[blocks_[block].segment];
    addresses_.release(segment.address);
    segment.live = false;
    drop_block(block);
}

PytorchPool::SlotIndex PytorchPool::new_slot(StreamId stream) {
    if (stream >= slot_of_stream_.size()) {
        slot_of_stream_.resize(static_cast<std::size_t>(stream) + 1, kNoSlot);
    }
    const auto slot = static_cast<SlotIndex>(stream_of_slot_.size());
    slot_of_stream_[stream] = slot;
    stream_of_slot_.push_back(stream);
    return slot;
}

std::optional<std::uint32_t> PytorchPool::find_pair(std::uint32_t private_pool) const {
    if (private_pool == 0) {
        return 0;
    }
    const auto found = pair_numbers_.find(private_pool);
    return found == pair_numbers_.end() ? std::nullopt : std::optional(found->second);
}

std::uint32_t PytorchPool::private_pair(std::uint32_t private_pool) {
    std::uint32_t index = 0;
    if (const auto found = find_pair(private_pool)) {
        index = *found;
    } else {
        index = static_cast<std::uint32_t>(pairs_.size());
        pairs_.emplace_back().private_pool = private_pool;
        pair_numbers_.emplace(private_pool, index);
        pools_.resize(pairs_.size() * 2);
    }
    pairs_[index].exists = true;
    return index;
}

void PytorchPool::set_private_pool(std::uint32_t private_pool, const PrivatePoolOptions& options) {
    if (private_pool != 0) {
        pairs_[pair_of(private_pool)].options = options;
    }
}

}  // namespace fragtrace::analyzer
