// Expandable segments: address ranges that are mapped page by page where blocks need them.
#include "analyzer/pools/pytorch/pytorch_blocks.h"
#include "analyzer/pools/pytorch/pytorch_sizes.h"
#include "analyzer/support/units.h"

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

// Bytes per driver call. More than 2^20 pages exceed every card, and page-by-page calls would only
// waste time, so such a request is one call.
std::uint64_t driver_step(std::uint64_t mapped_bytes, std::uint64_t page_bytes) {
    constexpr std::uint64_t kMostPages = 1 << 20;
    return mapped_bytes / page_bytes > kMostPages ? mapped_bytes : page_bytes;
}

}  // namespace

// True for free and unmapped blocks: neither live nor pending.
bool PytorchPool::is_idle(BlockIndex block) const {
    return block != kNoBlock &&
           (blocks_[block].state == State::kFree || blocks_[block].state == State::kUnmapped);
}

bool PytorchPool::room_for(BlockIndex from, std::uint64_t size_bytes) const {
    std::uint64_t room = 0;
    for (BlockIndex block = from; room < size_bytes && is_idle(block);
         block = blocks_[block].next) {
        room += blocks_[block].size_bytes;
    }
    return room >= size_bytes;
}

// Finds a place for a block of this size: an unmapped range, or the free block before one.
BlockIndex PytorchPool::find_expandable(const Search& search) {
    const SetIndex set = pools_[search.pool].unmapped.find(search.slot);
    for (BlockIndex at = set != kNoSet ? sets_.first(set) : kNoBlock; at != kNoBlock;
         at = sets_.next(at)) {
        BlockIndex candidate = at;
        if (is_idle(blocks_[candidate].previous)) {
            candidate = blocks_[candidate].previous;
        }
        if (room_for(candidate, search.rounded_bytes)) {
            return candidate;
        }
    }
    const std::uint64_t page = page_bytes(search.rounded_bytes);
    const BlockIndex block =
        new_segment(pytorch::reservation_bytes(config_, device_->total_bytes(), page), search);
    blocks_[block].expandable = true;
    segments_[blocks_[block].segment].page_bytes = page;
    if (blocks_[block].size_bytes < search.rounded_bytes && !rules_.keeps_short_reservations) {
        drop_segment(block);
        return kNoBlock;
    }
    insert_unmapped(block);
    return block;
}

BlockIndex PytorchPool::allocate_expandable(const Search& search) {
    BlockIndex candidate = find_expandable(search);
    if (candidate == kNoBlock) {
        return kNoBlock;
    }
    if (blocks_[candidate].state == State::kUnmapped &&
        !map(candidate, std::min(blocks_[candidate].size_bytes, search.rounded_bytes))) {
        return kNoBlock;
    }
    while (blocks_[candidate].size_bytes < search.rounded_bytes) {
        const std::uint64_t missing = search.rounded_bytes - blocks_[candidate].size_bytes;
        const BlockIndex next = blocks_[candidate].next;
        if (next == kNoBlock || !map(next, std::min(missing, blocks_[next].size_bytes))) {
            return kNoBlock;
        }
        candidate = next;  // `next` now includes the free block before it
    }
    erase_free(candidate);
    return candidate;
}

// Maps whole pages from the start of an unmapped block. The block becomes free and merges with its
// free neighbours. If a page cannot be mapped, none is.
bool PytorchPool::map(BlockIndex index, std::uint64_t size_bytes) {
    const std::uint64_t page = segments_[blocks_[index].segment].page_bytes;
    const std::uint64_t mapped_bytes = round_up(size_bytes, page);
    const std::uint64_t step = driver_step(mapped_bytes, page);
    for (std::uint64_t done = 0; done < mapped_bytes; done += step) {
        if (!device_->take(step)) {
            for (; done > 0; done -= step) {
                device_->give_back(step);
            }
            log(DriverCall::Kind::kMap, true, mapped_bytes);
            return false;
        }
    }
    log(DriverCall::Kind::kMap, false, mapped_bytes);
    note(PytorchTraceEntry::Action::kSegmentMap, blocks_[index], mapped_bytes);
    sets_.erase(index);
    if (mapped_bytes < blocks_[index].size_bytes) {
        const BlockIndex rest = new_block();
        Block& block = blocks_[index];
        blocks_[rest] = block;
        blocks_[rest].offset += mapped_bytes;
        blocks_[rest].size_bytes -= mapped_bytes;
        blocks_[rest].previous = index;
        if (block.next != kNoBlock) {
            blocks_[block.next].previous = rest;
        }
        block.next = rest;
        block.size_bytes = mapped_bytes;
        insert_unmapped(rest);
    }
    blocks_[index].state = State::kFree;
    merge(index, blocks_[index].previous);
    merge(index, blocks_[index].next);
    insert_free(index);
    count_obtained(blocks_[index].pool, mapped_bytes);
    return true;
}

// Unmaps the whole pages inside a free block. The parts before and after stay mapped and free.
// Returns false if the block contains no whole page.
bool PytorchPool::unmap(BlockIndex index) {
    const std::uint64_t page = segments_[blocks_[index].segment].page_bytes;
    const std::uint64_t start = blocks_[index].offset;
    const std::uint64_t end = start + blocks_[index].size_bytes;
    const std::uint64_t begin_page = round_up(start, page);
    const std::uint64_t end_page = end / page * page;
    if (end_page <= begin_page) {
        return false;
    }
    erase_free(index);
    if (begin_page > start) {
        const BlockIndex before = new_block();
        Block& block = blocks_[index];
        blocks_[before] = block;
        blocks_[before].size_bytes = begin_page - start;
        blocks_[before].next = index;
        if (block.previous != kNoBlock) {
            blocks_[block.previous].next = before;
        } else {
            segments_[block.segment].first = before;
        }
        block.previous = before;
        insert_free(before);
    }
    if (end > end_page) {
        const BlockIndex after = new_block();
        Block& block = blocks_[index];
        blocks_[after] = block;
        blocks_[after].offset = end_page;
        blocks_[after].size_bytes = end - end_page;
        blocks_[after].previous = index;
        if (block.next != kNoBlock) {
            blocks_[block.next].previous = after;
        }
        block.next = after;
        insert_free(after);
    }
    Block& block = blocks_[index];
    block.offset = begin_page;
    block.size_bytes = end_page - begin_page;
    block.state = State::kUnmapped;
    note(PytorchTraceEntry::Action::kSegmentUnmap, block, block.size_bytes);
    merge(index, block.previous);
    merge(index, block.next);
    insert_unmapped(index);
    const std::uint64_t step = driver_step(end_page - begin_page, page);
    for (std::uint64_t at = begin_page; at < end_page; at += step) {
        device_->give_back(step);
    }
    log(DriverCall::Kind::kUnmap, false, end_page - begin_page);
    count_returned(block.pool, end_page - begin_page);
    count_segment_gone(block.pool);
    return true;
}

}  // namespace fragtrace::analyzer
