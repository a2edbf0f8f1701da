#include "analyzer/analysis/metrics/side_memory.h"

#include <algorithm>
#include <map>

namespace fragtrace::analyzer {

void SideSum::begin(const Event& event, EventIndex i) {
    ++memory_.allocations;
    if (event.size_bytes == kUnknown64) {
        return;
    }
    end(event.address);
    live_[event.address] = {event.size_bytes, event.origin};
    bytes_ += event.size_bytes;
    if (bytes_ > memory_.peak_bytes) {
        memory_.peak_bytes = bytes_;
        memory_.peak_event = i;
    }
}

void SideSum::end(DeviceAddress address) {
    const auto found = live_.find(address);
    if (found != live_.end()) {
        bytes_ -= found->second.first;
        live_.erase(found);
    }
}

void SideSum::end_all() {
    live_.clear();
    bytes_ = 0;
}

std::vector<std::pair<OriginId, std::uint64_t>> SideSum::holders() const {
    std::map<OriginId, std::uint64_t> by_origin;
    for (const auto& [address, held] : live_) {
        by_origin[held.second] += held.first;
    }
    std::vector<std::pair<OriginId, std::uint64_t>> holders(by_origin.begin(), by_origin.end());
    std::stable_sort(holders.begin(), holders.end(), [](const auto& a, const auto& b) {
        return a.second > b.second;
    });
    return holders;
}

void Sides::visit(const Event& event, EventIndex i) {
    switch (event.kind) {
        case EventKind::kHostAlloc:
        case EventKind::kHostRegister:
            return pinned.begin(event, i);
        case EventKind::kHostFree:
        case EventKind::kHostUnregister:
            return pinned.end(event.address);
        case EventKind::kManagedAlloc:
            return managed.begin(event, i);
        case EventKind::kDeviceFree:
            return managed.end(event.address);
        case EventKind::kCheckpointBegin:
            pinned.end_all();
            return managed.end_all();
        default:
            return;
    }
}

SidesOverTime sides_over_time(const Timeline& timeline) {
    SidesOverTime result;
    Sides sides;
    bool listing = false;  // a checkpoint lists what was live all the time: no change until its end
    for (EventIndex i = 0; i < timeline.events.size(); ++i) {
        const EventKind kind = timeline.events.kind(i);
        if (kind == EventKind::kBlockAlloc || kind == EventKind::kBlockFree) {
            continue;
        }
        const Event event = timeline.events[i];
        sides.visit(event, i);
        listing =
            kind == EventKind::kCheckpointBegin || (listing && kind != EventKind::kCheckpointEnd);
        if (!listing) {
            result.pinned.set(event.time_ns, sides.pinned.bytes());
            result.managed.set(event.time_ns, sides.managed.bytes());
        }
    }
    return result;
}

}  // namespace fragtrace::analyzer
