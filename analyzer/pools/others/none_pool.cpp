#include "analyzer/pools/others/none_pool.h"

#include "analyzer/support/units.h"

#include <algorithm>
#include <utility>

namespace fragtrace::analyzer {

namespace {}  // namespace

// The driver gets the program's exact request. The device models alignment and pages.
std::uint64_t NonePool::rounded_bytes(std::uint64_t requested_bytes) const {
    return requested_bytes;
}

AllocateResult NonePool::allocate(const Request& request) {
    const std::uint64_t size_bytes = request.requested_bytes;
    const bool granted = device_->take(size_bytes);
    driver_calls_->push_back({DriverCall::Kind::kSegmentAlloc, !granted, size_bytes});
    if (!granted) {
        ++statistics_.ooms;
        return {Outcome::kOutOfMemory, {}};
    }
    const std::uint32_t segment = segments_++;
    // Addresses only ever increase, as in SegmentPool.
    const std::uint64_t address = next_address_;
    next_address_ += round_up(size_bytes, kDriverPageBytes);
    held_[request.block] = {address, request.requested_bytes, size_bytes, segment, request.stream};
    statistics_.requested.add(request.requested_bytes);
    statistics_.allocated.add(size_bytes);
    statistics_.active.add(size_bytes);
    statistics_.reserved.add(size_bytes);
    ++statistics_.segments_allocated;
    return {Outcome::kGrow, {segment, 0, size_bytes}};
}

bool NonePool::release(BlockId block, const std::vector<PendingOn>&) {
    const auto found = held_.find(block);
    if (found == held_.end()) {
        return false;
    }
    const Held& held = found->second;
    device_->give_back(held.size_bytes);
    driver_calls_->push_back({DriverCall::Kind::kSegmentFree, false, held.size_bytes});
    statistics_.requested.subtract(held.requested_bytes);
    statistics_.allocated.subtract(held.size_bytes);
    statistics_.active.subtract(held.size_bytes);
    statistics_.reserved.subtract(held.size_bytes);
    ++statistics_.segments_freed;
    held_.erase(found);
    return true;
}

bool NonePool::adopt(const HeapSnapshot& heap) {
    const PoolStatistics before = statistics_;
    while (!held_.empty()) {
        release(held_.begin()->first, {});
    }
    for (const HeapBlock& block : heap.blocks) {
        if (block.state == BlockState::kFree) {
            continue;
        }
        const std::uint64_t requested = std::min(block.requested_bytes, block.size_bytes);
        if (allocate(
                {.block = block.allocated_by, .requested_bytes = requested, .stream = block.stream})
                .outcome != Outcome::kGrow) {
            return false;
        }
    }
    statistics_.segments_allocated = before.segments_allocated;
    statistics_.segments_freed = before.segments_freed;
    driver_calls_->clear();
    return true;
}

std::optional<Placement> NonePool::find(BlockId block) const {
    const auto found = held_.find(block);
    if (found == held_.end()) {
        return std::nullopt;
    }
    return Placement{found->second.segment, 0, found->second.size_bytes};
}

HeapSnapshot NonePool::snapshot() const {
    HeapSnapshot heap;
    heap.device_free_bytes = device_->free_bytes();
    std::vector<std::pair<BlockId, Held>> sorted(held_.begin(), held_.end());
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
        return a.second.address < b.second.address;
    });
    for (const auto& [block, held] : sorted) {
        heap.segments.push_back({.address = held.address,
                                 .size_bytes = held.size_bytes,
                                 .first_block = static_cast<std::uint32_t>(heap.blocks.size()),
                                 .block_count = 1,
                                 .stream = held.stream,
                                 .obtained_by = held.segment});
        heap.blocks.push_back({.address = held.address,
                               .size_bytes = held.size_bytes,
                               .requested_bytes = held.requested_bytes,
                               .allocated_by = block,
                               .stream = held.stream,
                               .state = BlockState::kLive});
    }
    return heap;
}

std::vector<DriverCall> NonePool::take_driver_calls() {
    return std::exchange(*driver_calls_, {});
}

}  // namespace fragtrace::analyzer
