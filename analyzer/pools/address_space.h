// Chooses addresses for simulated segments. Addresses are only names. They are displayed, and rules
// that compare addresses use them (PyTorch before 2.13). Reserving searches the gaps by length,
// because there are few different lengths. Its cost does not depend on the number of reserved
// ranges. Not thread-safe.
#pragma once

#include "analyzer/support/units.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>

namespace fragtrace::analyzer {

enum class AddressOrder : std::uint8_t {
    kAscending,   // the lowest gap that is large enough, as most drivers choose
    kDescending,  // the highest gap that is large enough
    kScattered,   // a random address from the seed; the lowest gap if 64 draws find no free place
};

class AddressSpace {
  public:
    struct Range {
        std::uint64_t end = 0;
        std::uint32_t owner = 0;
    };

    using Ranges = std::map<std::uint64_t, Range>;  // by start address

    AddressSpace() = default;

    AddressSpace(AddressOrder order, std::uint64_t seed) : order_(order), seed_(seed) {}

    std::uint64_t reserve(std::uint64_t size_bytes, std::uint32_t owner) {
        const std::uint64_t length = align(size_bytes);
        switch (order_) {
            case AddressOrder::kAscending:
                return insert(lowest(length), length, owner);
            case AddressOrder::kDescending:
                return insert(highest(length), length, owner);
            case AddressOrder::kScattered:
                break;
        }
        // Draws can fail: a recorded run may reserve more than the address range that is drawn
        // from.
        for (int draw = 0; draw < kMostDraws; ++draw) {
            const std::uint64_t begin =
                kFirstAddress + next_random() % kScatteredBytes / kAlignmentBytes * kAlignmentBytes;
            if (reserve_at(begin, size_bytes, owner)) {
                return begin;
            }
        }
        return insert(lowest(length), length, owner);
    }

    // Reserves a given place. Returns false if a part of it is already reserved.
    bool reserve_at(std::uint64_t begin, std::uint64_t size_bytes, std::uint32_t owner) {
        const std::uint64_t length = align(size_bytes);
        const auto gap = gap_around(begin);
        if (gap == gaps_.end() || gap->second - begin < length) {
            return false;
        }
        insert(begin, length, owner);
        return true;
    }

    void release(std::uint64_t begin) {
        const auto at = ranges_.find(begin);
        if (at == ranges_.end()) {
            return;
        }
        std::uint64_t end = at->second.end;
        ranges_.erase(at);
        if (const auto next = gaps_.find(end); next != gaps_.end()) {
            end = next->second;
            remove_gap(next);
        }
        const auto after = gaps_.lower_bound(begin);
        if (after != gaps_.begin() && std::prev(after)->second == begin) {
            begin = std::prev(after)->first;
            remove_gap(std::prev(after));
        }
        add_gap(begin, end);
    }

    // Releases everything. The order and the seed stay.
    void clear() { *this = AddressSpace(order_, seed_); }

    [[nodiscard]] const Ranges& ranges() const { return ranges_; }

  private:
    static constexpr std::uint64_t kAlignmentBytes = std::uint64_t{2} << 20;
    static constexpr std::uint64_t kFirstAddress = 0x7'0000'0000;
    static constexpr std::uint64_t kLastAddress = 0x7000'0000'0000;
    static constexpr std::uint64_t kScatteredBytes = std::uint64_t{1} << 46;
    static constexpr int kMostDraws = 64;

    static std::uint64_t align(std::uint64_t size_bytes) {
        return std::max(round_up(size_bytes, kAlignmentBytes), kAlignmentBytes);
    }

    using Gaps = std::map<std::uint64_t, std::uint64_t>;  // start to end

    // Returns the gap that contains `address`, or gaps_.end().
    [[nodiscard]] Gaps::iterator gap_around(std::uint64_t address) {
        const auto after = gaps_.upper_bound(address);
        return after != gaps_.begin() && std::prev(after)->second > address ? std::prev(after)
                                                                            : gaps_.end();
    }

    void add_gap(std::uint64_t begin, std::uint64_t end) {
        if (begin < end) {
            gaps_[begin] = end;
            gaps_by_length_[end - begin].insert(begin);
        }
    }

    void remove_gap(Gaps::iterator gap) {
        const auto same = gaps_by_length_.find(gap->second - gap->first);
        same->second.erase(gap->first);
        if (same->second.empty()) {
            gaps_by_length_.erase(same);
        }
        gaps_.erase(gap);
    }

    // Takes the lowest gap of each sufficient length. Programs free segments of few different
    // sizes, so there are few lengths to check.
    std::uint64_t lowest(std::uint64_t length) {
        const auto around = gap_around(kFirstAddress);
        if (around != gaps_.end() && around->second - kFirstAddress >= length) {
            return kFirstAddress;
        }
        std::uint64_t lowest = ~std::uint64_t{0};
        for (auto same = gaps_by_length_.lower_bound(length); same != gaps_by_length_.end();
             ++same) {
            const auto begin = same->second.lower_bound(kFirstAddress);
            lowest = begin != same->second.end() ? std::min(lowest, *begin) : lowest;
        }
        return lowest;
    }

    std::uint64_t highest(std::uint64_t length) {
        const auto around = gap_around(kLastAddress);
        if (around != gaps_.end() && kLastAddress - around->first >= length) {
            return kLastAddress - length;
        }
        const std::uint64_t before = around != gaps_.end() ? around->first : kLastAddress;
        std::uint64_t highest_end = 0;
        for (auto same = gaps_by_length_.lower_bound(length); same != gaps_by_length_.end();
             ++same) {
            const auto beyond = same->second.lower_bound(before);
            if (beyond != same->second.begin()) {
                highest_end = std::max(highest_end, *std::prev(beyond) + same->first);
            }
        }
        return highest_end != 0 ? highest_end - length : lowest(length);
    }

    // Requires that the range is free.
    std::uint64_t insert(std::uint64_t begin, std::uint64_t length, std::uint32_t owner) {
        const auto gap = gap_around(begin);
        if (gap != gaps_.end()) {
            const auto [gap_begin, gap_end] = *gap;
            remove_gap(gap);
            add_gap(gap_begin, begin);
            add_gap(begin + length, gap_end);
        }
        ranges_[begin] = {begin + length, owner};
        return begin;
    }

    // splitmix64
    std::uint64_t next_random() {
        std::uint64_t value = seed_ * 0x9e3779b97f4a7c15u + ++draws_ * 0xbf58476d1ce4e5b9u;
        value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
        value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
        return value ^ (value >> 31);
    }

    AddressOrder order_ = AddressOrder::kAscending;
    std::uint64_t seed_ = 0;
    std::uint64_t draws_ = 0;
    Ranges ranges_;
    Gaps gaps_ = {{0, ~std::uint64_t{0}}};
    std::map<std::uint64_t, std::set<std::uint64_t>> gaps_by_length_ = {{~std::uint64_t{0}, {0}}};
};

}  // namespace fragtrace::analyzer
