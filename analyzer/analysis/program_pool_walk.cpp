#include "analyzer/analysis/program_pool_walk.h"

#include <algorithm>
#include <iterator>

namespace fragtrace::analyzer {
namespace {

// That keep a segment over a checkpoint. A made-up trace could have one with very many of them.
constexpr std::size_t kMostKeptPools = 64;

constexpr std::string_view kListed = "the pool was in use while nothing was recorded";

HeapBlock block_in_heap(DeviceAddress address, const ProgramPoolBlock& block) {
    HeapBlock shown;
    shown.address = address;
    shown.size_bytes = block.size_bytes;
    shown.requested_bytes = block.requested_bytes;
    shown.allocated_by = block.allocated_by;
    shown.state = BlockState::kLive;
    return shown;
}

}  // namespace

bool has_program_blocks(const Timeline& timeline) {
    const EventTable& events = timeline.events;
    const auto& entries = timeline.event_pools.entries();
    return std::any_of(entries.begin(), entries.end(), [&events](const auto& entry) {
        const EventKind kind = events.kind(entry.first);
        return kind == EventKind::kProgramBlockAlloc || kind == EventKind::kProgramRequestFailed;
    });
}

HeapSnapshot snapshot_of(const ProgramPoolState& state) {
    HeapSnapshot heap;
    const auto begin_segment =
        [&heap](DeviceAddress address, std::uint64_t size_bytes, EventIndex allocated_by) {
            HeapSegment& segment = heap.segments.emplace_back();
            segment.address = address;
            segment.size_bytes = size_bytes;
            segment.first_block = static_cast<std::uint32_t>(heap.blocks.size());
            segment.obtained_by = allocated_by;
        };
    const auto add = [&heap](const HeapBlock& block) {
        heap.blocks.push_back(block);
        ++heap.segments.back().block_count;
    };
    const auto add_free = [&add](DeviceAddress from, DeviceAddress to) {
        if (to > from) {
            HeapBlock block;
            block.address = from;
            block.size_bytes = to - from;
            add(block);
        }
    };
    for (const auto& [allocated_by, segment] : state.segments) {
        begin_segment(segment.address, segment.size_bytes, allocated_by);
        DeviceAddress next = segment.address;
        for (const DeviceAddress address : segment.blocks) {
            const ProgramPoolBlock& block = state.blocks.at(address);
            add_free(next, address);
            add(block_in_heap(address, block));
            next = block.end(address);
        }
        add_free(next, segment.end());
    }
    for (const auto& [address, block] : state.blocks) {
        if (block.segment == kNoEvent) {
            begin_segment(address, block.size_bytes, block.allocated_by);
            add(block_in_heap(address, block));
        }
    }
    return heap;
}

void ProgramPoolWalk::advance() {
    const Event event = timeline_.events[position_];
    changed_ = nullptr;
    if (event.kind == EventKind::kCheckpointBegin) {
        checkpoint_begin();  // before everything that ended here: it goes on
    }
    end_regions_of(position_);
    switch (event.kind) {
        case EventKind::kDeviceAlloc:
        case EventKind::kAsyncAlloc:
            begin_region(&driver_, event, PoolMemory::kDevice, event.size_bytes);
            break;
        case EventKind::kMap:
            map(event);
            break;
        case EventKind::kAddressReserve:
            reservations_[event.address] = event.size_bytes;
            break;
        case EventKind::kAddressFree:
            reservations_.erase(event.address);
            break;
        case EventKind::kUnmap:
            end_mappings(event.address, event.size_bytes);
            break;
        case EventKind::kManagedAlloc:
            begin_region(&driver_, event, PoolMemory::kManaged, event.size_bytes);
            break;
        case EventKind::kHostAlloc:
        case EventKind::kHostRegister:
            begin_region(&driver_, event, PoolMemory::kHost, event.size_bytes);
            break;
        case EventKind::kBlockAlloc:
            begin_region(&framework_, event, PoolMemory::kDevice, event.extra);
            break;
        case EventKind::kProgramBlockAlloc:
            block_alloc(event);
            break;
        case EventKind::kProgramBlockFree:
            block_free(timeline_.partner[position_]);
            ended_.erase({timeline_.event_pools.at(position_, &pool_cursor_), event.address});
            break;
        case EventKind::kProgramRequestFailed:
            request_failed(timeline_.event_pools.at(position_, &pool_cursor_));
            break;
        case EventKind::kProgramStreamEnd:
            for_each_part(timeline_.event_pools.at(position_, &pool_cursor_),
                          [this](const Key& key, ProgramPoolState*) {
                              histories_[key].steps.push_back({Step::Kind::kStreamEnd, position_});
                          });
            break;
        case EventKind::kProgramPoolEnd:
            pool_end(timeline_.event_pools.at(position_, &pool_cursor_));
            break;
        case EventKind::kCheckpointEnd:
            in_checkpoint_ = false;
            kept_.clear();
            break;
        default:
            break;
    }
    ++position_;
}

void ProgramPoolWalk::begin_region(std::map<DeviceAddress, PoolRegion>* regions,
                                   const Event& event,
                                   PoolMemory memory,
                                   std::uint64_t size_bytes) {
    if (size_bytes == 0 || size_bytes == kUnknown64 || event.address + size_bytes < event.address) {
        return;
    }
    if (const auto former = regions->find(event.address); former != regions->end()) {
        end_region(former->second.allocated_by);  // its free is not in the trace
    }
    (*regions)[event.address] = {.address = event.address,
                                 .size_bytes = size_bytes,
                                 .allocated_by = position_,
                                 .memory = memory,
                                 .device = static_cast<DeviceId>(event.device)};
    if (in_checkpoint_) {
        reattach(&(*regions)[event.address], regions != &framework_);
    }
    const EventIndex end = timeline_.partner[position_];
    if (end != kNoEvent && end > position_) {
        ends_[end].push_back(position_);
    }
}

// One event, such as a reset, may end many allocations.
void ProgramPoolWalk::end_regions_of(EventIndex event) {
    const auto ended = ends_.find(event);
    if (ended != ends_.end()) {
        for (const EventIndex alloc : ended->second) {
            end_region(alloc);
        }
        ends_.erase(ended);
    }
}

void ProgramPoolWalk::map(const Event& event) {
    const auto behind = mapped_.lower_bound(event.address);
    const auto reservation = reservations_.upper_bound(event.address);
    if (behind != mapped_.begin() && reservation != reservations_.begin()) {
        PoolRegion& before = std::prev(behind)->second;
        const auto& [begin, bytes] = *std::prev(reservation);
        if (before.end() == event.address && before.address >= begin &&
            event.address - begin < bytes && event.size_bytes <= bytes &&
            before.device == static_cast<DeviceId>(event.device)) {
            resize(&before, before.size_bytes + event.size_bytes);
            return;
        }
    }
    begin_region(&mapped_, event, PoolMemory::kDevice, event.size_bytes);
}

// Blocks that lie beyond the new end are gone.
void ProgramPoolWalk::resize(PoolRegion* region, std::uint64_t size_bytes) {
    region->size_bytes = size_bytes;
    for (const std::uint32_t number : region->users) {
        for_each_part(number, [this, region](const Key& key, ProgramPoolState* pool) {
            const auto found = pool->segments.find(region->allocated_by);
            if (found == pool->segments.end()) {
                return;
            }
            ProgramPoolSegment& segment = found->second;
            pool->reserved_bytes += region->size_bytes - segment.size_bytes;
            segment.size_bytes = region->size_bytes;
            while (!segment.blocks.empty()) {
                const auto last = pool->blocks.find(*segment.blocks.rbegin());
                if (last->second.end(last->first) <= segment.end()) {
                    break;
                }
                ended_.emplace(key.number, last->first);
                drop(key, pool, last);
            }
            if (segment.index != kUnknown32) {
                SegmentOfPool& known = histories_[key].segments[segment.index];
                known.size_bytes = std::max(known.size_bytes, region->size_bytes);
            }
        });
    }
}

// One unmap may end several mappings. They have no event of their own that ends them. Of mappings
// that are one segment, those before the unmapped ones stay.
void ProgramPoolWalk::end_mappings(DeviceAddress address, std::uint64_t size_bytes) {
    auto region = mapped_.lower_bound(address);
    if (region != mapped_.begin() && std::prev(region)->second.end() > address) {
        resize(&std::prev(region)->second, address - std::prev(region)->first);
    }
    while (region != mapped_.end() && region->first - address < size_bytes) {
        const EventIndex map = region->second.allocated_by;
        ++region;
        end_region(map);
    }
}

// The blocks in memory that is gone are gone, too.
void ProgramPoolWalk::end_region(EventIndex alloc) {
    const DeviceAddress address = timeline_.events.address(alloc);
    const EventKind kind = timeline_.events.kind(alloc);
    auto& regions = kind == EventKind::kBlockAlloc ? framework_
                    : kind == EventKind::kMap      ? mapped_
                                                   : driver_;
    const auto region = regions.find(address);
    if (region == regions.end() || region->second.allocated_by != alloc) {
        return;
    }
    for (const std::uint32_t number : region->second.users) {
        for_each_part(number, [this, alloc](const Key& key, ProgramPoolState* pool) {
            const auto segment = pool->segments.find(alloc);
            if (segment == pool->segments.end()) {
                return;
            }
            while (!segment->second.blocks.empty()) {
                const DeviceAddress block = *segment->second.blocks.begin();
                ended_.emplace(key.number, block);
                drop(key, pool, pool->blocks.find(block));
            }
            pool->reserved_bytes -= segment->second.size_bytes;
            pool->segments.erase(segment);
            histories_[key].steps.push_back({Step::Kind::kSegmentFree, position_});
        });
    }
    regions.erase(region);
}

void ProgramPoolWalk::request_failed(std::uint32_t number) {
    std::size_t parts = 0;
    const Key* part = nullptr;
    for_each_part(number, [&](const Key& key, ProgramPoolState*) {
        ++parts;
        part = &key;
    });
    if (parts == 1) {
        histories_[*part].steps.push_back({Step::Kind::kFailed, position_});
    }
}

// The innermost recorded memory around a block; nullptr if there is none.
PoolRegion* ProgramPoolWalk::region_of(DeviceAddress address, std::uint64_t size_bytes) {
    for (auto* regions : {&framework_, &driver_, &mapped_}) {
        auto region = regions->upper_bound(address);
        if (region != regions->begin()) {
            --region;
            if (address + size_bytes <= region->second.end()) {
                return &region->second;
            }
        }
    }
    return nullptr;
}

void ProgramPoolWalk::block_alloc(const Event& event) {
    const std::uint32_t number = timeline_.event_pools.at(position_, &pool_cursor_);
    const std::uint64_t size_bytes = event.extra;
    if (size_bytes == 0) {
        return;
    }
    if (in_checkpoint_ && ended_.contains({number, event.address})) {
        return;
    }
    ended_.erase({number, event.address});
    PoolRegion* region = region_of(event.address, size_bytes);
    const auto set_shared = [region](const Key&, ProgramPoolState* state) {
        state->shares_memory =
            state->shares_memory || state->segments.contains(region->allocated_by);
    };
    const Key key =
        region == nullptr ? Key{.number = number} : Key{number, region->memory, region->device};
    const auto entry = pools_.try_emplace(key).first;
    in_use_.insert(key);
    ProgramPoolState& pool = entry->second;
    // Blocks that this one overlaps were freed without a report.
    auto other = pool.blocks.lower_bound(event.address);
    if (other != pool.blocks.begin() &&
        std::prev(other)->second.end(std::prev(other)->first) > event.address) {
        --other;
    }
    while (other != pool.blocks.end() && other->first < event.address + size_bytes) {
        const auto next = std::next(other);
        drop(key, &pool, other);
        other = next;
    }
    ProgramPoolBlock block{
        .size_bytes = size_bytes, .requested_bytes = event.size_bytes, .allocated_by = position_};
    History& history = histories_[key];
    if (in_checkpoint_) {
        history.not_comparable = kListed;
    } else if (history.ended) {
        history.not_comparable = "the program destroyed the pool and created it again";
    }
    Step step{.event = position_, .alloc = position_};
    if (region != nullptr) {
        block.segment = region->allocated_by;
        const auto [segment, is_new] = pool.segments.try_emplace(
            region->allocated_by,
            ProgramPoolSegment{.address = region->address, .size_bytes = region->size_bytes});
        segment->second.blocks.insert(event.address);
        if (is_new) {
            pool.reserved_bytes += region->size_bytes;
        }
        if (segment->second.index == kUnknown32) {
            segment->second.index = static_cast<std::uint32_t>(history.segments.size());
            history.segments.push_back({region->address, region->size_bytes, region->allocated_by});
        }
        step.segment = segment->second.index;
        region->users.insert(number);
        if (region->users.size() == 2) {  // the first pool does not know of the second one
            for_each_part(*region->users.begin(), set_shared);
            for_each_part(*region->users.rbegin(), set_shared);
        }
        pool.shares_memory = pool.shares_memory || region->users.size() > 1;
    } else {
        pool.reserved_bytes += size_bytes;
    }
    pool.blocks[event.address] = block;
    pool.allocated_bytes += size_bytes;
    pool_of_block_[position_] = key;
    history.steps.push_back(step);
    changed_ = &*entry;
}

void ProgramPoolWalk::drop(const Key& key,
                           ProgramPoolState* pool,
                           std::map<DeviceAddress, ProgramPoolBlock>::iterator block) {
    pool->allocated_bytes -= block->second.size_bytes;
    if (block->second.segment == kNoEvent) {
        pool->reserved_bytes -= block->second.size_bytes;
    } else {
        pool->segments.at(block->second.segment).blocks.erase(block->first);
    }
    histories_[key].steps.push_back({Step::Kind::kFree, position_, block->second.allocated_by});
    pool_of_block_.erase(block->second.allocated_by);
    pool->blocks.erase(block);
}

void ProgramPoolWalk::block_free(EventIndex alloc) {
    const auto known = pool_of_block_.find(alloc);
    if (known == pool_of_block_.end()) {
        return;
    }
    const Key key = known->second;
    ProgramPoolState& pool = pools_.at(key);
    const auto block = pool.blocks.find(timeline_.events.address(alloc));
    if (block != pool.blocks.end() && block->second.allocated_by == alloc) {
        drop(key, &pool, block);
    }
}

void ProgramPoolWalk::empty(const Key& key, ProgramPoolState* pool) {
    while (!pool->blocks.empty()) {
        drop(key, pool, pool->blocks.begin());
    }
    pool->segments.clear();
    pool->reserved_bytes = 0;
}

void ProgramPoolWalk::pool_end(std::uint32_t number) {
    for_each_part(number, [this](const Key& key, ProgramPoolState* pool) {
        empty(key, pool);
        in_use_.erase(key);
        histories_[key].ended = true;
    });
    ended_.erase(ended_.lower_bound({number, 0}), ended_.upper_bound({number, ~DeviceAddress{0}}));
}

// A checkpoint lists the whole state again, but not which memory without blocks was whose.
void ProgramPoolWalk::checkpoint_begin() {
    kept_.clear();
    in_checkpoint_ = true;
    for (const Key& key : in_use_) {
        histories_[key].not_comparable = kListed;
        ProgramPoolState& pool = pools_.at(key);
        for (const auto& [alloc, segment] : pool.segments) {
            const bool of_driver = timeline_.events.kind(alloc) != EventKind::kBlockAlloc;
            auto& pools = kept_[{of_driver, segment.address, segment.size_bytes}];
            if (pools.size() < kMostKeptPools) {
                pools.push_back(key);
            }
        }
        empty(key, &pool);
    }
    in_use_.clear();
    driver_.clear();
    mapped_.clear();
    reservations_.clear();
    framework_.clear();
    ends_.clear();
}

// The region was a segment of pools before the checkpoint, and still is.
void ProgramPoolWalk::reattach(PoolRegion* region, bool of_driver) {
    const auto kept = kept_.find({of_driver, region->address, region->size_bytes});
    if (kept == kept_.end()) {
        return;
    }
    for (const Key& key : kept->second) {
        if (key.memory == region->memory && key.device == region->device) {
            ProgramPoolState& pool = pools_.at(key);
            pool.segments[position_] = {.address = region->address,
                                        .size_bytes = region->size_bytes};
            pool.reserved_bytes += region->size_bytes;
            region->users.insert(key.number);
            in_use_.insert(key);
        }
    }
    kept_.erase(kept);
}

}  // namespace fragtrace::analyzer
