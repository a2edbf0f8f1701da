#include "analyzer/pools/free_set.h"

#include <algorithm>
#include <cassert>

namespace fragtrace::analyzer {
namespace {

// First of `count` ascending keys that is not less than `key`.
std::uint32_t first_not_less(const FreeKey* keys, std::uint32_t count, const FreeKey& key) {
    const FreeKey* base = keys;
    while (count > 1) {
        const std::uint32_t half = count / 2;
        base += base[half - 1] < key ? half : 0;
        count -= half;
    }
    return static_cast<std::uint32_t>(base - keys) + (count == 1 && *base < key ? 1U : 0U);
}

}  // namespace

std::uint32_t FreeSet::find_chunk(const FreeKey& key) const {
    return first_not_less(last_.data(), static_cast<std::uint32_t>(last_.size()), key);
}

std::uint32_t FreeSet::find_slot(const Chunk& chunk, const FreeKey& key) {
    return first_not_less(chunk.keys.data(), chunk.count, key);
}

FreeSet::Position FreeSet::lower_bound(const FreeKey& key) const {
    const std::uint32_t at = find_chunk(key);
    if (at == order_.size()) {
        return {at, 0};
    }
    const Chunk& chunk = chunks_[order_[at]];
    const std::uint32_t slot = find_slot(chunk, key);
    return slot == chunk.count ? Position{at + 1, 0} : Position{at, slot};
}

FreeSet::Position FreeSet::next(Position position) const {
    if (++position.slot == chunks_[order_[position.chunk]].count) {
        return {position.chunk + 1, 0};
    }
    return position;
}

FreeSet::Position FreeSet::previous(Position position) const {
    if (position.slot == 0) {
        --position.chunk;
        return {position.chunk, chunks_[order_[position.chunk]].count - 1};
    }
    return {position.chunk, position.slot - 1};
}

std::uint32_t FreeSet::new_chunk() {
    if (!spare_.empty()) {
        const std::uint32_t chunk = spare_.back();
        spare_.pop_back();
        return chunk;
    }
    chunks_.emplace_back().blocks.fill(kNoBlock);
    return static_cast<std::uint32_t>(chunks_.size() - 1);
}

void FreeSet::remove_chunk(std::uint32_t at) {
    chunks_[order_[at]].count = 0;
    chunks_[order_[at]].blocks.fill(kNoBlock);
    spare_.push_back(order_[at]);
    order_.erase(order_.begin() + at);
    last_.erase(last_.begin() + at);
}

void FreeSet::split_chunk(std::uint32_t at) {
    const std::uint32_t upper_index = new_chunk();
    Chunk& lower = chunks_[order_[at]];
    Chunk& upper = chunks_[upper_index];
    constexpr std::uint32_t kHalf = kChunkSlots / 2;
    std::copy(lower.keys.begin() + kHalf, lower.keys.end(), upper.keys.begin());
    std::copy(lower.blocks.begin() + kHalf, lower.blocks.end(), upper.blocks.begin());
    std::fill(lower.blocks.begin() + kHalf, lower.blocks.end(), kNoBlock);
    lower.count = kHalf;
    upper.count = kChunkSlots - kHalf;
    note_chunk(upper_index, 0);
    order_.insert(order_.begin() + at + 1, upper_index);
    last_.insert(last_.begin() + at, lower.keys[kHalf - 1]);
}

void FreeSet::join_with_next(std::uint32_t at) {
    Chunk& lower = chunks_[order_[at]];
    const Chunk& upper = chunks_[order_[at + 1]];
    std::copy_n(upper.keys.begin(), upper.count, lower.keys.begin() + lower.count);
    std::copy_n(upper.blocks.begin(), upper.count, lower.blocks.begin() + lower.count);
    const std::uint32_t joined = lower.count;
    lower.count += upper.count;
    note_chunk(order_[at], joined);
    last_[at] = last_[at + 1];
    remove_chunk(at + 1);
}

// The blocks of a chunk from `begin` on are in it now.
void FreeSet::note_chunk(std::uint32_t chunk, std::uint32_t begin) {
    for (std::uint32_t slot = begin; slot < chunks_[chunk].count; ++slot) {
        chunk_of_[chunks_[chunk].blocks[slot]] = chunk;
    }
}

void FreeSet::insert(const FreeKey& key, BlockIndex block) {
    if (order_.empty()) {
        order_.push_back(new_chunk());
        last_.push_back(key);
    }
    std::uint32_t at = std::min(find_chunk(key), static_cast<std::uint32_t>(order_.size() - 1));
    if (chunks_[order_[at]].count == kChunkSlots) {
        split_chunk(at);
        at += last_[at] < key ? 1 : 0;
    }
    Chunk& chunk = chunks_[order_[at]];
    const std::uint32_t slot = find_slot(chunk, key);
    std::copy_backward(chunk.keys.begin() + slot,
                       chunk.keys.begin() + chunk.count,
                       chunk.keys.begin() + chunk.count + 1);
    std::copy_backward(chunk.blocks.begin() + slot,
                       chunk.blocks.begin() + chunk.count,
                       chunk.blocks.begin() + chunk.count + 1);
    chunk.keys[slot] = key;
    chunk.blocks[slot] = block;
    ++chunk.count;
    if (last_[at] < key) {
        last_[at] = key;
    }
    if (block >= chunk_of_.size()) {
        chunk_of_.resize(std::size_t{block} + block / 2 + 1);
    }
    chunk_of_[block] = order_[at];
    ++size_;
}

void FreeSet::erase(BlockIndex block) {
    const std::uint32_t index = chunk_of_[block];
    Chunk& chunk = chunks_[index];
    std::uint32_t slot = 0;
    for (std::uint32_t i = 0; i < kChunkSlots; ++i) {  // no jumps: the place is a coin toss
        slot |= chunk.blocks[i] == block ? i : 0;
    }
    assert(chunk.blocks[slot] == block);
    const FreeKey key = chunk.keys[slot];
    std::copy(
        chunk.keys.begin() + slot + 1, chunk.keys.begin() + chunk.count, chunk.keys.begin() + slot);
    std::copy(chunk.blocks.begin() + slot + 1,
              chunk.blocks.begin() + chunk.count,
              chunk.blocks.begin() + slot);
    --chunk.count;
    chunk.blocks[chunk.count] = kNoBlock;
    --size_;
    if (chunk.count >= kChunkSlots / 4) {
        return;
    }
    const std::uint32_t at = find_chunk(key);
    if (chunk.count == 0) {
        remove_chunk(at);
    } else if (at + 1 < order_.size() &&
               chunk.count + chunks_[order_[at + 1]].count <= kChunkSlots / 2) {
        join_with_next(at);  // half a chunk of room is left: the next insertion does not split it
    }
}

void FreeSet::append_to(std::vector<BlockIndex>& blocks) const {
    blocks.reserve(blocks.size() + size_);
    for (const std::uint32_t index : order_) {
        const Chunk& chunk = chunks_[index];
        blocks.insert(blocks.end(), chunk.blocks.begin(), chunk.blocks.begin() + chunk.count);
    }
}

void FreeSet::clear() {
    *this = FreeSet();
}

}  // namespace fragtrace::analyzer
