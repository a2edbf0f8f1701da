// Addresses for simulated segments: the lowest gap that is large enough, as drivers tend to give.
// Only names, for display and for rules that go by address. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

class AddressSpace {
  public:
    struct Range {
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
        std::uint32_t owner = 0;
    };

    std::uint64_t reserve(std::uint64_t size_bytes, std::uint32_t owner) {
        const std::uint64_t length = (size_bytes + kAlignmentBytes - 1) & ~(kAlignmentBytes - 1);
        std::uint64_t begin = kFirstAddress;
        auto at = ranges_.begin();
        while (at != ranges_.end() && at->begin - begin < length) {
            begin = at->end;
            ++at;
        }
        ranges_.insert(at, {begin, begin + length, owner});
        return begin;
    }

    void release(std::uint64_t begin) {
        for (auto at = ranges_.begin(); at != ranges_.end(); ++at) {
            if (at->begin == begin) {
                ranges_.erase(at);
                return;
            }
        }
    }

    // Ascending.
    [[nodiscard]] const std::vector<Range>& ranges() const { return ranges_; }

  private:
    static constexpr std::uint64_t kAlignmentBytes = std::uint64_t{2} << 20;
    static constexpr std::uint64_t kFirstAddress = 0x7'0000'0000;

    std::vector<Range> ranges_;
};

}  // namespace fragtrace::analyzer
