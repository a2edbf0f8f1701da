#include "analyzer/pools/others/offline_pool.h"

#include "analyzer/support/units.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace fragtrace::analyzer {
namespace {}  // namespace

OfflinePool::OfflinePool(std::string config,
                         std::shared_ptr<const PoolPlan> plan,
                         std::unique_ptr<Device> device)
    : config_(std::move(config)),
      plan_(std::move(plan)),
      device_(std::move(device)),
      region_bytes_(plan_->regions.size()) {}

std::uint64_t OfflinePool::rounded_bytes(std::uint64_t requested_bytes) const {
    return round_up(requested_bytes, kPlannedQuantumBytes);
}

const PlannedBlock* OfflinePool::look_up(BlockId block) {
    const auto& blocks = plan_->blocks;
    if (next_ >= blocks.size() || blocks[next_].block != block) {
        const auto found = std::lower_bound(
            blocks.begin(), blocks.end(), block, [](const PlannedBlock& planned, BlockId id) {
                return planned.block < id;
            });
        next_ = static_cast<std::size_t>(found - blocks.begin());
        if (found == blocks.end() || found->block != block) {
            return nullptr;
        }
    }
    return &blocks[next_++];
}

bool OfflinePool::grow(std::uint32_t region, std::uint64_t end_bytes) {
    const std::uint64_t more = round_up(end_bytes, kDriverPageBytes) - region_bytes_[region];
    const bool granted = device_->resize(region_bytes_[region], region_bytes_[region] + more);
    driver_calls_->push_back(
        {region_bytes_[region] == 0 ? DriverCall::Kind::kSegmentAlloc : DriverCall::Kind::kMap,
         !granted,
         more});
    if (granted) {
        region_bytes_[region] += more;
        statistics_.reserved.add(more);
        ++statistics_.segments_allocated;
    }
    return granted;
}

AllocateResult OfflinePool::allocate(const Request& request) {
    const PlannedBlock* place = look_up(request.block);
    const std::uint64_t size_bytes = rounded_bytes(request.requested_bytes);
    if (place == nullptr) {
        ++statistics_.ooms;
        return {};
    }
    Outcome outcome = Outcome::kHit;
    if (place->offset_bytes + size_bytes > region_bytes_[place->region]) {
        if (!grow(place->region, place->offset_bytes + size_bytes)) {
            ++statistics_.ooms;
            return {};
        }
        outcome = Outcome::kGrow;
    }
    BlockIndex slot = static_cast<BlockIndex>(slots_.size());
    if (free_slots_.empty()) {
        slots_.emplace_back();
    } else {
        slot = free_slots_.back();
        free_slots_.pop_back();
    }
    slots_[slot] = {.place = *place,
                    .requested_bytes = request.requested_bytes,
                    .size_bytes = size_bytes,
                    .stream = request.stream,
                    .live = true};
    table_.insert(request.block, slot);
    statistics_.requested.add(request.requested_bytes);
    statistics_.allocated.add(size_bytes);
    statistics_.active.add(size_bytes);
    statistics_.rounding_bytes += size_bytes - request.requested_bytes;
    return {outcome, {place->region, place->offset_bytes, size_bytes}};
}

bool OfflinePool::release(BlockId block, const std::vector<PendingOn>& pending) {
    const BlockIndex slot = table_.find(block);
    if (slot == kNoBlock) {
        return false;
    }
    table_.erase(block);
    Held& held = slots_[slot];
    held.live = false;
    statistics_.requested.subtract(held.requested_bytes);
    statistics_.allocated.subtract(held.size_bytes);
    statistics_.rounding_bytes -= held.size_bytes - held.requested_bytes;
    if (!pending_.wait(slot, pending)) {
        remove(slot);
    }
    return true;
}

void OfflinePool::complete(PendingId id) {
    const BlockIndex slot = pending_.complete(id);
    if (slot != kNoBlock) {
        remove(slot);
    }
}

void OfflinePool::remove(BlockIndex slot) {
    statistics_.active.subtract(slots_[slot].size_bytes);
    slots_[slot] = {};
    free_slots_.push_back(slot);
}

// Keeps the regions: adopted blocks also lie in them.
bool OfflinePool::adopt(const HeapSnapshot& heap) {
    table_ = {};
    slots_.clear();
    free_slots_.clear();
    pending_ = {};
    for (Gauge* gauge : {&statistics_.requested, &statistics_.allocated, &statistics_.active}) {
        gauge->subtract(gauge->current);
    }
    statistics_.rounding_bytes = 0;
    for (const HeapBlock& block : heap.blocks) {
        if (block.state != BlockState::kFree &&
            allocate({.block = block.allocated_by,
                      .requested_bytes = std::min(block.requested_bytes, block.size_bytes),
                      .stream = block.stream})
                    .outcome == Outcome::kOutOfMemory) {
            return false;
        }
    }
    return true;
}

std::optional<Placement> OfflinePool::find(BlockId block) const {
    const BlockIndex slot = table_.find(block);
    if (slot == kNoBlock) {
        return std::nullopt;
    }
    const Held& held = slots_[slot];
    return Placement{held.place.region, held.place.offset_bytes, held.size_bytes};
}

HeapSnapshot OfflinePool::snapshot() const {
    HeapSnapshot heap;
    heap.device_free_bytes = device_->free_bytes();
    std::vector<const Held*> sorted;
    for (const Held& held : slots_) {
        if (held.size_bytes != 0) {
            sorted.push_back(&held);
        }
    }
    std::sort(sorted.begin(), sorted.end(), [](const Held* a, const Held* b) {
        return std::tie(a->place.region, a->place.offset_bytes) <
               std::tie(b->place.region, b->place.offset_bytes);
    });
    std::uint64_t address = kDriverPageBytes;
    std::size_t next = 0;
    for (std::uint32_t region = 0; region < region_bytes_.size(); ++region) {
        if (region_bytes_[region] == 0) {
            continue;
        }
        HeapSegment segment{.address = address,
                            .size_bytes = region_bytes_[region],
                            .first_block = static_cast<std::uint32_t>(heap.blocks.size()),
                            .stream = plan_->regions[region],
                            .may_release = false,
                            .obtained_by = region};
        std::uint64_t at = 0;
        const auto free_until = [&](std::uint64_t offset_bytes) {
            if (at < offset_bytes) {
                heap.blocks.push_back({.address = address + at, .size_bytes = offset_bytes - at});
            }
            at = offset_bytes;
        };
        for (; next < sorted.size() && sorted[next]->place.region == region; ++next) {
            const Held& held = *sorted[next];
            free_until(held.place.offset_bytes);
            heap.blocks.push_back({.address = address + at,
                                   .size_bytes = held.size_bytes,
                                   .requested_bytes = held.requested_bytes,
                                   .allocated_by = held.place.block,
                                   .stream = held.stream,
                                   .state = held.live ? BlockState::kLive : BlockState::kPending});
            at += held.size_bytes;
        }
        free_until(segment.size_bytes);
        segment.block_count = static_cast<std::uint32_t>(heap.blocks.size()) - segment.first_block;
        heap.segments.push_back(segment);
        address += segment.size_bytes + kDriverPageBytes;
    }
    return heap;
}

std::vector<DriverCall> OfflinePool::take_driver_calls() {
    return std::exchange(*driver_calls_, {});
}

}  // namespace fragtrace::analyzer
