// Blocks at places that somebody else chose: a private pool set back to a checkpoint.
#include "analyzer/pools/pytorch_pool.h"
#include "analyzer/pools/pytorch_sizes.h"

namespace fragtrace::analyzer {

// The free block that covers the place; kNoBlock when there is none.
BlockIndex PytorchPool::block_around(const Placement& place) const {
    if (place.segment >= segments_.size() || !segments_[place.segment].live ||
        place.block_bytes == 0) {
        return kNoBlock;
    }
    for (BlockIndex index = segments_[place.segment].first; index != kNoBlock;
         index = blocks_[index].next) {
        const Block& block = blocks_[index];
        if (place.offset_bytes < block.offset + block.size_bytes) {
            const bool covers =
                block.state == State::kFree && place.offset_bytes >= block.offset &&
                place.block_bytes <= block.offset + block.size_bytes - place.offset_bytes;
            return covers ? index : kNoBlock;
        }
    }
    return kNoBlock;
}

// The first bytes of a block that is in no set become a block of their own before it, in no set.
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
