// An event in 24 bytes, the base values of a group of events, and the conversion in both
// directions.
//
// Times and addresses are stored as distances from a base that a group of events shares. A value
// that does not fit into 31 bits is replaced by a code with the top bit set. Such wide values are
// sizes from 2 GiB, handles, and addresses that are not a multiple of 512. The owner of the events
// assigns the codes and keeps the values.
#pragma once

#include "analyzer/model/event.h"

#include <cstddef>
#include <cstdint>

namespace fragtrace::analyzer {

// No initial values: tables grow by items that are written afterwards.
struct PackedEvent {
    std::uint32_t time;
    std::uint32_t address;  // 0 means address 0
    std::uint32_t size;
    std::uint32_t extra;
    OriginId origin;
    StreamId stream;
    std::uint8_t device : 5;
    std::uint8_t flags : 3;
    EventKind kind;

    static constexpr std::uint32_t kWide = 1u << 31;

    static bool is_wide(std::uint32_t code) { return (code & kWide) != 0; }

    [[nodiscard]] bool any_wide() const { return is_wide(time | address | size | extra); }
};

static_assert(sizeof(PackedEvent) == 24);

// The base values of a group of events: times and addresses are distances from them.
struct PackingBase {
    static constexpr std::size_t kEvents = 1 << 8;  // events per group

    // wide_code(value) returns the code of a wide value, with the top bit set.
    template <typename WideCode>
    PackedEvent pack(const Event& event, WideCode wide_code) {
        const std::uint64_t later = event.time_ns - time_ns;
        const auto code_of = [&wide_code](std::uint64_t value) {
            return value < PackedEvent::kWide ? static_cast<std::uint32_t>(value)
                                              : wide_code(value);
        };
        return {.time = later < PackedEvent::kWide ? static_cast<std::uint32_t>(later)
                                                   : wide_code(event.time_ns),
                .address = address_code(event.address, wide_code),
                .size = code_of(event.size_bytes),
                .extra = code_of(event.extra),
                .origin = event.origin,
                .stream = event.stream,
                .device = event.device,
                .flags = event.flags,
                .kind = event.kind};
    }

    // wide(code) returns the wide value of a code.
    template <typename Wide>
    [[nodiscard]] Event unpack(const PackedEvent& packed, Wide wide) const {
        const auto value_of = [&wide](std::uint32_t code) {
            return PackedEvent::is_wide(code) ? wide(code) : code;
        };
        return {.time_ns = time_of(packed, wide),
                .address = address_of(packed, wide),
                .size_bytes = value_of(packed.size),
                .extra = value_of(packed.extra),
                .origin = packed.origin,
                .stream = packed.stream,
                .device = packed.device,
                .flags = packed.flags,
                .kind = packed.kind};
    }

    template <typename Wide>
    [[nodiscard]] std::uint64_t time_of(const PackedEvent& packed, Wide wide) const {
        return PackedEvent::is_wide(packed.time) ? wide(packed.time) : time_ns + packed.time;
    }

    template <typename Wide>
    [[nodiscard]] DeviceAddress address_of(const PackedEvent& packed, Wide wide) const {
        if (PackedEvent::is_wide(packed.address)) {
            return wide(packed.address);
        }
        return packed.address == 0 ? 0 : (units + packed.address) * kBlockUnitBytes;
    }

    // Returns the base of a group whose first event has this time.
    static PackingBase at(std::uint64_t time_ns) { return {time_ns - kHalfReach, kNoUnits}; }

    std::uint64_t time_ns;
    std::uint64_t units;  // base address / kBlockUnitBytes; set by the group's first address

  private:
    static constexpr std::uint64_t kHalfReach = 1u << 30;              // reach in each direction
    static constexpr std::uint64_t kNoUnits = std::uint64_t{1} << 63;  // no address yet

    template <typename WideCode>
    std::uint32_t address_code(DeviceAddress address, WideCode& wide_code) {
        if (address == 0) {
            return 0;
        }
        if (address % kBlockUnitBytes != 0) {
            return wide_code(address);
        }
        const std::uint64_t address_units = address / kBlockUnitBytes;
        if (units == kNoUnits) {
            units = address_units - kHalfReach;
        }
        const std::uint64_t distance = address_units - units;
        return distance - 1 < PackedEvent::kWide - 1 ? static_cast<std::uint32_t>(distance)
                                                     : wide_code(address);
    }
};

}  // namespace fragtrace::analyzer
