// The block layer of RecordedState: allocations and frees in the framework's pool.
#include "analyzer/model/recorded_state.h"
#include "analyzer/model/unknown_segments.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

namespace fragtrace::analyzer {
namespace {

// The part of a block's internal waste that comes from rounding to the unit; the rest is slack.
std::uint64_t rounding_of(const RecordedBlock& block) {
    const std::uint64_t request = block.counted_request();
    return std::min(round_up(request, kBlockUnitBytes), block.size_bytes) - request;
}

void count_live(const RecordedBlock& block, MemoryTotals* totals) {
    const std::uint64_t rounding = rounding_of(block);
    totals->requested += block.counted_request();
    totals->rounding += rounding;
    totals->slack += block.size_bytes - block.counted_request() - rounding;
    totals->allocated += block.size_bytes;
    totals->blocks += 1;
    totals->requests_unknown += block.requested_bytes == kUnknown64 ? 1 : 0;
}

void uncount_live(const RecordedBlock& block, MemoryTotals* totals) {
    const std::uint64_t rounding = rounding_of(block);
    totals->requested -= block.counted_request();
    totals->rounding -= rounding;
    totals->slack -= block.size_bytes - block.counted_request() - rounding;
    totals->allocated -= block.size_bytes;
    totals->blocks -= 1;
    totals->requests_unknown -= block.requested_bytes == kUnknown64 ? 1 : 0;
}

}  // namespace

void RecordedState::block_alloc(DeviceState* device, const Event& event) {
    RecordedBlock block = {};
    block.address = event.address;
    block.requested_bytes = event.size_bytes;
    block.size_bytes = event.extra != 0 && event.extra != kUnknown64 ? event.extra
                       : event.size_bytes != kUnknown64
                           ? round_up(event.size_bytes, kBlockUnitBytes)
                           : 0;
    block.allocated_by = position_;
    block.stream = event.stream;
    block.private_pool = pool_;
    if (block.size_bytes == 0 || block.end() < block.address) {
        return violation(fmt::format("block {:#x} has an impossible size", block.address));
    }
    if (block.requested_bytes != kUnknown64 && block.requested_bytes > block.size_bytes) {
        violation(fmt::format("block {:#x} is smaller than its request", block.address));
    }
    if ((event.flags & kFlagSegmentUnknown) != 0) {
        // Blocks that this one overlaps must have been freed without a record.
        const RecordedSegment* other = nullptr;
        while ((other = device->segments.at_or_before(block.end() - 1)) != nullptr &&
               other->end() > block.address) {
            violation(fmt::format(
                "block {:#x} overlaps the live block {:#x}", block.address, other->address));
            const DeviceAddress end = other->end();
            remove_range(device, other->address, end, true);
        }
        device->detached.clear();
        add_segment(device,
                    {.address = block.address,
                     .size_bytes = block.size_bytes,
                     .stream = block.stream,
                     .private_pool = pool_,
                     .obtained_by = position_});
        attach(device, device->segments.find(block.address), block);
        return;
    }
    if (!device->detached.empty()) {
        device->detached.erase(block.address);
    }
    // First the segment: if it is new, detached blocks in it are back, and may be in the way.
    RecordedSegment* segment = segment_for(device, block);
    const BlockMap::Position next = clear_way(device, block);
    if (segment == nullptr) {
        violation(fmt::format("block {:#x} lies in no segment of its device", block.address));
        device->detached[block.address] = block;
        return;
    }
    attach(device, segment, block, next);
}

// An address range that the pool allocates must be free, even if the recorded state disagrees.
// Pending blocks there have completed. A live block there is a violation. Returns the position of
// the next block.
BlockMap::Position RecordedState::clear_way(DeviceState* device, const RecordedBlock& block) {
    auto position = device->blocks.lower_bound(block.address);
    const RecordedBlock* before = device->blocks.before(position);
    if (before != nullptr && before->end() > block.address) {
        position = device->blocks.lower_bound(before->address);
    }
    for (const RecordedBlock* other = device->blocks.at(position);
         other != nullptr && other->address < block.end();
         other = device->blocks.at(position)) {
        if (other->state == BlockState::kLive) {
            violation(fmt::format(
                "block {:#x} overlaps the live block {:#x}", block.address, other->address));
        }
        const DeviceAddress next = other->end();
        drop(device, position);
        position = device->blocks.lower_bound(next);
    }
    return position;
}

RecordedSegment* RecordedState::segment_for(DeviceState* device, const RecordedBlock& block) {
    RecordedSegment* segment = device->segments.find(block.address);
    if (segment == nullptr) {
        // A block inside an allocation shows that the allocation is a segment of the pool, even if
        // its caller was not recognised.
        auto other = device->others.upper_bound(block.address);
        if (other == device->others.begin()) {
            return nullptr;
        }
        --other;
        const std::uint64_t size_bytes = other->second.size_bytes;
        if (block.address - other->first >= size_bytes) {
            return nullptr;
        }
        const RecordedSegment promoted = {.address = other->first, .size_bytes = size_bytes};
        forget_other(device, other);
        add_segment(device, promoted);
        segment = device->segments.find(block.address);
    }
    return segment != nullptr && block.end() <= segment->end() ? segment : nullptr;
}

void RecordedState::attach(DeviceState* device,
                           RecordedSegment* segment,
                           const RecordedBlock& block,
                           BlockMap::Position next) {
    if (segment->stream == kNoStream) {
        segment->stream = block.stream;
        segment->private_pool = block.private_pool;
    }
    if (segment->private_pool != 0) {
        device->begun_in_pool[segment->private_pool].insert(block.address);
    }
    segment->active_bytes += block.size_bytes;
    count_live(block, &device->totals);
    device->blocks.insert(block, next);
    if (device->watch != nullptr) {
        device->watch->block_begins(block);
    }
    check_sums(*device);
}

void RecordedState::reattach(DeviceState* device, DeviceAddress begin, DeviceAddress end) {
    auto entry = device->detached.lower_bound(begin);
    if (entry != device->detached.begin() && std::prev(entry)->second.end() > begin) {
        --entry;  // the new mapping may complete this block
    }
    while (entry != device->detached.end() && entry->first < end) {
        RecordedSegment* segment = device->segments.find(entry->first);
        if (segment == nullptr || entry->second.end() > segment->end()) {
            ++entry;
            continue;
        }
        clear_way(device, entry->second);
        attach(device, segment, entry->second);
        entry = device->detached.erase(entry);
    }
}

void RecordedState::block_free(DeviceState* device, const Event& event) {
    const auto position = device->blocks.lower_bound(event.address);
    RecordedBlock* block = device->blocks.at(position);
    if ((event.flags & kFlagSegmentUnknown) != 0) {
        // Imports often begin in mid-run. The pairing counts frees of unknown blocks.
        if (block != nullptr && block->address == event.address) {
            const DeviceAddress end = block->end();
            drop(device, position);
            remove_range(device, event.address, end, true);
        }
        return;
    }
    if (block == nullptr || block->address != event.address || block->state != BlockState::kLive) {
        if (device->detached.erase(event.address) == 0) {
            violation(fmt::format("block {:#x} is freed but was not live", event.address));
        }
        return;
    }
    if ((event.flags & kFlagPending) != 0) {
        uncount_live(*block, &device->totals);
        device->totals.pending += block->size_bytes;
        block->state = BlockState::kPending;
        if (device->watch != nullptr) {
            device->watch->block_waits(*block);
        }
    } else {
        drop(device, position);
    }
}

void RecordedState::pending_event(const Event& event) {
    RecordedBlock* block = devices_[event.device].blocks.find(event.address);
    if (block != nullptr && block->state == BlockState::kPending) {
        ++block->pending_events;
        waiting_.emplace(event.extra, Waiting{event.address, block->allocated_by, event.device});
    }
}

void RecordedState::event_complete(const Event& event) {
    const auto [begin, end] = waiting_.equal_range(event.extra);
    for (auto entry = begin; entry != end; ++entry) {
        const Waiting& waiting = entry->second;
        DeviceState* device = &devices_[waiting.device];
        const auto position = device->blocks.lower_bound(waiting.address);
        RecordedBlock* block = device->blocks.at(position);
        if (block != nullptr && block->address == waiting.address &&
            block->state == BlockState::kPending && block->allocated_by == waiting.allocated_by &&
            --block->pending_events == 0) {
            drop(device, position);
        }
    }
    waiting_.erase(begin, end);
}

// After a rewind, block allocs announce every block that the pool still has.
void RecordedState::pool_rewind(DeviceState* device, std::uint32_t pool) {
    if (pool == 0) {
        return;
    }
    if (const auto begun = device->begun_in_pool.find(pool); begun != device->begun_in_pool.end()) {
        const std::set<DeviceAddress> addresses = std::move(begun->second);
        device->begun_in_pool.erase(begun);
        for (const DeviceAddress address : addresses) {
            const RecordedSegment* segment = device->segments.find(address);
            if (segment != nullptr && segment->private_pool == pool &&
                device->blocks.find(address) != nullptr) {
                drop(device, device->blocks.lower_bound(address));
            }
        }
    }
    std::erase_if(device->detached,
                  [pool](const auto& entry) { return entry.second.private_pool == pool; });
}

void RecordedState::pool_changes(DeviceState* device, std::uint32_t pool, bool released) {
    const bool changed = released ? device->pools_released.insert(pool).second
                                  : device->pools_released.erase(pool) != 0;
    if (changed && device->watch != nullptr) {
        device->watch->pool_changes(pool, released);
    }
}

void RecordedState::drop(DeviceState* device, BlockMap::Position position) {
    const RecordedBlock& block = *device->blocks.at(position);
    if (block.state == BlockState::kPending) {
        device->totals.pending -= block.size_bytes;
    } else {
        uncount_live(block, &device->totals);
    }
    RecordedSegment* segment = device->segments.find(block.address);
    if (segment != nullptr) {
        segment->active_bytes -= std::min(segment->active_bytes, block.size_bytes);
    }
    if (device->watch != nullptr) {
        device->watch->block_ends(block);
    }
    device->blocks.erase(position);
}

}  // namespace fragtrace::analyzer
