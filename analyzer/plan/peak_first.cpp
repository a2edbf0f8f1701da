#include "analyzer/plan/peak_first.h"

#include "analyzer/plan/occupancy.h"

#include <algorithm>
#include <bit>
#include <tuple>

namespace fragtrace::analyzer {
namespace {

// Live bytes at each moment, and the maximum of any range of moments: a tree of maxima over groups
// of kStretch moments.
class LiveBytes {
  public:
    LiveBytes(std::span<const Lifetime> lifetimes,
              std::span<const Turn> turns,
              const MomentTable& table)
        : at_(table.count), leaves_(std::bit_ceil(table.count / kStretch + 1)), most_(2 * leaves_) {
        std::uint64_t live = 0;
        std::size_t moment = 0;
        bool grew = false;
        for (const Turn& turn : turns) {
            if (turn.begins) {
                live += lifetimes[turn.buffer].size_bytes;
            } else {
                if (grew) {
                    at_[moment++] = live;
                }
                live -= lifetimes[turn.buffer].size_bytes;
            }
            grew = turn.begins;
        }
        for (std::size_t i = 0; i < at_.size(); ++i) {
            std::uint64_t& most = most_[leaves_ + i / kStretch];
            most = std::max(most, at_[i]);
        }
        for (std::size_t node = leaves_ - 1; node > 0; --node) {
            most_[node] = std::max(most_[2 * node], most_[2 * node + 1]);
        }
    }

    [[nodiscard]] std::uint64_t most(Moments moments) const {
        const std::size_t whole_begin = (moments.begin + kStretch - 1) / kStretch;
        const std::size_t whole_end = moments.end / kStretch;
        if (whole_begin >= whole_end) {
            return most_at(moments.begin, moments.end);
        }
        std::uint64_t most = std::max(most_at(moments.begin, whole_begin * kStretch),
                                      most_at(whole_end * kStretch, moments.end));
        std::size_t begin = leaves_ + whole_begin;
        std::size_t end = leaves_ + whole_end;
        for (; begin < end; begin /= 2, end /= 2) {
            if (begin % 2 == 1) {
                most = std::max(most, most_[begin++]);
            }
            if (end % 2 == 1) {
                most = std::max(most, most_[--end]);
            }
        }
        return most;
    }

  private:
    static constexpr std::size_t kStretch = 32;

    [[nodiscard]] std::uint64_t most_at(std::size_t begin, std::size_t end) const {
        return begin == end ? 0
                            : *std::max_element(at_.begin() + static_cast<std::ptrdiff_t>(begin),
                                                at_.begin() + static_cast<std::ptrdiff_t>(end));
    }

    std::vector<std::uint64_t> at_;
    std::size_t leaves_;
    std::vector<std::uint64_t> most_;
};

std::vector<std::uint32_t> order_by_peak(std::span<const Lifetime> lifetimes,
                                         std::span<const Turn> turns,
                                         const MomentTable& table) {
    struct Key {
        std::uint64_t peak_bytes;
        std::uint64_t length;
        std::uint32_t turn;  // on ties the earlier begin comes first
        std::uint32_t buffer;
    };

    std::vector<Key> keys;
    keys.reserve(turns.size() / 2);
    const LiveBytes live(lifetimes, turns, table);
    for (const Turn& turn : turns) {
        if (turn.begins) {
            const Lifetime& life = lifetimes[turn.buffer];
            keys.push_back({live.most(table.of[turn.buffer]),
                            life.end - life.begin,
                            static_cast<std::uint32_t>(keys.size()),
                            turn.buffer});
        }
    }
    std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) {
        return std::tie(b.peak_bytes, b.length, a.turn) < std::tie(a.peak_bytes, a.length, b.turn);
    });
    std::vector<std::uint32_t> order;
    order.reserve(keys.size());
    for (const Key& key : keys) {
        order.push_back(key.buffer);
    }
    return order;
}

// Another order with the same result. A place depends only on earlier buffers that live at the same
// time, so buffers without a common moment may change their order. Buffers within one stretch of
// time come together, because placing them touches the same memory. They wait until a buffer
// crosses the stretch's border.
std::vector<std::uint32_t> by_stretch(const std::vector<std::uint32_t>& order,
                                      const MomentTable& table) {
    constexpr std::uint32_t kStretch = 512;  // moments
    std::vector<std::vector<std::uint32_t>> waiting(table.count / kStretch + 1);
    std::vector<std::uint32_t> result;
    result.reserve(order.size());
    const auto append = [&result](std::vector<std::uint32_t>* buffers) {
        result.insert(result.end(), buffers->begin(), buffers->end());
        buffers->clear();
    };
    for (const std::uint32_t buffer : order) {
        const Moments moments = table.of[buffer];
        const std::uint32_t first = moments.begin / kStretch;
        const std::uint32_t last = (moments.end - 1) / kStretch;
        if (first == last) {
            waiting[first].push_back(buffer);
            continue;
        }
        for (std::uint32_t stretch = first; stretch <= last; ++stretch) {
            append(&waiting[stretch]);
        }
        result.push_back(buffer);
    }
    for (std::vector<std::uint32_t>& buffers : waiting) {
        append(&buffers);
    }
    return result;
}

}  // namespace

std::vector<std::uint32_t> order_by_peak(std::span<const Lifetime> lifetimes,
                                         std::span<const Turn> turns) {
    return order_by_peak(lifetimes, turns, moments_of(lifetimes, turns));
}

std::optional<std::uint64_t> place_peak_first(std::span<const Lifetime> lifetimes,
                                              std::span<const Turn> turns,
                                              std::vector<std::uint64_t>* offsets,
                                              std::optional<std::uint64_t> work,
                                              std::uint64_t below_bytes) {
    const std::uint64_t most_work =
        work.value_or(kPeakFirstWork + kPeakFirstWorkPerBuffer * (turns.size() / 2));
    const MomentTable table = moments_of(lifetimes, turns);
    Occupancy occupancy(table.count, turns.size() / 2);
    offsets->assign(lifetimes.size(), 0);
    std::uint64_t height = 0;
    for (const std::uint32_t buffer : by_stretch(order_by_peak(lifetimes, turns, table), table)) {
        if (occupancy.work() > most_work) {
            return std::nullopt;
        }
        const std::uint64_t size_bytes = lifetimes[buffer].size_bytes;
        const std::uint64_t offset = occupancy.lowest(table.of[buffer], size_bytes);
        occupancy.take(table.of[buffer], offset, size_bytes);
        (*offsets)[buffer] = offset;
        height = std::max(height, offset + size_bytes);
        if (height >= below_bytes) {
            return std::nullopt;
        }
    }
    return height;
}

}  // namespace fragtrace::analyzer
