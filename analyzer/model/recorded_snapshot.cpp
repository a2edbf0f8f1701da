// The parts of RecordedState that are computed on demand: the address map and values derived from
// it.
#include "analyzer/model/recorded_state.h"
#include "analyzer/model/release_unit.h"
#include "analyzer/support/units.h"

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

// PyTorch serves small requests from segments of this size, and maps expandable segments for them
// in pages of this size.
constexpr std::uint64_t kSmallSegmentBytes = 2 * kMiB;

// Whole release units of the segment inside the free range [begin, end).
std::uint64_t whole_unit_bytes(const RecordedSegment& segment,
                               DeviceAddress begin,
                               DeviceAddress end) {
    const std::uint64_t unit = release_unit_bytes(segment.size_bytes, segment.page_bytes);
    const std::uint64_t first = round_up(begin - segment.address, unit);
    const std::uint64_t last = (end - segment.address) / unit * unit;
    return last > first ? last - first : 0;
}

}  // namespace

// Calls visit(segment, begin, end, block) for every block and every free range (block = nullptr) of
// every segment. The calls are in ascending order and cover each segment completely.
template <typename Visit>
void RecordedState::visit_ranges(const DeviceState& device, Visit visit) const {
    for (const RecordedSegment& segment : device.segments.segments()) {
        DeviceAddress next = segment.address;
        for (auto at = device.blocks.lower_bound(segment.address);; at = device.blocks.next(at)) {
            const RecordedBlock* block = device.blocks.at(at);
            if (block == nullptr || block->address >= segment.end()) {
                break;
            }
            if (block->address > next) {
                visit(segment, next, block->address, nullptr);
            }
            visit(segment, block->address, block->end(), block);
            next = block->end();
        }
        if (next < segment.end()) {
            visit(segment, next, segment.end(), nullptr);
        }
    }
}

bool RecordedState::may_release(const DeviceState& device, const RecordedSegment& segment) {
    return !pool_keeps_units(segment.private_pool,
                             device.pools_released.contains(segment.private_pool));
}

HeapSnapshot RecordedState::snapshot(DeviceId device) const {
    const DeviceState& state = devices_[device];
    HeapSnapshot result;
    visit_ranges(state,
                 [&result, &state](const RecordedSegment& segment,
                                   DeviceAddress begin,
                                   DeviceAddress end,
                                   const RecordedBlock* block) {
                     if (begin == segment.address) {
                         HeapSegment& heap = result.segments.emplace_back();
                         heap.address = segment.address;
                         heap.size_bytes = segment.size_bytes;
                         heap.first_block = static_cast<std::uint32_t>(result.blocks.size());
                         heap.stream = segment.stream;
                         heap.private_pool = segment.private_pool;
                         heap.may_release = may_release(state, segment);
                         heap.expandable = segment.expandable();
                         heap.page_bytes = segment.page_bytes;
                         heap.obtained_by = segment.obtained_by;
                         heap.reservation = segment.reservation;
                         heap.reservation_bytes = segment.reservation_bytes;
                         const std::uint64_t unit =
                             release_unit_bytes(segment.size_bytes, segment.page_bytes);
                         heap.size_class = state.direct                 ? SizeClass::kNone
                                           : unit == kSmallSegmentBytes ? SizeClass::kSmall
                                                                        : SizeClass::kLarge;
                     }
                     HeapBlock& heap_block = result.blocks.emplace_back();
                     heap_block.address = begin;
                     heap_block.size_bytes = end - begin;
                     heap_block.stream = segment.stream;
                     if (block != nullptr) {
                         heap_block.requested_bytes = block->requested_bytes;
                         heap_block.allocated_by = block->allocated_by;
                         heap_block.stream = block->stream;
                         heap_block.state = block->state;
                     }
                     ++result.segments.back().block_count;
                 });
    result.device_free_bytes = device_free_bytes(device);
    return result;
}

std::uint64_t RecordedState::releasable_bytes(DeviceId device) const {
    std::uint64_t sum = 0;
    const DeviceState& state = devices_[device];
    if (state.totals.free_pool() == 0) {
        return 0;  // always so without a pool, where each allocation may be a new peak
    }
    visit_ranges(state,
                 [&sum, &state](const RecordedSegment& segment,
                                DeviceAddress begin,
                                DeviceAddress end,
                                const RecordedBlock* block) {
                     if (block == nullptr && may_release(state, segment)) {
                         sum += whole_unit_bytes(segment, begin, end);
                     }
                 });
    return sum;
}

std::uint64_t RecordedState::largest_free_bytes(DeviceId device) const {
    std::uint64_t largest = 0;
    visit_ranges(devices_[device],
                 [&largest](const RecordedSegment&,
                            DeviceAddress begin,
                            DeviceAddress end,
                            const RecordedBlock* block) {
                     if (block == nullptr) {
                         largest = std::max(largest, end - begin);
                     }
                 });
    return largest;
}

std::uint64_t RecordedState::device_free_bytes(DeviceId device) const {
    const DeviceState& state = devices_[device];
    const std::uint64_t then = state.sample.free_bytes + state.sample.own_bytes;
    return state.sample.event == kNoEvent || then < state.totals.own ? 0 : then - state.totals.own;
}

bool RecordedState::has_block_layer(DeviceId device) const {
    return !devices_[device].direct;
}

const MemoryTotals& RecordedState::totals(DeviceId device) const {
    return devices_[device].totals;
}

const MemorySample& RecordedState::sample(DeviceId device) const {
    return devices_[device].sample;
}

std::uint64_t RecordedState::detached_blocks(DeviceId device) const {
    return devices_[device].detached.size();
}

}  // namespace fragtrace::analyzer
