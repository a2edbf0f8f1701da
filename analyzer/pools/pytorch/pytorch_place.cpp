// Places blocks at given positions, for a private pool that was reset to a checkpoint.
#include "analyzer/pools/pytorch/pytorch_blocks.h"
#include "analyzer/pools/pytorch/pytorch_sizes.h"

#include <iterator>

namespace fragtrace::analyzer {

// Builds an index of free blocks. A segment may have very many blocks, so walking them for each
// placement would take quadratic time.
void PytorchPool::know_free_places() {
    if (free_places_known_) {
        return;
    }
    free_places_known_ = true;
    for (BlockIndex index = 0; index < blocks_.size(); ++index) {
        if (blocks_[index].state == State::kFree) {
            free_places_[{blocks_[index].segment, blocks_[index].offset}] = index;
        }
    }
}

// Returns the free block that contains the place, or kNoBlock.
BlockIndex PytorchPool::block_around(const Placement& place) const {
    auto after = free_places_.upper_bound({place.segment, place.offset_bytes});
    if (place.block_bytes == 0 || after == free_places_.begin()) {
        return kNoBlock;
    }
    const BlockIndex index = std::prev(after)->second;
    const Block& block = blocks_[index];
    const std::uint64_t before = place.offset_bytes - block.offset;
    const bool covers = block.segment == place.segment && before < block.size_bytes &&
                        place.block_bytes <= block.size_bytes - before;
    return covers ? index : kNoBlock;
}

// Splits the first bytes of a block off as a new block before it. Neither block is in a set.
BlockIndex PytorchPool::split_off_front(BlockIndex index, std::uint64_t size_bytes) {
    const BlockIndex front = new_block();
    Block& block = blocks_[index];
    blocks_[front] = block;
    blocks_[front].size_bytes = size_bytes;
    blocks_[front].next = index;
    if (block.previous != kNoBlock) {
        blocks_[block.previous].next = front;
    } else {
        segments_[block.segment].first = front;
    }
    block.previous = front;
    block.offset += size_bytes;
    block.size_bytes -= size_bytes;
    return front;
}

bool PytorchPool::allocate_at(const Request& request, const Placement& place) {
    if (request.requested_bytes == 0 || request.requested_bytes >= pytorch::kAbsurdBytes) {
        return false;
    }
    know_free_places();
    BlockIndex index = block_around(place);
    if (index == kNoBlock || pair(blocks_[index].pool).private_pool != request.private_pool ||
        blocks_[index].stream != request.stream) {
        return false;
    }
    const std::size_t kind = size_class(blocks_[index].pool);
    const bool expandable = blocks_[index].expandable;
    if (is_split(blocks_[index]) && !expandable) {
        detail_.inactive_split.decrease(kind, 1);
        detail_.inactive_split_bytes.decrease(kind, blocks_[index].size_bytes);
    }
    erase_free(index);
    const auto count_rest = [&](std::uint64_t size_bytes) {
        if (!expandable) {
            detail_.inactive_split.increase(kind, 1);
            detail_.inactive_split_bytes.increase(kind, size_bytes);
        }
    };
    if (const std::uint64_t before = place.offset_bytes - blocks_[index].offset; before != 0) {
        insert_free(split_off_front(index, before));
        count_rest(before);
    }
    if (blocks_[index].size_bytes > place.block_bytes) {
        const BlockIndex rest = index;
        index = split_off_front(rest, place.block_bytes);
        insert_free(rest);
        count_rest(blocks_[rest].size_bytes);
    }
    blocks_[index].age_base = pools_[blocks_[index].pool].search_count;
    count_live(index, request, rounded_part(blocks_[index], request.requested_bytes));
    return true;
}

}  // namespace fragtrace::analyzer
