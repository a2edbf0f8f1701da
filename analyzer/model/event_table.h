// The events of a timeline: 24 bytes each, given out as Event by value.
//
// Times and addresses are kept as distances from a base that 256 events share; what does not fit
// into 31 bits (sizes of 2 GiB, handles, addresses that are no multiple of 512) is kept once in a
// table of wide values. Every event is found in constant time, and no growth copies what is there.
// Safe to share between threads once filled.
#pragma once

#include "analyzer/model/chunked_vector.h"
#include "analyzer/model/event.h"
#include "analyzer/model/pair_map.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace fragtrace::analyzer {

class EventTable {
  public:
    using value_type = Event;

    // Random access; gives events by value.
    class Iterator {
      public:
        using iterator_category = std::input_iterator_tag;
        using value_type = Event;
        using difference_type = std::ptrdiff_t;
        using pointer = void;
        using reference = Event;

        Iterator(const EventTable* table, std::size_t at) : table_(table), at_(at) {}

        Event operator*() const { return (*table_)[at_]; }

        Iterator& operator++() {
            ++at_;
            return *this;
        }

        Iterator operator++(int) {
            const Iterator before = *this;
            ++at_;
            return before;
        }

        bool operator==(const Iterator& other) const { return at_ == other.at_; }

      private:
        const EventTable* table_;
        std::size_t at_;
    };

    [[nodiscard]] std::size_t size() const { return packed_.size(); }

    [[nodiscard]] bool empty() const { return packed_.empty(); }

    Event operator[](std::size_t at) const {
        const Packed& packed = packed_[at];
        const Base& base = bases_[at / kBaseEvents];
        return {.time_ns = is_wide(packed.time) ? wide(packed.time) : base.time_ns + packed.time,
                .address = address_of(packed, base),
                .size_bytes = value_of(packed.size),
                .extra = value_of(packed.extra),
                .origin = packed.origin,
                .stream = packed.stream,
                .device = packed.device,
                .flags = packed.flags,
                .kind = packed.kind};
    }

    // For loops over all events that look at little of each.
    [[nodiscard]] EventKind kind(std::size_t at) const { return packed_[at].kind; }

    [[nodiscard]] DeviceId device(std::size_t at) const { return packed_[at].device; }

    [[nodiscard]] DeviceAddress address(std::size_t at) const {
        return address_of(packed_[at], bases_[at / kBaseEvents]);
    }

    [[nodiscard]] Event front() const { return (*this)[0]; }

    [[nodiscard]] Event back() const { return (*this)[size() - 1]; }

    [[nodiscard]] Iterator begin() const { return {this, 0}; }

    [[nodiscard]] Iterator end() const { return {this, size()}; }

    void push_back(const Event& event) {
        if (size() % kBaseEvents == 0) {
            bases_.push_back({event.time_ns - kHalfReach, kNoUnits});
        }
        packed_.push_back(pack(event, &bases_.back()));
    }

    // Replaces one event.
    void set(std::size_t at, const Event& event) {
        packed_[at] = pack(event, &bases_[at / kBaseEvents]);
    }

    void set_device(std::size_t at, DeviceId device) { packed_[at].device = device & 31u; }

  private:
    struct Packed {
        std::uint32_t time = 0;
        std::uint32_t address = 0;  // 0 = 0
        std::uint32_t size = 0;
        std::uint32_t extra = 0;
        OriginId origin = 0;
        StreamId stream = 0;
        std::uint8_t device : 5 = 0;
        std::uint8_t flags : 3 = 0;
        EventKind kind = EventKind::kNone;
    };

    static_assert(sizeof(Packed) == 24);

    // What the events of a group count from.
    struct Base {
        std::uint64_t time_ns;
        std::uint64_t units;  // of kBlockUnitBytes; that of the first address in the group
    };

    static constexpr std::size_t kBaseEvents = 1 << 8;
    static constexpr std::uint32_t kWide = 1u << 31;
    static constexpr std::uint64_t kHalfReach = 1u << 30;  // later and earlier times, addresses
    static constexpr std::uint64_t kNoUnits = std::uint64_t{1} << 63;  // of no address

    static bool is_wide(std::uint32_t code) { return (code & kWide) != 0; }

    [[nodiscard]] std::uint64_t wide(std::uint32_t code) const { return wide_[code & ~kWide]; }

    [[nodiscard]] std::uint64_t value_of(std::uint32_t code) const {
        return is_wide(code) ? wide(code) : code;
    }

    [[nodiscard]] DeviceAddress address_of(const Packed& packed, const Base& base) const {
        if (is_wide(packed.address)) {
            return wide(packed.address);
        }
        return packed.address == 0 ? 0 : (base.units + packed.address) * kBlockUnitBytes;
    }

    std::uint32_t wide_code(std::uint64_t value) {
        std::uint32_t index = wide_index_.find(value, 0);
        if (index == PairMap::kAbsent) {
            index = static_cast<std::uint32_t>(wide_.size());
            wide_.push_back(value);
            wide_index_.set(value, 0, index);
        }
        return index | kWide;
    }

    std::uint32_t code_of(std::uint64_t value) {
        return value < kWide ? static_cast<std::uint32_t>(value) : wide_code(value);
    }

    std::uint32_t address_code(DeviceAddress address, Base* base) {
        if (address == 0) {
            return 0;
        }
        if (address % kBlockUnitBytes != 0) {
            return wide_code(address);
        }
        const std::uint64_t units = address / kBlockUnitBytes;
        if (base->units == kNoUnits) {
            base->units = units - kHalfReach;
        }
        const std::uint64_t distance = units - base->units;
        return distance - 1 < kWide - 1 ? static_cast<std::uint32_t>(distance) : wide_code(address);
    }

    Packed pack(const Event& event, Base* base) {
        const std::uint64_t later = event.time_ns - base->time_ns;
        return {
            .time = later < kWide ? static_cast<std::uint32_t>(later) : wide_code(event.time_ns),
            .address = address_code(event.address, base),
            .size = code_of(event.size_bytes),
            .extra = code_of(event.extra),
            .origin = event.origin,
            .stream = event.stream,
            .device = event.device,
            .flags = event.flags,
            .kind = event.kind};
    }

    ChunkedVector<Packed> packed_;
    std::vector<Base> bases_;
    std::vector<std::uint64_t> wide_;
    PairMap wide_index_;  // value -> place in wide_
};

}  // namespace fragtrace::analyzer
