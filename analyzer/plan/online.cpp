#include "analyzer/plan/online.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory_resource>
#include <set>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// Free ranges of an unbounded address range. The last one has no end.
class Gaps {
  public:
    Gaps() { add(0, kNoEnd); }

    std::uint64_t take_smallest(std::uint64_t size_bytes) {
        const auto [gap_bytes, begin] = *by_size_.lower_bound({size_bytes, 0});
        return take_low(begin, gap_bytes, size_bytes);
    }

    std::uint64_t take_lowest(std::uint64_t size_bytes) {
        auto gap = by_offset_.begin();
        while (gap->second - gap->first < size_bytes) {
            ++gap;
        }
        return take_low(gap->first, gap->second - gap->first, size_bytes);
    }

    // Uses the high end of the highest gap below the ceiling, or the smallest gap if none fits
    // there.
    std::uint64_t take_highest(std::uint64_t size_bytes, std::uint64_t ceiling_bytes) {
        auto gap = by_offset_.lower_bound(ceiling_bytes);
        while (gap != by_offset_.begin()) {
            --gap;
            const std::uint64_t end = std::min(gap->second, ceiling_bytes);
            if (gap->first + size_bytes <= end) {
                const auto [begin, old_end] = *gap;
                remove(gap);
                add(begin, end - size_bytes);
                add(end, old_end);
                return end - size_bytes;
            }
        }
        return take_smallest(size_bytes);
    }

    void give_back(std::uint64_t begin, std::uint64_t end) {
        auto after = by_offset_.upper_bound(begin);
        if (after != by_offset_.begin()) {
            const auto before = std::prev(after);
            if (before->second == begin) {
                begin = before->first;
                remove(before);
            }
        }
        if (after != by_offset_.end() && after->first == end) {
            end = after->second;
            remove(after);
        }
        add(begin, end);
    }

  private:
    static constexpr std::uint64_t kNoEnd = std::numeric_limits<std::uint64_t>::max();
    using ByOffset = std::pmr::map<std::uint64_t, std::uint64_t>;  // begin -> end

    std::uint64_t take_low(std::uint64_t begin, std::uint64_t gap_bytes, std::uint64_t size_bytes) {
        remove(by_offset_.find(begin));
        add(begin + size_bytes, begin + gap_bytes);
        return begin;
    }

    void add(std::uint64_t begin, std::uint64_t end) {
        if (begin < end) {
            by_offset_.emplace(begin, end);
            by_size_.emplace(end - begin, begin);
        }
    }

    void remove(ByOffset::iterator gap) {
        by_size_.erase({gap->second - gap->first, gap->first});
        by_offset_.erase(gap);
    }

    // Gaps come and go with every buffer, so their memory is reused without malloc().
    std::pmr::unsynchronized_pool_resource memory_;
    ByOffset by_offset_{&memory_};
    std::pmr::set<std::pair<std::uint64_t, std::uint64_t>> by_size_{&memory_};  // (bytes, begin)
};

}  // namespace

std::uint64_t place_online(std::span<const Lifetime> lifetimes,
                           std::span<const Turn> turns,
                           const OnlineRules& rules,
                           std::vector<std::uint64_t>* offsets) {
    offsets->assign(lifetimes.size(), 0);
    Gaps gaps;
    std::uint64_t height = 0;
    for (const Turn& turn : turns) {
        const Lifetime& buffer = lifetimes[turn.buffer];
        std::uint64_t& offset = (*offsets)[turn.buffer];
        if (!turn.begins) {
            gaps.give_back(offset, offset + buffer.size_bytes);
            continue;
        }
        if (buffer.end - buffer.begin <= rules.short_lived) {
            offset = gaps.take_highest(buffer.size_bytes, rules.ceiling_bytes);
        } else {
            offset = rules.best_fit ? gaps.take_smallest(buffer.size_bytes)
                                    : gaps.take_lowest(buffer.size_bytes);
        }
        height = std::max(height, offset + buffer.size_bytes);
    }
    return height;
}

}  // namespace fragtrace::analyzer
