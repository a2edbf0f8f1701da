// The events of a timeline, stored in 24 bytes each (packed_event.h) and returned as Event by
// value.
//
// Each distinct wide value is stored once. Access takes constant time, and growing copies no
// existing events. Once filled, the table can be shared between threads.
#pragma once

#include "analyzer/model/chunked_vector.h"
#include "analyzer/model/event.h"
#include "analyzer/model/packed_event.h"
#include "analyzer/model/pair_map.h"
#include "analyzer/model/steady_time.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace fragtrace::analyzer {

class EventTable {
  public:
    using value_type = Event;

    // Iterates forward; returns events by value.
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
        return bases_[at / kGroup].unpack(packed_[at], WideOf{this});
    }

    // These accessors serve loops over all events that need only one field of each.
    [[nodiscard]] EventKind kind(std::size_t at) const { return packed_[at].kind; }

    [[nodiscard]] DeviceId device(std::size_t at) const { return packed_[at].device; }

    [[nodiscard]] std::uint8_t flags(std::size_t at) const { return packed_[at].flags; }

    [[nodiscard]] DeviceAddress address(std::size_t at) const {
        return bases_[at / kGroup].address_of(packed_[at], WideOf{this});
    }

    // Calls visit(event number, kind, address, device) for each event in [begin, end).
    template <typename Visit>
    void for_each_address(std::size_t begin, std::size_t end, Visit visit) const {
        for (std::size_t at = begin; at < end;) {
            const std::size_t group_end = std::min(end, (at / kGroup + 1) * kGroup);
            const PackingBase base = bases_[at / kGroup];
            for (const PackedEvent* event = &packed_[at]; at < group_end; ++at, ++event) {
                visit(at, event->kind, base.address_of(*event, WideOf{this}), event->device);
            }
        }
    }

    [[nodiscard]] Event front() const { return (*this)[0]; }

    [[nodiscard]] Event back() const { return (*this)[size() - 1]; }

    [[nodiscard]] Iterator begin() const { return {this, 0}; }

    [[nodiscard]] Iterator end() const { return {this, size()}; }

    void push_back(const Event& event) {
        if (size() % kGroup == 0) {
            bases_.push_back(PackingBase::at(event.time_ns));
        }
        packed_.push_back(bases_.back().pack(event, WideCode{this}));
    }

    // Appends up to one group of packed events. The table must be at the beginning of a group.
    // `wide` holds the wide values that the events refer to; complete(&event) may change each event
    // before it is stored.
    template <typename Complete>
    void append_group(const PackedEvent* events,
                      std::size_t count,
                      const PackingBase& base,
                      const std::uint64_t* wide,
                      Complete complete) {
        bases_.push_back(base);
        PackedEvent* to = packed_.grow(count);
        for (std::size_t i = 0; i < count; ++i) {
            PackedEvent event = events[i];
            if (event.any_wide()) {
                for (std::uint32_t PackedEvent::*code : {&PackedEvent::time,
                                                         &PackedEvent::address,
                                                         &PackedEvent::size,
                                                         &PackedEvent::extra}) {
                    if (PackedEvent::is_wide(event.*code)) {
                        event.*code = wide_code(wide[event.*code & ~PackedEvent::kWide]);
                    }
                }
            }
            complete(&event);
            to[i] = event;
        }
    }

    // Replaces one event.
    void set(std::size_t at, const Event& event) {
        packed_[at] = bases_[at / kGroup].pack(event, WideCode{this});
    }

    void keep_times_in_order() {
        SteadyTime steady;
        for (std::size_t at = 0; at < size(); ++at) {
            const std::uint64_t recorded_ns =
                bases_[at / kGroup].time_of(packed_[at], WideOf{this});
            const std::uint64_t time_ns = steady.of(packed_[at].kind, recorded_ns);
            if (time_ns != recorded_ns) {
                Event event = (*this)[at];
                event.time_ns = time_ns;
                set(at, event);
            }
        }
    }

    void set_device(std::size_t at, DeviceId device) { packed_[at].device = device & 31u; }

  private:
    static constexpr std::size_t kGroup = PackingBase::kEvents;

    static_assert(ChunkedVector<PackedEvent>::kChunkItems % kGroup == 0, "no group is torn");

    // Converters for PackingBase: WideOf returns the wide value of a code, WideCode returns the
    // code of a value.
    struct WideOf {
        std::uint64_t operator()(std::uint32_t code) const {
            return table->wide_[code & ~PackedEvent::kWide];
        }

        const EventTable* table;
    };

    struct WideCode {
        std::uint32_t operator()(std::uint64_t value) const { return table->wide_code(value); }

        EventTable* table;
    };

    std::uint32_t wide_code(std::uint64_t wide) {
        std::uint32_t index = wide_index_.find(wide, 0);
        if (index == PairMap::kAbsent) {
            index = static_cast<std::uint32_t>(wide_.size());
            wide_.push_back(wide);
            wide_index_.set(wide, 0, index);
        }
        return index | PackedEvent::kWide;
    }

    ChunkedVector<PackedEvent> packed_;
    std::vector<PackingBase> bases_;
    std::vector<std::uint64_t> wide_;
    PairMap wide_index_;  // value -> index in wide_
};

}  // namespace fragtrace::analyzer
