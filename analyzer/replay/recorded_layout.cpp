#include "analyzer/replay/recorded_layout.h"

#include "analyzer/model/own_segments.h"

namespace fragtrace::analyzer {
namespace {

bool from_allocator(const Event& event) {
    return (event.flags & kFlagFromAllocator) != 0;
}

}  // namespace

std::vector<RecordedSegmentCall> recorded_segments(const Timeline& timeline, DeviceId device) {
    const EventTable& events = timeline.events;
    std::vector<RecordedSegmentCall> segments;
    // The allocator maps a range page by page. Contiguous maps of one request count as one map
    // call.
    DeviceAddress map_end = 0;
    OwnSegments own_segments;
    std::size_t next_checkpoint = 0;
    for (EventIndex i = 0; i < events.size(); ++i) {
        if (next_checkpoint < timeline.checkpoints.size() &&
            i == timeline.checkpoints[next_checkpoint].begin) {
            map_end = 0;
            i = timeline.checkpoints[next_checkpoint++].end;
            continue;
        }
        const EventKind kind = events.kind(i);
        if (kind == EventKind::kAddressReserve) {  // often names no device
            own_segments.reserve(events[i]);
        } else if (kind == EventKind::kAddressFree) {
            own_segments.free(events.address(i));
        } else if (events.device(i) != device) {
            continue;
        } else if (kind == EventKind::kBlockAlloc || kind == EventKind::kBlockFree) {
            map_end = 0;
        } else if (kind == EventKind::kDeviceAlloc) {
            if (const Event event = events[i]; from_allocator(event)) {
                segments.push_back({DriverCall::Kind::kSegmentAlloc, event.size_bytes, i});
            }
        } else if (kind == EventKind::kMap) {
            const Event event = events[i];
            if (!from_allocator(event)) {
                continue;
            }
            const bool whole = own_segments.has(event);
            if (!whole && map_end != 0 && event.address == map_end) {
                segments.back().size_bytes += event.size_bytes;
            } else {
                segments.push_back(
                    {whole ? DriverCall::Kind::kSegmentAlloc : DriverCall::Kind::kMap,
                     event.size_bytes,
                     i});
            }
            map_end = whole ? 0 : event.address + event.size_bytes;
        }
    }
    return segments;
}

std::optional<RecordedPlacement> RecordedPlacements::of(EventIndex event) {
    advance_to(event);
    const DeviceAddress address = timeline_.events.address(event);
    auto found = ranges_.upper_bound(address);
    if (found == ranges_.begin()) {
        return std::nullopt;
    }
    --found;
    const std::uint64_t offset = address - found->first;
    if (offset >= found->second.size_bytes) {
        return std::nullopt;
    }
    return RecordedPlacement{found->second.ordinal, offset};
}

void RecordedPlacements::advance_to(EventIndex event) {
    const EventTable& events = timeline_.events;
    for (; next_ < event; ++next_) {
        if (next_checkpoint_ < timeline_.checkpoints.size() &&
            next_ == timeline_.checkpoints[next_checkpoint_].begin) {
            adopt(script_.checkpoints[next_checkpoint_]);
            next_ = timeline_.checkpoints[next_checkpoint_++].end;
            continue;
        }
        const EventKind kind = events.kind(next_);
        if (kind == EventKind::kDeviceAlloc || kind == EventKind::kDeviceFree ||
            kind == EventKind::kAddressReserve || kind == EventKind::kAddressFree) {
            const Event change = events[next_];
            if (change.device == script_.device) {
                change_ranges(change);
            }
        }
    }
}

// Numbers segments as Pool::adopt() does: one segment per reservation.
void RecordedPlacements::adopt(const HeapSnapshot& heap) {
    ranges_.clear();
    next_ordinal_ = 0;
    for (const HeapSegment& segment : heap.segments) {
        const bool reserved = segment.expandable && segment.reservation_bytes != 0;
        const DeviceAddress begin = reserved ? segment.reservation : segment.address;
        const std::uint64_t bytes = reserved ? segment.reservation_bytes : segment.size_bytes;
        if (ranges_.try_emplace(begin, Range{bytes, next_ordinal_}).second) {
            ++next_ordinal_;
        }
    }
}

void RecordedPlacements::change_ranges(const Event& event) {
    if (event.kind == EventKind::kDeviceFree || event.kind == EventKind::kAddressFree) {
        ranges_.erase(event.address);
    } else if (from_allocator(event)) {
        ranges_[event.address] = {event.size_bytes, next_ordinal_++};
    }
}

}  // namespace fragtrace::analyzer
