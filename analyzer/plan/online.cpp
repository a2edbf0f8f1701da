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
        const auto smallest = by_size_.lower_bound({size_bytes, 0});
        return take_low(by_end_.find(smallest->second + smallest->first), smallest, size_bytes);
    }

    std::uint64_t take_lowest(std::uint64_t size_bytes) {
        auto gap = by_end_.begin();
        while (gap->first - gap->second < size_bytes) {
            ++gap;
        }
        return take_low(gap, size_of(gap), size_bytes);
    }

    // Uses the high end of the highest gap below the ceiling, or the smallest gap if none fits
    // there.
    std::uint64_t take_highest(std::uint64_t size_bytes, std::uint64_t ceiling_bytes) {
        auto gap = by_end_.upper_bound(ceiling_bytes);
        gap = gap != by_end_.end() && gap->second < ceiling_bytes ? std::next(gap) : gap;
        while (gap != by_end_.begin()) {
            --gap;
            const std::uint64_t end = std::min(gap->first, ceiling_bytes);
            if (gap->second + size_bytes <= end) {
                const auto [old_end, begin] = *gap;
                by_size_.erase(size_of(gap));
                by_end_.erase(gap);
                add(begin, end - size_bytes);
                add(end, old_end);
                return end - size_bytes;
            }
        }
        return take_smallest(size_bytes);
    }

    void give_back(std::uint64_t begin, std::uint64_t end) {
        const auto after = by_end_.upper_bound(begin);
        const auto before = after == by_end_.begin() ? by_end_.end() : std::prev(after);
        const bool joins_before = before != by_end_.end() && before->first == begin;
        const bool joins_after = after != by_end_.end() && after->second == end;
        if (joins_before && joins_after) {
            begin = before->second;
            by_size_.erase(size_of(before));
            by_end_.erase(before);
        }
        if (joins_after) {
            resize(size_of(after), begin, after->first);
            after->second = begin;
        } else if (joins_before) {
            resize(size_of(before), before->second, end);
            auto node = by_end_.extract(before);
            node.key() = end;
            by_end_.insert(after, std::move(node));
        } else {
            add(begin, end);
        }
    }

  private:
    static constexpr std::uint64_t kNoEnd = std::numeric_limits<std::uint64_t>::max();
    // End -> begin: a gap from which the low end is taken keeps its place.
    using ByEnd = std::pmr::map<std::uint64_t, std::uint64_t>;
    using BySize = std::pmr::set<std::pair<std::uint64_t, std::uint64_t>>;  // (bytes, begin)

    BySize::iterator size_of(ByEnd::iterator gap) {
        return by_size_.find({gap->first - gap->second, gap->second});
    }

    std::uint64_t take_low(ByEnd::iterator gap, BySize::iterator size, std::uint64_t size_bytes) {
        const std::uint64_t begin = gap->second;
        if (gap->first - begin == size_bytes) {
            by_size_.erase(size);
            by_end_.erase(gap);
        } else {
            gap->second += size_bytes;
            resize(size, gap->second, gap->first);
        }
        return begin;
    }

    void add(std::uint64_t begin, std::uint64_t end) {
        if (begin < end) {
            by_end_.emplace(end, begin);
            by_size_.emplace(end - begin, begin);
        }
    }

    void resize(BySize::iterator size, std::uint64_t begin, std::uint64_t end) {
        auto node = by_size_.extract(size);
        node.value() = {end - begin, begin};
        by_size_.insert(std::move(node));
    }

    // Gaps come and go with every buffer, so their memory is reused without malloc().
    std::pmr::unsynchronized_pool_resource memory_;
    ByEnd by_end_{&memory_};
    BySize by_size_{&memory_};
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
