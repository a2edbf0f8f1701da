// Unmapped blocks, segments, streams and pools of the simulated allocator, and counts of freed
// blocks.
#include "analyzer/pools/pytorch/pytorch_blocks.h"

#include "analyzer/pools/pytorch/pytorch_sizes.h"

#include <algorithm>

namespace fragtrace::analyzer {

// Sorted by address in every release: with several reservations, the lowest is filled first.
FreeKey PytorchPool::unmapped_key_of(const Block& block) const {
    return FreeKey::make(0, 0, segments_[block.segment].address + block.offset);
}

// Bytes of the whole pages in a free block of an expandable segment.
std::uint64_t PytorchPool::whole_pages(const Block& block) const {
    const std::uint64_t page = segments_[block.segment].page_bytes;
    if (block.size_bytes < page) {
        return 0;
    }
    const std::uint64_t begin = (block.offset + page - 1) / page;
    const std::uint64_t end = (block.offset + block.size_bytes) / page;
    return end > begin ? (end - begin) * page : 0;
}

void PytorchPool::insert_unmapped(BlockIndex index) {
    Block& block = blocks_[index];
    block.state = State::kUnmapped;
    sets_.insert(pools_[block.pool].unmapped.obtain(slot_of(block.stream), sets_),
                 unmapped_key_of(block),
                 index);
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
