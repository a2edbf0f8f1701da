#include "analyzer/pools/others/segment_pool.h"

#include "analyzer/support/units.h"

#include <algorithm>
#include <utility>

namespace fragtrace::analyzer {
namespace {}  // namespace

// ---- segments -----------------------------------------------------------------------------------

bool SegmentPool::take(DriverCall::Kind kind, std::uint64_t size_bytes) {
    const bool granted = device_->take(size_bytes);
    driver_calls_->push_back({kind, !granted, size_bytes});
    if (granted) {
        ++statistics_.segments_allocated;
        statistics_.reserved.add(size_bytes);
    }
    return granted;
}

BlockIndex SegmentPool::add_segment(std::uint64_t size_bytes, StreamId stream) {
    if (!take(DriverCall::Kind::kSegmentAlloc, size_bytes)) {
        return kNoBlock;
    }
    const std::uint32_t number = next_segment_++;
    const DeviceAddress address = next_address_;
    const BlockIndex index =
        new_block({.size_bytes = size_bytes, .segment = number, .stream = stream});
    segments_[number] = {address, size_bytes, index, index, stream};
    free_segments_.insert(number);
    next_address_ = address + round_up(size_bytes, kDriverPageBytes) + kDriverPageBytes;
    return index;
}

BlockIndex SegmentPool::extend_segment(std::uint32_t number, std::uint64_t size_bytes) {
    if (!take(DriverCall::Kind::kMap, size_bytes)) {
        return kNoBlock;
    }
    Segment& segment = segments_.at(number);
    const BlockIndex index = new_block({.offset_bytes = segment.size_bytes,
                                        .size_bytes = size_bytes,
                                        .segment = number,
                                        .previous = segment.last,
                                        .stream = segment.stream});
    blocks_[segment.last].next = index;
    segment.last = index;
    segment.size_bytes += size_bytes;
    next_address_ =
        segment.address + round_up(segment.size_bytes, kDriverPageBytes) + kDriverPageBytes;
    return index;
}

std::uint64_t SegmentPool::free_segment_bytes() const {
    std::uint64_t bytes = 0;
    for (const std::uint32_t number : free_segments_) {
        const Segment& segment = segments_.at(number);
        bytes += is_free(segment) ? segment.size_bytes : 0;
    }
    return bytes;
}

void SegmentPool::note_if_free(std::uint32_t segment) {
    if (is_free(segments_.at(segment))) {
        free_segments_.insert(segment);
    }
}

void SegmentPool::release_free_segments(FreeBlocks* free_blocks, std::uint32_t kept) {
    for (const std::uint32_t number : std::exchange(free_segments_, {})) {
        const auto at = segments_.find(number);
        if (!is_free(at->second)) {
            continue;
        }
        if (number == kept) {
            free_segments_.insert(number);
            continue;
        }
        const BlockIndex first = at->second.first;
        const std::uint64_t size_bytes = at->second.size_bytes;
        free_blocks->erase(first);
        unused_.push_back(first);
        device_->give_back(size_bytes);
        driver_calls_->push_back({DriverCall::Kind::kSegmentFree, false, size_bytes});
        statistics_.reserved.subtract(size_bytes);
        ++statistics_.segments_freed;
        segments_.erase(at);
    }
}

// ---- blocks -------------------------------------------------------------------------------------

BlockIndex SegmentPool::new_block(const PoolBlock& block) {
    if (unused_.empty()) {
        blocks_.push_back(block);
        return static_cast<BlockIndex>(blocks_.size() - 1);
    }
    const BlockIndex index = unused_.back();
    unused_.pop_back();
    blocks_[index] = block;
    return index;
}

BlockIndex SegmentPool::split(BlockIndex low, std::uint64_t low_bytes) {
    PoolBlock rest = blocks_[low];
    rest.offset_bytes += low_bytes;
    rest.size_bytes -= low_bytes;
    rest.previous = low;
    const BlockIndex high = new_block(rest);
    blocks_[low].size_bytes = low_bytes;
    blocks_[low].next = high;
    if (rest.next == kNoBlock) {
        segments_.at(rest.segment).last = high;
    } else {
        blocks_[rest.next].previous = high;
    }
    return high;
}

void SegmentPool::join_with_next(BlockIndex low) {
    PoolBlock& block = blocks_[low];
    const BlockIndex high = block.next;
    block.size_bytes += blocks_[high].size_bytes;
    block.next = blocks_[high].next;
    if (block.next == kNoBlock) {
        segments_.at(block.segment).last = low;
    } else {
        blocks_[block.next].previous = low;
    }
    unused_.push_back(high);
}

void SegmentPool::file(BlockIndex index, FreeBlocks* free_blocks) {
    const auto joins = [this, index](BlockIndex neighbour) {
        return neighbour != kNoBlock && blocks_[neighbour].free &&
               blocks_[neighbour].list == blocks_[index].list;
    };
    const BlockIndex next = blocks_[index].next;
    if (joins(next)) {
        free_blocks->erase(next);
        join_with_next(index);
    }
    const BlockIndex previous = blocks_[index].previous;
    if (joins(previous)) {
        free_blocks->erase(previous);
        join_with_next(previous);
        index = previous;
    }
    free_blocks->insert(index, blocks_[index]);
}

void SegmentPool::move_list(FreeBlocks::List from, FreeBlocks::List to, FreeBlocks* free_blocks) {
    for (const auto& [number, segment] : segments_) {
        for (BlockIndex at = segment.first; at != kNoBlock; at = blocks_[at].next) {
            if (blocks_[at].list != from) {
                continue;
            }
            if (!blocks_[at].free) {
                blocks_[at].list = to;
                continue;
            }
            free_blocks->erase(at);
            blocks_[at].list = to;
            file(at, free_blocks);  // a block that it merged with its predecessor keeps its `next`
        }
        note_if_free(number);
    }
}

BlockIndex SegmentPool::best_fit(const FreeBlocks& free_blocks,
                                 std::uint64_t size_bytes,
                                 FreeBlocks::List list) {
    const BlockIndex lowest = free_blocks.at_least(size_bytes, list);
    if (!preferred_place_ || lowest == kNoBlock) {
        return lowest;
    }
    const BlockIndex there =
        free_blocks.at(blocks_, blocks_[lowest].size_bytes, *preferred_place_, list);
    preferred_ += there != kNoBlock && there != lowest ? 1 : 0;
    return there != kNoBlock ? there : lowest;
}

AllocateResult SegmentPool::hand_out(BlockIndex index, const Request& request, Outcome outcome) {
    preferred_place_.reset();
    PoolBlock& block = blocks_[index];
    if (block.previous == kNoBlock) {
        free_segments_.erase(block.segment);
    }
    block.free = false;
    block.id = request.block;
    block.requested_bytes = request.requested_bytes;
    block.stream = request.stream;
    live_.insert(request.block, index);
    statistics_.requested.add(request.requested_bytes);
    statistics_.allocated.add(block.size_bytes);
    statistics_.active.add(block.size_bytes);
    const std::uint64_t rounded = rounded_bytes(request.requested_bytes);
    statistics_.rounding_bytes += rounded - request.requested_bytes;
    statistics_.slack_bytes += block.size_bytes - rounded;
    statistics_.retries += outcome == Outcome::kRetryOk ? 1 : 0;
    return {outcome, {block.segment, block.offset_bytes, block.size_bytes}};
}

AllocateResult SegmentPool::out_of_memory() {
    preferred_place_.reset();
    ++statistics_.ooms;
    return {Outcome::kOutOfMemory, {}};
}

bool SegmentPool::release(BlockId id, const std::vector<PendingOn>&) {
    const BlockIndex index = live_.find(id);
    if (index == kNoBlock) {
        return false;
    }
    live_.erase(id);
    PoolBlock& block = blocks_[index];
    block.free = true;
    const std::uint64_t rounded = rounded_bytes(block.requested_bytes);
    statistics_.requested.subtract(block.requested_bytes);
    statistics_.allocated.subtract(block.size_bytes);
    statistics_.active.subtract(block.size_bytes);
    statistics_.rounding_bytes -= rounded - block.requested_bytes;
    statistics_.slack_bytes -= block.size_bytes - rounded;
    const std::uint32_t segment = block.segment;
    freed(index);
    note_if_free(segment);
    return true;
}

// ---- the whole pool -----------------------------------------------------------------------------

bool SegmentPool::adopt(const HeapSnapshot& heap) {
    const PoolStatistics before = statistics_;
    for (const auto& [number, segment] : segments_) {
        device_->give_back(segment.size_bytes);
    }
    segments_.clear();
    free_segments_.clear();
    next_segment_ = 0;
    next_address_ = kFirstSegmentAddress;
    blocks_.clear();
    unused_.clear();
    live_ = {};
    statistics_.forget_held();
    forget();
    std::vector<const HeapBlock*> held;
    for (const HeapBlock& block : heap.blocks) {
        if (block.state != BlockState::kFree) {
            held.push_back(&block);
        }
    }
    std::sort(held.begin(), held.end(), [](const HeapBlock* a, const HeapBlock* b) {
        return a->allocated_by < b->allocated_by;
    });
    for (const HeapBlock* block : held) {
        const std::uint64_t requested = std::min(block->requested_bytes, block->size_bytes);
        if (allocate({.block = block->allocated_by,
                      .requested_bytes = std::max<std::uint64_t>(requested, 1),
                      .stream = block->stream == kNoStream ? StreamId{0} : block->stream})
                .outcome == Outcome::kOutOfMemory) {
            return false;
        }
    }
    statistics_.segments_allocated = before.segments_allocated;
    statistics_.segments_freed = before.segments_freed;
    statistics_.retries = before.retries;
    driver_calls_->clear();
    return true;
}

std::optional<Placement> SegmentPool::find(BlockId id) const {
    const BlockIndex index = live_.find(id);
    if (index == kNoBlock) {
        return std::nullopt;
    }
    const PoolBlock& block = blocks_[index];
    return Placement{block.segment, block.offset_bytes, block.size_bytes};
}

HeapSnapshot SegmentPool::snapshot() const {
    HeapSnapshot heap;
    heap.device_free_bytes = device_->free_bytes();
    for (const auto& [number, segment] : segments_) {
        HeapSegment shown{.address = segment.address,
                          .size_bytes = segment.size_bytes,
                          .first_block = static_cast<std::uint32_t>(heap.blocks.size()),
                          .stream = segment.stream,
                          .obtained_by = number};
        for (BlockIndex at = segment.first; at != kNoBlock; at = blocks_[at].next) {
            const PoolBlock& block = blocks_[at];
            heap.blocks.push_back({.address = segment.address + block.offset_bytes,
                                   .size_bytes = block.size_bytes,
                                   .requested_bytes = block.free ? 0 : block.requested_bytes,
                                   .allocated_by = block.free ? kNoEvent : block.id,
                                   .stream = block.stream,
                                   .state = block.free ? BlockState::kFree : BlockState::kLive});
            ++shown.block_count;
        }
        heap.segments.push_back(shown);
    }
    return heap;
}

std::vector<DriverCall> SegmentPool::take_driver_calls() {
    return std::exchange(*driver_calls_, {});
}

}  // namespace fragtrace::analyzer
