// Addresses for simulated segments. Only names, for display and for rules that go by address
// (PyTorch before 2.13). Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

enum class AddressOrder : std::uint8_t {
    kAscending,   // the lowest gap that is large enough, as drivers tend to give
    kDescending,  // the highest
    kScattered,   // anywhere, by a seed
};

class AddressSpace {
  public:
    struct Range {
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
        std::uint32_t owner = 0;
    };

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
        for (;;) {
            const std::uint64_t begin =
                kFirstAddress + next_random() % kScatteredBytes / kAlignmentBytes * kAlignmentBytes;
            if (reserve_at(begin, size_bytes, owner)) {
                return begin;
            }
        }
    }

    // At a given place. False: part of it is taken.
    bool reserve_at(std::uint64_t begin, std::uint64_t size_bytes, std::uint32_t owner) {
        const std::uint64_t length = align(size_bytes);
        const auto next = first_from(begin);
        if ((next != ranges_.end() && next->begin - begin < length) ||
            (next != ranges_.begin() && (next - 1)->end > begin)) {
            return false;
        }
        insert(begin, length, owner);
        return true;
    }

    void release(std::uint64_t begin) {
        const auto at = first_from(begin);
        if (at != ranges_.end() && at->begin == begin) {
            ranges_.erase(at);
        }
    }

    // Nothing is taken; the order stays.
    void clear() { *this = AddressSpace(order_, seed_); }

    // Ascending.
    [[nodiscard]] const std::vector<Range>& ranges() const { return ranges_; }

  private:
    static constexpr std::uint64_t kAlignmentBytes = std::uint64_t{2} << 20;
    static constexpr std::uint64_t kFirstAddress = 0x7'0000'0000;
    static constexpr std::uint64_t kLastAddress = 0x7000'0000'0000;
    static constexpr std::uint64_t kScatteredBytes = std::uint64_t{1} << 46;

    static std::uint64_t align(std::uint64_t size_bytes) {
        return (size_bytes + kAlignmentBytes - 1) & ~(kAlignmentBytes - 1);
    }

    [[nodiscard]] std::vector<Range>::const_iterator first_from(std::uint64_t begin) const {
        return std::lower_bound(
            ranges_.begin(), ranges_.end(), begin, [](const Range& range, std::uint64_t address) {
                return range.begin < address;
            });
    }

    [[nodiscard]] std::uint64_t lowest(std::uint64_t length) const {
        std::uint64_t begin = kFirstAddress;
        for (const Range& range : ranges_) {
            if (range.begin >= begin && range.begin - begin >= length) {
                break;
            }
            begin = std::max(begin, range.end);
        }
        return begin;
    }

    [[nodiscard]] std::uint64_t highest(std::uint64_t length) const {
        std::uint64_t end = kLastAddress;
        for (auto range = ranges_.rbegin(); range != ranges_.rend(); ++range) {
            if (range->end <= end && end - range->end >= length) {
                break;
            }
            end = std::min(end, range->begin);
        }
        return end - length;
    }

    std::uint64_t insert(std::uint64_t begin, std::uint64_t length, std::uint32_t owner) {
        ranges_.insert(first_from(begin), {begin, begin + length, owner});
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
    std::vector<Range> ranges_;
};

}  // namespace fragtrace::analyzer
