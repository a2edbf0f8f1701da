// A hash table from (64 bits, 32 bits) to 32 bits: device addresses to events, or stacks of a
// thread to origins. It uses open addressing with linear probing. Erasing moves later entries up,
// so there are no tombstones and look-ups do not get slower over time. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

class PairMap {
  public:
    static constexpr std::uint32_t kAbsent = 0xffffffffu;  // must not be stored as a value

    PairMap() : slots_(std::size_t{1} << kSmallestBits) {}

    [[nodiscard]] std::size_t size() const { return size_; }

    [[nodiscard]] std::uint32_t find(std::uint64_t major, std::uint32_t minor) const {
        return slots_[locate(major, minor)].value;
    }

    // Sets the value and returns the former one; kAbsent if there was none.
    std::uint32_t set(std::uint64_t major, std::uint32_t minor, std::uint32_t value) {
        if ((size_ + 1) * 2 > slots_.size()) {  // keeps probe sequences short
            grow();
        }
        Slot& slot = slots_[locate(major, minor)];
        const std::uint32_t former = slot.value;
        size_ += former == kAbsent ? 1 : 0;
        slot = {major, minor, value};
        return former;
    }

    // Removes a key and returns its value; kAbsent if there was none.
    std::uint32_t take(std::uint64_t major, std::uint32_t minor) {
        std::size_t hole = locate(major, minor);
        const std::uint32_t value = slots_[hole].value;
        if (value == kAbsent) {
            return kAbsent;
        }
        --size_;
        const std::size_t mask = slots_.size() - 1;
        for (std::size_t next = (hole + 1) & mask; slots_[next].value != kAbsent;
             next = (next + 1) & mask) {
            const std::size_t home = home_of(slots_[next].major, slots_[next].minor);
            if (((next - home) & mask) >= ((next - hole) & mask)) {
                slots_[hole] = slots_[next];
                hole = next;
            }
        }
        slots_[hole].value = kAbsent;
        return value;
    }

    // Removes all keys. Keeps the capacity, unless the table was much larger than its current
    // content.
    void clear() {
        if (size_ != 0 && slots_.size() > 64 * (size_ + 64)) {
            *this = PairMap();
        } else if (size_ != 0) {
            std::fill(slots_.begin(), slots_.end(), Slot{});
            size_ = 0;
        }
    }

    // Removes all keys with this minor part.
    void remove_minor(std::uint32_t minor) {
        std::vector<Slot> old(slots_.size());
        old.swap(slots_);
        size_ = 0;
        for (const Slot& slot : old) {
            if (slot.value != kAbsent && slot.minor != minor) {
                set(slot.major, slot.minor, slot.value);
            }
        }
    }

    // Calls visit(value) for every entry, in no particular order.
    template <typename Visit>
    void for_each(Visit visit) const {
        for (const Slot& slot : slots_) {
            if (slot.value != kAbsent) {
                visit(slot.value);
            }
        }
    }

  private:
    struct Slot {
        std::uint64_t major = 0;
        std::uint32_t minor = 0;
        std::uint32_t value = kAbsent;
    };

    static constexpr int kSmallestBits = 6;

    // Uses the top bits of one product, because every bit of the key affects them.
    [[nodiscard]] std::size_t home_of(std::uint64_t major, std::uint32_t minor) const {
        const std::uint64_t value = major + minor * 0xd6e8feb86659fd93;
        return static_cast<std::size_t>(((value ^ (value >> 32)) * 0x9e3779b97f4a7c15) >> shift_);
    }

    [[nodiscard]] std::size_t locate(std::uint64_t major, std::uint32_t minor) const {
        const std::size_t mask = slots_.size() - 1;
        std::size_t at = home_of(major, minor);
        while (slots_[at].value != kAbsent &&
               (slots_[at].major != major || slots_[at].minor != minor)) {
            at = (at + 1) & mask;
        }
        return at;
    }

    void grow() {
        std::vector<Slot> old(slots_.size() * 2);
        old.swap(slots_);
        --shift_;
        size_ = 0;
        for (const Slot& slot : old) {
            if (slot.value != kAbsent) {
                set(slot.major, slot.minor, slot.value);
            }
        }
    }

    std::vector<Slot> slots_;
    std::size_t size_ = 0;
    int shift_ = 64 - kSmallestBits;  // right shift from a hash to a slot number
};

}  // namespace fragtrace::analyzer
