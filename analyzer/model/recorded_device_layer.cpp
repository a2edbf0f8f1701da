// The device layer of RecordedState: memory that the driver allocated and released.
#include "analyzer/model/own_segments.h"
#include "analyzer/model/recorded_state.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kMostUnaddressedBytes = std::uint64_t{1} << 56;

// The size of a stand-in's address range: whole pages, a power of two.
std::uint64_t place_bytes(std::uint64_t size_bytes) {
    return std::bit_ceil(std::max(size_bytes, kDriverPageBytes));
}

}  // namespace

void RecordedState::device_alloc(DeviceState* device, const Event& event) {
    if (event.size_bytes == 0 || event.address + event.size_bytes < event.address) {
        return violation(fmt::format("{:#x} has an impossible size", event.address));
    }
    if (device->segments.overlaps(event.address, event.size_bytes)) {
        const RecordedSegment* former = device->segments.find(event.address);
        if (former == nullptr || !went_with_context(event.device, former->obtained_by)) {
            violation(fmt::format("the driver allocated {:#x}, which still belongs to the pool",
                                  event.address));
        }
        const std::uint64_t reserved = device->totals.reserved;
        remove_range(device, event.address, event.address + event.size_bytes, false);
        device->totals.own -= std::min(device->totals.own, reserved - device->totals.reserved);
    }
    device->totals.own += event.size_bytes;
    if (device->direct || (event.flags & kFlagFromAllocator) != 0) {
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
        if (!went_with_context(event.device, former->second.allocated_by)) {
            violation(fmt::format("the driver allocated {:#x} twice", event.address));
        }
        device->totals.own -= former->second.size_bytes;
        forget_other(device, former);
    }
    const bool past_pool =
        event.kind == EventKind::kDeviceAlloc && (event.flags & kFlagPastPool) != 0;
    device->others[event.address] = {event.size_bytes, past_pool, position_};
    device->totals.other += event.size_bytes;
    device->totals.past_pool += past_pool ? event.size_bytes : 0;
}

// Allocations do not name their context. If an address is allocated again, the former allocation
// must have been in a context that was destroyed in the meantime.
bool RecordedState::went_with_context(DeviceId device, EventIndex allocated_by) const {
    const EventIndex destroyed = contexts_.last_destroyed(device);
    return destroyed != kNoEvent && allocated_by < destroyed;
}

void RecordedState::forget_other(DeviceState* device,
                                 std::map<DeviceAddress, Other>::iterator other) {
    device->totals.other -= other->second.size_bytes;
    device->totals.past_pool -= other->second.past_pool ? other->second.size_bytes : 0;
    device->others.erase(other);
}

// The first sign of a pool on a device: until now every allocation counted as a segment with one
// block. These move to the allocations outside the pool. A block inside one of them later makes it
// a segment.
void RecordedState::becomes_pool(DeviceId id) {
    DeviceState* device = &devices_[id];
    device->direct = false;
    MemoryTotals totals;
    totals.own = device->totals.own;
    totals.other = device->totals.own;
    for (const RecordedSegment& segment : device->segments.segments()) {
        if (segment.address < kFirstStandInAddress) {
            device->others[segment.address] = {segment.size_bytes, false, segment.obtained_by};
        }
    }
    device->totals = totals;
    device->segments.clear();
    device->blocks = {};
    device->stand_ins.clear();
    device->graphs.place = 0;
    for (auto& [handle, array] : device->arrays) {
        array.place = 0;
    }
    physical_.for_each(
        [id](PhysicalPiece& piece) { piece.place = piece.device == id ? 0 : piece.place; });
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
    state.graphs = {};
    state.stand_ins.clear();
    state.next_stand_in = kFirstStandInAddress;
    state.totals = {};
    physical_.reset(
        device, [](auto&&...) {}, [](const PhysicalPiece&) {});
    std::erase_if(waiting_, [device](const auto& entry) { return entry.second.device == device; });
}

// A checkpoint lists the whole state again.
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
    contexts_ = {};
    gap_ = false;
}

std::size_t RecordedState::entries() const {
    std::size_t sum = reservations_.size() + physical_.entries() + waiting_.size();
    for (const DeviceState& device : devices_) {
        sum += device.segments.segments().size() + device.blocks.size() + device.detached.size() +
               device.others.size() + device.arrays.size() + device.pools_released.size();
    }
    return sum;
}

// Counts memory without an address of its own. Without a pool, it becomes a segment with one block
// at a stand-in address. Stand-in addresses are reused by size class, so their number stays in
// proportion to the live memory.
RecordedState::Unaddressed RecordedState::hold(DeviceState* device, std::uint64_t size_bytes) {
    if (size_bytes > kMostUnaddressedBytes ||
        device->next_stand_in + place_bytes(size_bytes) < kFirstStandInAddress) {
        violation(fmt::format("{} bytes are an impossible size", size_bytes));
        return {};
    }
    device->totals.own += size_bytes;
    if (!device->direct || size_bytes == 0) {
        device->totals.other += size_bytes;
        return {size_bytes, 0};
    }
    std::vector<DeviceAddress>& free = device->stand_ins[place_bytes(size_bytes)];
    if (free.empty()) {
        free.push_back(device->next_stand_in);
        device->next_stand_in += place_bytes(size_bytes);
    }
    const DeviceAddress place = free.back();
    free.pop_back();
    add_segment(device, {.address = place, .size_bytes = size_bytes, .obtained_by = position_});
    return {size_bytes, place};
}

void RecordedState::let_go(DeviceState* device, const Unaddressed& held) {
    device->totals.own -= std::min(device->totals.own, held.size_bytes);
    if (held.place == 0) {
        device->totals.other -= std::min(device->totals.other, held.size_bytes);
        return;
    }
    remove_range(device, held.place, held.place + held.size_bytes, false);
    device->stand_ins[place_bytes(held.size_bytes)].push_back(held.place);
}

void RecordedState::array_alloc(DeviceState* device, const Event& event) {
    if (event.size_bytes == kUnknown64) {
        return;  // its holder list counts it
    }
    array_free(device, event);
    device->arrays[event.address] = hold(device, event.size_bytes);
}

void RecordedState::array_free(DeviceState* device, const Event& event) {
    const auto array = device->arrays.find(event.address);
    if (array != device->arrays.end()) {
        let_go(device, array->second);
        device->arrays.erase(array);
    }
}

void RecordedState::graph_memory(DeviceState* device, const Event& event) {
    if (event.extra != kUnknown64) {
        let_go(device, device->graphs);
        device->graphs = hold(device, event.extra);
    }
}

void RecordedState::physical_create(const Event& event) {
    const std::uint32_t created = physical_.create(
        event, position_, [this](const PhysicalPiece& piece) { physical_ends(piece); });
    physical_begins(&physical_.piece(created), (event.flags & kFlagFromAllocator) != 0);
}

void RecordedState::physical_release(const Event& event) {
    physical_.release(event.address, [this](const PhysicalPiece& piece) { physical_ends(piece); });
}

// Physical memory of a pool is no longer "other". Its segment begins when it is mapped.
void RecordedState::physical_begins(PhysicalPiece* piece, bool of_pool) {
    DeviceState* device = &devices_[piece->device];
    const Unaddressed held = hold(device, piece->size_bytes);
    piece->size_bytes = held.size_bytes;
    piece->place = held.place;
    if (of_pool && !device->direct) {
        piece->of_pool = true;
        device->totals.other -= piece->size_bytes;
    }
}

void RecordedState::physical_ends(const PhysicalPiece& piece) {
    DeviceState* device = &devices_[piece.device];
    device->totals.other += piece.of_pool ? piece.size_bytes : 0;
    let_go(device, {piece.size_bytes, piece.place});
}

// The reservation that this range begins in; nullptr if none is known.
RecordedState::Reservation* RecordedState::reservation_of(DeviceAddress address) {
    auto reservation = reservations_.upper_bound(address);
    return reservation == reservations_.begin() ? nullptr : &std::prev(reservation)->second;
}

// The reservation of a segment that has an address range of its own, if it is this range. Sleep
// modes unmap such a segment and map it again, while the pool has it all the time.
RecordedState::Reservation* RecordedState::own_reservation(DeviceAddress address,
                                                           std::uint64_t size_bytes) {
    const auto found = reservations_.find(address);
    return found != reservations_.end() && found->second.is_segment &&
                   found->second.size_bytes == size_bytes
               ? &found->second
               : nullptr;
}

void RecordedState::map(const Event& mapped) {
    Event event = mapped;
    const Reservation* const own = own_reservation(event.address, event.size_bytes);
    if (own != nullptr) {
        event.flags |= kFlagFromAllocator;
    }
    if (event.size_bytes == 0 || event.address + event.size_bytes < event.address) {
        return violation(fmt::format("{:#x} is mapped with an impossible size", event.address));
    }
    const bool known = physical_.of_handle(event.extra) != PhysicalMemory::kNone;
    const PhysicalMemory::Mapping mapping = physical_.map(
        event,
        position_,
        [](const PhysicalMemory::Mapping&) {},
        [this](const PhysicalPiece& piece) { physical_ends(piece); });
    if (mapping.piece == PhysicalMemory::kNone) {
        return;  // memory of another process
    }
    PhysicalPiece& piece = physical_.piece(mapping.piece);
    if (!known) {
        physical_begins(&piece, mapping.of_pool);
    }
    // The mapping call names no device; the device of the physical memory counts.
    DeviceState* device = &devices_[piece.device];
    if (device->direct || !mapping.of_pool) {
        return;
    }
    if (!piece.of_pool) {
        piece.of_pool = true;
        device->totals.other -= std::min(device->totals.other, piece.size_bytes);
    }
    if (own != nullptr && own->device == piece.device &&
        device->segments.find(event.address) != nullptr) {
        device->totals.unmapped -= std::min(device->totals.unmapped, own->size_bytes);
        return;
    }
    RecordedSegment segment = {.address = event.address, .size_bytes = event.size_bytes};
    segment.stream = event.stream;
    segment.private_pool = pool_;
    // The segment must not have more pages than mappings, even if the handle is smaller than its
    // mapping.
    segment.page_bytes = known ? std::max(piece.size_bytes, event.size_bytes) : event.size_bytes;
    if (Reservation* const reservation = reservation_of(event.address)) {
        segment.reservation = reservation->address;
        segment.reservation_bytes = reservation->size_bytes;
        segment.obtained_by = reservation->event;
        segment.stream = reservation->stream;
        segment.private_pool = reservation->private_pool;
        if (is_own_segment(event, reservation->address, reservation->size_bytes)) {
            reservation->is_segment = true;
            reservation->device = piece.device;
            segment.page_bytes = segment.reservation = segment.reservation_bytes = 0;
        }
    }
    add_segment(device, segment);
}

void RecordedState::unmap(const Event& event) {
    const DeviceAddress end = event.address + event.size_bytes;
    physical_.unmap(
        event.address,
        event.size_bytes,
        [this, end](DeviceAddress address, const PhysicalMemory::Mapping& mapping) {
            if (!mapping.of_pool || mapping.piece == PhysicalMemory::kNone) {
                return;
            }
            DeviceState* device = &devices_[physical_.piece(mapping.piece).device];
            if (own_reservation(address, mapping.size_bytes) != nullptr) {
                const bool has_segment = device->segments.find(address) != nullptr;
                device->totals.unmapped += has_segment ? mapping.size_bytes : 0;
            } else if (!device->direct) {
                const std::uint64_t size = std::min(mapping.size_bytes, end - address);
                remove_range(device, address, address + size, true);
            }
        },
        [this](const PhysicalPiece& piece) { physical_ends(piece); });
}

void RecordedState::address_free(const Event& event) {
    const auto reservation = reservations_.find(event.address);
    if (reservation == reservations_.end()) {
        return;
    }
    const Reservation& range = reservation->second;
    DeviceState* device = &devices_[range.device];
    if (range.is_segment && device->segments.find(event.address) != nullptr) {
        device->totals.unmapped -= std::min(device->totals.unmapped, range.size_bytes);
        remove_range(device, event.address, event.address + range.size_bytes, false);
    }
    reservations_.erase(reservation);
}

void RecordedState::add_segment(DeviceState* device, const RecordedSegment& segment) {
    if (device->segments.overlaps(segment.address, segment.size_bytes)) {
        violation(fmt::format("{:#x} overlaps another segment", segment.address));
        remove_range(device, segment.address, segment.end(), true);
    }
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

// The memory of [begin, end) is released or unmapped. Pending blocks in it end. Live blocks violate
// the invariants unless the range was only unmapped, because it may be mapped again; either way
// they become detached blocks.
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
                violation(
                    fmt::format("the segment of the live block {:#x} was returned to the driver",
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
