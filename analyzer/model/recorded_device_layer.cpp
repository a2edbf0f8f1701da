// The device layer of RecordedState: what was obtained from the driver and given back.
#include "analyzer/model/recorded_state.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace fragtrace::analyzer {

void RecordedState::device_alloc(DeviceState* device, const Event& event) {
    if (event.size_bytes == 0 || event.address + event.size_bytes < event.address) {
        return violation(fmt::format("{:#x} has no sensible size", event.address));
    }
    if (device->segments.overlaps(event.address, event.size_bytes)) {
        violation(
            fmt::format("the driver handed out {:#x}, which the pool still holds", event.address));
        remove_range(device, event.address, event.address + event.size_bytes, false);
    }
    device->totals.own += event.size_bytes;
    if (device->direct || (event.flags & kFlagFromAllocator) != 0) {
        device->totals.own_pool += event.size_bytes;
        add_segment(device,
                    {.address = event.address,
                     .size_bytes = event.size_bytes,
                     .stream = event.stream,
                     .private_pool = pool_,
                     .obtained_by = position_});
        return;
    }
    const auto former = device->others.find(event.address);
    if (former != device->others.end()) {
        violation(fmt::format("the driver handed out {:#x} twice", event.address));
        device->totals.own -= former->second.size_bytes;
        forget_other(device, former);
    }
    const bool past_pool =
        event.kind == EventKind::kDeviceAlloc && (event.flags & kFlagPastPool) != 0;
    device->others[event.address] = {event.size_bytes, past_pool};
    device->totals.other += event.size_bytes;
    device->totals.past_pool += past_pool ? event.size_bytes : 0;
}

void RecordedState::forget_other(DeviceState* device,
                                 std::map<DeviceAddress, Other>::iterator other) {
    device->totals.other -= other->second.size_bytes;
    device->totals.past_pool -= other->second.past_pool ? other->second.size_bytes : 0;
    device->others.erase(other);
}

// What was taken for blocks was obtained outside the pool; a block that comes to lie in an
// allocation makes it a segment.
void RecordedState::becomes_pool(DeviceId id) {
    DeviceState* device = &devices_[id];
    device->direct = false;
    MemoryTotals totals;
    totals.own = device->totals.own;
    totals.other = device->totals.other;
    for (const RecordedSegment& segment : device->segments.segments()) {
        if (!segment.expandable()) {
            device->others[segment.address] = {segment.size_bytes, false};
            totals.other += segment.size_bytes;
        }
    }
    for (auto& [address, mapping] : mappings_) {
        if (mapping.device == id && mapping.of_pool) {
            mapping.of_pool = false;
            totals.other += mapping.size_bytes;
        }
    }
    for (Physical& physical : physical_) {
        physical.of_pool = physical.of_pool && physical.device != id;
    }
    device->totals = totals;
    device->segments.clear();
    device->blocks = {};
}

void RecordedState::device_free(DeviceState* device, const Event& event) {
    const auto other = device->others.find(event.address);
    if (other != device->others.end()) {
        device->totals.own -= other->second.size_bytes;
        forget_other(device, other);
        return;
    }
    const RecordedSegment* segment = device->segments.find(event.address);
    if (segment != nullptr && segment->address == event.address && !segment->expandable()) {
        device->totals.own -= std::min(device->totals.own, segment->size_bytes);
        device->totals.own_pool -= std::min(device->totals.own_pool, segment->size_bytes);
        remove_range(device, segment->address, segment->end(), false);
    }
}

void RecordedState::device_reset(DeviceId device) {
    DeviceState& state = devices_[device];
    if (state.watch != nullptr) {
        state.watch->all_ends();
    }
    state.segments.clear();
    state.blocks = {};
    state.detached.clear();
    state.others.clear();
    state.arrays.clear();
    state.graph_bytes = 0;
    state.totals = {};
    std::erase_if(handles_, [this, device](const auto& entry) {
        return physical_[entry.second].device == device;
    });
    std::erase_if(mappings_, [device](const auto& entry) { return entry.second.device == device; });
    std::erase_if(waiting_, [device](const auto& entry) { return entry.second.device == device; });
}

// A checkpoint tells everything anew.
void RecordedState::forget_all() {
    for (std::size_t device = 0; device < devices_.size(); ++device) {
        device_reset(static_cast<DeviceId>(device));
        const std::set<std::uint32_t> released = devices_[device].pools_released;
        for (const std::uint32_t pool : released) {
            pool_changes(&devices_[device], pool, false);
        }
    }
    reservations_.clear();
    physical_.clear();
    physical_free_.clear();
    imported_.clear();
    contexts_ = {};
    gap_ = false;
}

std::size_t RecordedState::entries() const {
    std::size_t sum = reservations_.size() + physical_.size() + handles_.size() + imported_.size() +
                      mappings_.size() + waiting_.size();
    for (const DeviceState& device : devices_) {
        sum += device.segments.segments().size() + device.blocks.size() + device.detached.size() +
               device.others.size() + device.arrays.size() + device.pools_released.size();
    }
    return sum;
}

void RecordedState::array_alloc(DeviceState* device, const Event& event) {
    if (event.size_bytes == kUnknown64) {
        return;  // counted where holders are listed
    }
    array_free(device, event);
    device->arrays[event.address] = event.size_bytes;
    device->totals.other += event.size_bytes;
    device->totals.own += event.size_bytes;
}

void RecordedState::array_free(DeviceState* device, const Event& event) {
    const auto array = device->arrays.find(event.address);
    if (array != device->arrays.end()) {
        device->totals.other -= array->second;
        device->totals.own -= array->second;
        device->arrays.erase(array);
    }
}

void RecordedState::graph_memory(DeviceState* device, const Event& event) {
    if (event.extra == kUnknown64) {
        return;
    }
    device->totals.other += event.extra - device->graph_bytes;
    device->totals.own += event.extra - device->graph_bytes;
    device->graph_bytes = event.extra;
}

void RecordedState::physical_create(const Event& event) {
    const auto [entry, is_new] = handles_.try_emplace(event.address, 0);
    if (!is_new) {
        let_go(entry->second);
    }
    entry->second = add_physical({event.size_bytes, 1, 1, event.device});
    imported_.erase(event.address);
    if (devices_[event.device].direct || (event.flags & kFlagFromAllocator) != 0) {
        give_to_pool(entry->second);
    }
}

std::uint32_t RecordedState::add_physical(const Physical& physical) {
    if (physical_free_.empty()) {
        physical_free_.push_back(static_cast<std::uint32_t>(physical_.size()));
        physical_.emplace_back();
    }
    const std::uint32_t index = physical_free_.back();
    physical_free_.pop_back();
    physical_[index] = physical;
    devices_[physical.device].totals.own += physical.size_bytes;
    return index;
}

void RecordedState::give_to_pool(std::uint32_t physical) {
    if (!std::exchange(physical_[physical].of_pool, true)) {
        devices_[physical_[physical].device].totals.own_pool += physical_[physical].size_bytes;
    }
}

void RecordedState::physical_retain(const Event& event) {
    const auto entry = handles_.find(event.address);
    if (entry != handles_.end()) {
        ++physical_[entry->second].releases;
    }
}

void RecordedState::physical_release(const Event& event) {
    const auto entry = handles_.find(event.address);
    if (entry == handles_.end()) {
        imported_.erase(event.address);
        return;
    }
    if (--physical_[entry->second].releases == 0) {
        let_go(entry->second);
        handles_.erase(entry);
    }
}

void RecordedState::let_go(std::uint32_t physical) {
    if (--physical_[physical].holders != 0) {
        return;
    }
    MemoryTotals& totals = devices_[physical_[physical].device].totals;
    totals.own -= std::min(totals.own, physical_[physical].size_bytes);
    if (physical_[physical].of_pool) {
        totals.own_pool -= std::min(totals.own_pool, physical_[physical].size_bytes);
    }
    physical_free_.push_back(physical);
}

void RecordedState::map(const Event& event) {
    if (event.size_bytes == 0 || event.address + event.size_bytes < event.address) {
        return violation(fmt::format("{:#x} is mapped with no sensible size", event.address));
    }
    if (imported_.contains(event.extra)) {
        return;  // memory of another process
    }
    // The call that maps names no device: the physical memory does.
    const auto handle = handles_.find(event.extra);
    const bool known = handle != handles_.end();
    const DeviceId id = known ? physical_[handle->second].device : event.device;
    DeviceState* device = &devices_[id];
    const bool of_pool = device->direct || (event.flags & kFlagFromAllocator) != 0;
    if (device->segments.overlaps(event.address, event.size_bytes)) {
        violation(fmt::format("{:#x} is mapped twice", event.address));
        remove_range(device, event.address, event.address + event.size_bytes, true);
    }
    const std::uint32_t physical =
        known ? handle->second : add_physical({event.size_bytes, 0, 0, id});
    ++physical_[physical].holders;
    if (of_pool) {
        give_to_pool(physical);
    }
    const auto [former, is_new] =
        mappings_.try_emplace(event.address, Mapping{event.size_bytes, id, of_pool, physical});
    if (!is_new) {
        let_go(former->second.physical);
        former->second = {event.size_bytes, id, of_pool, physical};
    }
    if (!of_pool) {
        device->totals.other += event.size_bytes;
        return;
    }
    RecordedSegment segment = {.address = event.address, .size_bytes = event.size_bytes};
    segment.stream = event.stream;
    segment.private_pool = pool_;
    segment.page_bytes = physical_[physical].size_bytes;
    auto reservation = reservations_.upper_bound(event.address);
    if (reservation != reservations_.begin()) {
        --reservation;
        segment.reservation = reservation->first;
        segment.reservation_bytes = reservation->second.size_bytes;
        segment.obtained_by = reservation->second.event;
        segment.stream = reservation->second.stream;
        segment.private_pool = reservation->second.private_pool;
    }
    add_segment(device, segment);
}

void RecordedState::unmap(const Event& event) {
    const DeviceAddress end = event.address + event.size_bytes;
    for (auto entry = mappings_.lower_bound(event.address);
         entry != mappings_.end() && entry->first < end;
         entry = mappings_.erase(entry)) {
        DeviceState* device = &devices_[entry->second.device];
        const std::uint64_t size = std::min(entry->second.size_bytes, end - entry->first);
        if (entry->second.of_pool) {
            remove_range(device, entry->first, entry->first + size, true);
        } else {
            device->totals.other -= std::min(device->totals.other, entry->second.size_bytes);
        }
        let_go(entry->second.physical);
    }
}

void RecordedState::add_segment(DeviceState* device, const RecordedSegment& segment) {
    device->totals.reserved += segment.size_bytes;
    device->segments.add(segment);
    if (device->watch != nullptr) {
        device->watch->segment_begins(segment);
    }
    if (device->direct) {
        RecordedBlock block = {};
        block.address = segment.address;
        block.size_bytes = segment.size_bytes;
        block.requested_bytes = segment.size_bytes;
        block.allocated_by = position_;
        block.stream = segment.stream;
        attach(device, device->segments.find(segment.address), block);
        return;
    }
    reattach(device, segment.address, segment.end());
    check_sums(*device);
}

// Memory goes away. Pending blocks in it are done with. Live ones are a defect of the record,
// unless the range was only unmapped (its contents may come back): set aside either way.
void RecordedState::remove_range(DeviceState* device,
                                 DeviceAddress begin,
                                 DeviceAddress end,
                                 bool unmapped) {
    DeviceAddress first_block = begin;
    const RecordedBlock* before = device->blocks.before(device->blocks.lower_bound(begin));
    if (before != nullptr && before->end() > begin) {
        first_block = before->address;
    }
    for (;;) {
        const auto position = device->blocks.lower_bound(first_block);
        const RecordedBlock* block = device->blocks.at(position);
        if (block == nullptr || block->address >= end) {
            break;
        }
        if (block->state == BlockState::kLive && !device->direct) {
            if (!unmapped) {
                violation(fmt::format("the segment of live block {:#x} went back to the driver",
                                      block->address));
            }
            device->detached[block->address] = *block;
        }
        drop(device, position);
    }
    const auto active_bytes = [device](DeviceAddress part_begin, DeviceAddress part_end) {
        std::uint64_t sum = 0;
        for (auto at = device->blocks.lower_bound(part_begin);; at = device->blocks.next(at)) {
            const RecordedBlock* block = device->blocks.at(at);
            if (block == nullptr || block->address >= part_end) {
                return sum;
            }
            sum += block->size_bytes;
        }
    };
    if (device->watch != nullptr) {
        device->watch->range_ends(device->segments.find(begin), begin, end);
    }
    device->totals.reserved -= device->segments.cut(begin, end, active_bytes);
}

}  // namespace fragtrace::analyzer
