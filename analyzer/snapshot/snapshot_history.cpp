#include "analyzer/snapshot/snapshot_history.h"

#include "analyzer/pools/pytorch/pytorch_sizes.h"

#include <algorithm>

namespace fragtrace::analyzer {

SnapshotHistory::SnapshotHistory(const Snapshot* snapshot,
                                 const SnapshotStart* start,
                                 std::uint32_t device,
                                 const PytorchConfig* config,
                                 const Emit& emit)
    : snapshot_(*snapshot),
      start_(*start),
      config_(*config),
      emit_(emit),
      device_(static_cast<std::uint16_t>(device)),
      has_pool_(!snapshot->without_pool.contains(device)) {
    if (device < snapshot_.histories.size()) {
        const auto [first, count] = snapshot_.histories[device];
        entries_ = std::span(snapshot_.entries).subspan(first, count);
    }
    ranges_ = expandable_ranges(start_, entries_, config_.large_segment_size_bytes);
    range_mapped_bytes_.resize(ranges_.size());
    for (const auto& [address, segment] : start_.segments) {
        reserved_bytes_ += segment.size_bytes;
    }
    next_event_ = std::uint64_t{device} << 48 | 1;  // unique over all devices
}

// Segments are emitted in address order, because the order of their allocation is not known.
void SnapshotHistory::tell_start() {
    for (const auto& [address, segment] : start_.segments) {
        EventRecord event = {};
        event.address = address;
        event.size = segment.size_bytes;
        event.stream = segment.stream;
        event.python_stack = segment.stack;
        event.pool = segment.pool;
        event.device = device_;
        event.flags = has_pool_ ? kFlagFromAllocator : 0;
        if (segment.expandable) {
            tell_range(event, segment.small);
        } else {
            event.kind = EventKind::kDeviceAlloc;
            emit(event);
        }
    }
    auto segment = start_.segments.begin();
    for (const auto& [address, block] : start_.blocks) {
        while (segment != start_.segments.end() &&
               segment->first + segment->second.size_bytes <= address) {
            ++segment;
        }
        EventRecord event = {};
        event.address = address;
        event.size = block.requested_bytes != 0 ? block.requested_bytes : kUnknown64;
        event.extra = block.size_bytes;
        event.stream = block.stream;
        event.python_stack = block.stack;
        event.pool = segment != start_.segments.end() ? segment->second.pool : 0;
        event.device = device_;
        event.kind = EventKind::kBlockAlloc;
        emit(event, block.label);
        if (block.pending) {
            event.kind = EventKind::kBlockFree;
            event.flags = kFlagPending;
            event.size = 0;
            emit(event);
            tell_pending(event);
        }
    }
}

void SnapshotHistory::tell_next(std::uint64_t time_ns) {
    time_ns_ = time_ns;
    const SnapshotEntry& entry = entries_[next_];
    if (!has_pool_) {
        tell_without_pool(entry);
        ++next_;
        return;
    }
    begin_release();
    switch (entry.action) {
        case SnapshotAction::kAlloc: {
            EventRecord event = event_of(entry, EventKind::kBlockAlloc);
            event.extra = std::uint64_t{start_.block_units[next_]} * kBlockUnitBytes;
            emit(event, entry.label);
            break;
        }
        case SnapshotAction::kFreeRequested:
            free_requested(entry);
            break;
        case SnapshotAction::kFreeCompleted:
            free_completed(entry);
            break;
        case SnapshotAction::kSegmentAlloc:
        case SnapshotAction::kSegmentFree: {
            const bool alloc = entry.action == SnapshotAction::kSegmentAlloc;
            EventRecord event =
                event_of(entry, alloc ? EventKind::kDeviceAlloc : EventKind::kDeviceFree);
            event.flags = kFlagFromAllocator;
            emit(event);
            reserved_bytes_ += alloc ? entry.size_bytes : 0;
            reserved_bytes_ -= alloc ? 0 : std::min(reserved_bytes_, entry.size_bytes);
            break;
        }
        case SnapshotAction::kSegmentMap: {
            EventRecord event = event_of(entry, EventKind::kMap);
            event.flags = kFlagFromAllocator;
            tell_range(event, maps_small_pages(entry.size_bytes, config_.large_segment_size_bytes));
            reserved_bytes_ += entry.size_bytes;
            break;
        }
        case SnapshotAction::kSegmentUnmap: {
            EventRecord event = event_of(entry, EventKind::kUnmap);
            event.flags = kFlagFromAllocator;
            emit(event);
            reserved_bytes_ -= std::min(reserved_bytes_, entry.size_bytes);
            tell_unmapped(event);
            break;
        }
        case SnapshotAction::kOutOfMemory: {
            tell_free_memory(entry);
            EventRecord event = event_of(entry, EventKind::kBlockOutOfMemory);
            event.address = 0;
            event.extra = entry.address;
            emit(event);
            break;
        }
        default:
            break;
    }
    ++next_;
}

void SnapshotHistory::tell_without_pool(const SnapshotEntry& entry) {
    if (entry.action == SnapshotAction::kSegmentAlloc) {
        emit(event_of(entry, EventKind::kDeviceAlloc), entry.label);
        reserved_bytes_ += entry.size_bytes;
    } else if (entry.action == SnapshotAction::kSegmentFree) {
        emit(event_of(entry, EventKind::kDeviceFree));
        reserved_bytes_ -= std::min(reserved_bytes_, entry.size_bytes);
    } else if (entry.action == SnapshotAction::kOutOfMemory) {
        tell_free_memory(entry);
        EventRecord event = event_of(entry, EventKind::kAllocRefused);
        event.address = 0;
        emit(event);
    }
}

EventRecord SnapshotHistory::event_of(const SnapshotEntry& entry, EventKind kind) const {
    EventRecord event = {};
    event.time_ns = time_ns_;
    event.address = entry.address;
    event.size = entry.size_bytes;
    event.stream = entry.stream;
    event.python_stack = entry.stack;
    event.pool = entry.pool;
    event.device = device_;
    event.kind = kind;
    return event;
}

// An immediate free is followed directly by its completion.
void SnapshotHistory::free_requested(const SnapshotEntry& entry) {
    EventRecord event = event_of(entry, EventKind::kBlockFree);
    event.size = 0;
    const bool at_once = start_.without_completions ||
                         (next_ + 1 < entries_.size() &&
                          entries_[next_ + 1].action == SnapshotAction::kFreeCompleted &&
                          entries_[next_ + 1].address == entry.address);
    event.flags = at_once ? 0 : kFlagPending;
    emit(event);
    if (!at_once) {
        tell_pending(event);
    }
}

// The streams that the free waits for are not known, so one event represents all of them.
void SnapshotHistory::tell_pending(EventRecord event) {
    event.kind = EventKind::kPendingEvent;
    event.flags = 0;
    event.extra = next_event_;
    event.stream = kStreamUnknown;
    emit(event);
    pending_[event.address] = next_event_++;
    ++pending_frees_;
}

void SnapshotHistory::free_completed(const SnapshotEntry& entry) {
    if (start_.without_requests) {
        EventRecord event = event_of(entry, EventKind::kBlockFree);
        event.size = 0;
        emit(event);
        return;
    }
    const auto pending = pending_.find(entry.address);
    if (pending != pending_.end()) {
        EventRecord event = event_of(entry, EventKind::kEventComplete);
        event.address = 0;
        event.size = 0;
        event.extra = pending->second;
        emit(event);
        pending_.erase(pending);
    }
}

// Emits a mapped range page by page, as PyTorch requests pages from the driver.
void SnapshotHistory::tell_range(EventRecord event, bool small) {
    const std::uint64_t page =
        small ? pytorch::kSmallSegmentBytes : config_.large_segment_size_bytes;
    const std::uint64_t end = event.address + event.size;
    // No device has that many pages; mappings beyond this limit are emitted as a whole.
    constexpr std::uint64_t kMostPages = 1 << 20;
    const std::uint64_t pages = event.size / page + 1;
    const bool by_pages = pages <= kMostPages - std::min(counted_pages_, kMostPages);
    counted_pages_ += by_pages ? pages : 0;
    tell_reservation(event);
    event.kind = EventKind::kMap;
    has_expandable_ = true;
    while (event.address < end) {
        event.size = by_pages ? std::min(page, end - event.address) : end - event.address;
        emit(event);
        event.address += event.size;
    }
}

// Returns the index of the range that contains an address; the number of ranges if none does.
std::size_t SnapshotHistory::range_of(std::uint64_t address) const {
    const auto after = std::upper_bound(
        ranges_.begin(), ranges_.end(), address, [](std::uint64_t one, const auto& range) {
            return one < range.begin;
        });
    return after == ranges_.begin() ? ranges_.size()
                                    : static_cast<std::size_t>(after - ranges_.begin()) - 1;
}

// The allocator reserves a range before it maps the first page in it, and releases the range after
// it unmaps the last page.
void SnapshotHistory::tell_reservation(EventRecord event) {
    const std::size_t number = range_of(event.address);
    if (number == ranges_.size()) {
        return;
    }
    range_mapped_bytes_[number] += event.size;
    if (range_mapped_bytes_[number] == event.size) {
        event.kind = EventKind::kAddressReserve;
        event.address = ranges_[number].begin;
        event.size = ranges_[number].size_bytes;
        event.flags = kFlagFromAllocator;
        emit(event);
    }
}

void SnapshotHistory::tell_unmapped(EventRecord event) {
    const std::size_t number = range_of(event.address);
    if (number == ranges_.size() || range_mapped_bytes_[number] == 0) {
        return;
    }
    range_mapped_bytes_[number] -= std::min(range_mapped_bytes_[number], event.size);
    if (range_mapped_bytes_[number] == 0) {
        event.kind = EventKind::kAddressFree;
        event.address = ranges_[number].begin;
        event.size = ranges_[number].size_bytes;
        emit(event);
    }
}

// Emits the pool's limit as device memory: the reserved memory plus the free memory of the device.
void SnapshotHistory::tell_free_memory(const SnapshotEntry& oom) {
    EventRecord event = event_of(oom, EventKind::kMemoryInfo);
    event.address = 0;
    event.size = oom.address;
    event.extra = oom.address + reserved_bytes_;
    event.flags = kFlagByPool;
    emit(event);
}

// Emits the cause of successive releases of segments. If the next request has the same stack, or is
// an OOM, the driver had refused that request. Otherwise the program called empty_cache.
void SnapshotHistory::begin_release() {
    const auto gives_back = [this](std::size_t i) {
        return i < entries_.size() && (entries_[i].action == SnapshotAction::kSegmentFree ||
                                       entries_[i].action == SnapshotAction::kSegmentUnmap);
    };
    const SnapshotEntry& entry = entries_[next_];
    if (next_ < release_end_) {
        return;
    }
    if (!gives_back(next_)) {
        if (entry.action == SnapshotAction::kOutOfMemory) {
            refuse(entry);  // twice: nothing could be released in between
            refuse(entry);
        }
        return;
    }
    bool of_request = true;
    std::size_t end = next_;
    for (; gives_back(end); ++end) {
        of_request = of_request && entries_[end].stack == entry.stack;
    }
    release_end_ = end;
    // Finds the next request: an alloc after its own segment or mapping, or an OOM.
    std::size_t request = end;
    while (request < entries_.size() &&
           (entries_[request].action == SnapshotAction::kSegmentAlloc ||
            entries_[request].action == SnapshotAction::kSegmentMap)) {
        ++request;
    }
    of_request = of_request && request < entries_.size() && entry.stack != 0 &&
                 entries_[request].stack == entry.stack && request > end &&
                 entries_[request].action == SnapshotAction::kAlloc;
    const bool oom = end < entries_.size() && entries_[end].action == SnapshotAction::kOutOfMemory;
    if (of_request || oom) {
        refuse(entries_[oom ? end : request]);
        if (oom) {
            refuse(entries_[end]);
            release_end_ = end + 1;
        }
        return;
    }
    unexplained_releases_ += entry.stack == 0 ? 1 : 0;
    EventRecord event = event_of(entry, EventKind::kEmptyCache);
    event.address = 0;
    event.size = 0;
    event.pool = 0;
    emit(event);
}

void SnapshotHistory::refuse(const SnapshotEntry& request) {
    EventRecord event = event_of(request, EventKind::kAllocRefused);
    event.address = 0;
    event.size = driver_bytes(request);
    event.flags = kFlagFromAllocator;
    emit(event);
}

std::uint64_t SnapshotHistory::driver_bytes(const SnapshotEntry& request) const {
    const std::uint64_t rounded =
        pytorch::round_request(config_, {}, std::max<std::uint64_t>(request.size_bytes, 1));
    if (config_.expandable_segments) {
        return rounded <= pytorch::kSmallSizeBytes ? pytorch::kSmallSegmentBytes
                                                   : config_.large_segment_size_bytes;
    }
    return pytorch::segment_bytes(config_, rounded);
}

}  // namespace fragtrace::analyzer
