#include "analyzer/model/recorded_state.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kViolationsDescribed = 10;
constexpr std::uint64_t kCudaErrorOutOfMemory = 2;

// Without block events, driver calls from the framework's library show that there is a pool, unless
// the trace's facts rule out a pool.
bool shows_pool(EventKind kind, std::uint8_t flags, bool may_have_pool) {
    return kind == EventKind::kBlockAlloc || kind == EventKind::kBlockOutOfMemory ||
           (may_have_pool && kind < EventKind::kBlockAlloc && kind != EventKind::kAsyncAlloc &&
            kind != EventKind::kAsyncFree && (flags & kFlagFromAllocator) != 0);
}

}  // namespace

RecordedDevices::RecordedDevices(const std::map<std::string, std::string>& facts) {
    const auto is = [&facts](const char* key, std::string_view value, bool otherwise) {
        const auto fact = facts.find(key);
        return fact == facts.end() ? otherwise : fact->second == value;
    };
    may_have_pool = is("allocator_backend", "native", true) && !is("torch.caching", "off", false);
}

RecordedDevices::RecordedDevices(const Timeline& timeline) : RecordedDevices(timeline.facts) {
    const EventTable& events = timeline.events;
    for (std::size_t i = 0; i < events.size(); ++i) {
        add(events.kind(i), events.device(i), events.flags(i));
    }
}

void RecordedDevices::add(EventKind kind, DeviceId device, std::uint8_t flags) {
    used[device] = used[device] || asks_for_memory(kind);
    has_pool[device] = has_pool[device] || shows_pool(kind, flags, may_have_pool);
}

RecordedState::RecordedState(const Timeline& timeline) : timeline_(&timeline) {
    know(RecordedDevices(timeline));
}

RecordedState::RecordedState(const RecordedDevices& devices) {
    know(devices);
}

void RecordedState::know(const RecordedDevices& devices) {
    for (std::size_t device = 0; device <= kMaxDevices; ++device) {
        devices_[device].direct = !devices.has_pool[device];
        if (devices.used[device] && device < kMaxDevices) {
            devices_used_.push_back(static_cast<DeviceId>(device));
        }
    }
}

void RecordedState::advance_to(EventIndex end) {
    while (position_ < end) {
        advance();
    }
}

void RecordedState::advance() {
    pool_ = timeline_->event_pools.at(position_, &pool_cursor_);
    apply_known(timeline_->events[position_]);
}

void RecordedState::follow(const Event& event, std::uint32_t pool) {
    pool_ = pool;
    apply_known(event);
}

void RecordedState::apply(const Event& event, std::uint32_t pool) {
    pool_ = pool;
    learn(event);
    apply_known(event);
}

void RecordedState::learn(const Event& event) {
    const auto place = std::lower_bound(devices_used_.begin(), devices_used_.end(), event.device);
    if (event.device < kMaxDevices && asks_for_memory(event.kind) &&
        (place == devices_used_.end() || *place != event.device)) {
        devices_used_.insert(place, event.device);
    }
    if (devices_[event.device].direct && shows_pool(event.kind, event.flags, true)) {
        becomes_pool(event.device);
    }
}

// Pool events may name no device. They then apply to all devices, since each device's allocator has
// a pool with that number.
template <typename Act>
void RecordedState::for_device_or_all(DeviceId device, Act act) {
    if (device != kMaxDevices) {
        return act(&devices_[device]);
    }
    for (const DeviceId used : devices_used_) {
        act(&devices_[used]);
    }
}

void RecordedState::apply_known(const Event& event) {
    DeviceState* device = &devices_[event.device];
    switch (event.kind) {
        case EventKind::kBlockAlloc:
            block_alloc(device, event);
            break;
        case EventKind::kBlockFree:
            block_free(device, event);
            break;
        case EventKind::kDeviceAlloc:
        case EventKind::kAsyncAlloc:
            device_alloc(device, event);
            break;
        case EventKind::kDeviceFree:
        case EventKind::kAsyncFree:
            device_free(device, event);
            break;
        case EventKind::kArrayAlloc:
            array_alloc(device, event);
            break;
        case EventKind::kArrayFree:
            array_free(device, event);
            break;
        case EventKind::kGraphMemory:
            graph_memory(device, event);
            break;
        case EventKind::kImport:
            physical_.import(event.address);
            break;
        case EventKind::kImportEnd:
            physical_.import_end(event.address);
            break;
        case EventKind::kContextCreate:
            contexts_.created(event.device, event.address);
            break;
        case EventKind::kContextDestroy:
            if (contexts_.destroyed(event.device, event.address, position_)) {
                device_reset(event.device);
            }
            break;
        case EventKind::kDeviceReset:
            contexts_.reset(event.device);
            device_reset(event.device);
            break;
        case EventKind::kCheckpointBegin:
            forget_all();
            break;
        case EventKind::kRecordingStarted:
            gap_ = true;
            break;
        case EventKind::kAddressReserve:
            address_free(event);  // does nothing, unless the end of a former one was lost
            reservations_[event.address] = {.address = event.address,
                                            .size_bytes = event.size_bytes,
                                            .event = position_,
                                            .stream = event.stream,
                                            .private_pool = pool_,
                                            .is_segment = false,
                                            .device = event.device};
            break;
        case EventKind::kAddressFree:
            address_free(event);
            break;
        case EventKind::kPhysicalCreate:
            physical_create(event);
            break;
        case EventKind::kPhysicalRetain:
            physical_.retain(event.address);
            break;
        case EventKind::kPhysicalRelease:
            physical_release(event);
            break;
        case EventKind::kMap:
            map(event);
            break;
        case EventKind::kUnmap:
            unmap(event);
            break;
        case EventKind::kPendingEvent:
            pending_event(event);
            break;
        case EventKind::kEventComplete:
            event_complete(event);
            break;
        case EventKind::kPoolUse:
            if (event.size_bytes != 0) {
                for_device_or_all(event.device,
                                  [this](DeviceState* one) { pool_changes(one, pool_, false); });
            }
            break;
        case EventKind::kPoolRelease:
            for_device_or_all(event.device,
                              [this](DeviceState* one) { pool_changes(one, pool_, true); });
            break;
        case EventKind::kPoolRewind:
            for_device_or_all(event.device, [this](DeviceState* one) { pool_rewind(one, pool_); });
            break;
        case EventKind::kAllocRefused:
            if (event.extra <= kCudaErrorOutOfMemory) {  // 0: a snapshot does not have the error
                device->refusal = {position_, event.size_bytes, device->totals.own};
            }
            break;
        case EventKind::kMemoryInfo:
            take_sample(device, event);
            break;
        default:
            break;
    }
    ++position_;
}

// The memory that the driver reports as free right after a refusal, although the refused request
// would fit in it. A larger difference comes from other processes that freed memory in between.
std::uint64_t RecordedState::kept_at(const DeviceState& device, const Event& info) const {
    constexpr EventIndex kNear = 4;
    constexpr std::uint64_t kMostKeptBytes = 32 << 20;
    const Refusal& refusal = device.refusal;
    const bool answers = refusal.event != kNoEvent && position_ - refusal.event <= kNear &&
                         refusal.own_bytes == device.totals.own && refusal.size_bytes != 0;
    if (!answers || info.size_bytes < refusal.size_bytes) {
        return 0;
    }
    const std::uint64_t kept = info.size_bytes - refusal.size_bytes + 1;
    return kept <= kMostKeptBytes ? kept : 0;
}

void RecordedState::take_sample(DeviceState* device, const Event& event) {
    const bool settled = (event.flags & kFlagUnsettled) == 0;
    if (settled || !device->sample.settled) {
        device->kept_bytes = std::max(device->kept_bytes, kept_at(*device, event));
        device->sample = {position_,
                          event.extra,
                          event.size_bytes - std::min(event.size_bytes, device->kept_bytes),
                          device->totals.own,
                          device->totals.own_pool(),
                          device->totals.past_pool,
                          settled,
                          device->kept_bytes};
    }
}

void RecordedState::check_sums(const DeviceState& device) {
    const MemoryTotals& totals = device.totals;
    if (totals.requested > totals.allocated || totals.active() > totals.reserved) {
        violation("the sums are out of order: requested <= allocated <= active <= reserved");
    }
    if (device.sample.total_bytes != 0 && totals.own_pool() > device.sample.total_bytes) {
        violation("more is reserved than the device has");
    }
}

void RecordedState::violation(const std::string& what) {
    if (gap_) {
        ++after_gap_;
        return;
    }
    if (violations_.count++ < kViolationsDescribed) {
        violations_.first.push_back(fmt::format("event {}: {}", position_, what));
    }
}

}  // namespace fragtrace::analyzer
