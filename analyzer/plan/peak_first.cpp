#include "analyzer/plan/peak_first.h"

#include "analyzer/plan/occupancy.h"

#include <algorithm>
#include <bit>
#include <tuple>

namespace fragtrace::analyzer {
namespace {

// Bytes live at each moment, and the most of any span of moments: a tree of maxima.
class LiveBytes {
  public:
    LiveBytes(std::span<const Lifetime> lifetimes,
              std::span<const Turn> turns,
              const MomentTable& table)
        : leaves_(std::bit_ceil(std::max<std::size_t>(1, table.count))), most_(2 * leaves_) {
        std::uint64_t live = 0;
        std::size_t moment = leaves_;
        bool grew = false;
        for (const Turn& turn : turns) {
            if (turn.begins) {
                live += lifetimes[turn.buffer].size_bytes;
            } else {
                if (grew) {
                    most_[moment++] = live;
                }
                live -= lifetimes[turn.buffer].size_bytes;
            }
            grew = turn.begins;
        }
        for (std::size_t node = leaves_ - 1; node > 0; --node) {
            most_[node] = std::max(most_[2 * node], most_[2 * node + 1]);
        }
    }

    [[nodiscard]] std::uint64_t most(Moments moments) const {
        std::uint64_t most = 0;
        std::size_t begin = leaves_ + moments.begin;
        std::size_t end = leaves_ + moments.end;
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
    std::size_t leaves_;
    std::vector<std::uint64_t> most_;
};

}  // namespace

std::vector<std::uint32_t> order_by_peak(std::span<const Lifetime> lifetimes,
                                         std::span<const Turn> turns) {
    const MomentTable table = moments_of(lifetimes, turns);
    const LiveBytes live(lifetimes, turns, table);

    struct Key {
        std::uint64_t peak_bytes;
        std::uint64_t length;
        std::uint32_t buffer;
    };

    std::vector<Key> keys;
    keys.reserve(turns.size() / 2);
    for (const Turn& turn : turns) {
        if (turn.begins) {
            const Lifetime& life = lifetimes[turn.buffer];
            keys.push_back({live.most(table.of[turn.buffer]), life.end - life.begin, turn.buffer});
        }
    }
    std::stable_sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) {
        return std::tie(a.peak_bytes, a.length) > std::tie(b.peak_bytes, b.length);
    });
    std::vector<std::uint32_t> order;
    order.reserve(keys.size());
    for (const Key& key : keys) {
        order.push_back(key.buffer);
    }
    return order;
}

std::optional<std::uint64_t> place_peak_first(std::span<const Lifetime> lifetimes,
                                              std::span<const Turn> turns,
                                              std::vector<std::uint64_t>* offsets,
                                              std::optional<std::uint64_t> work) {
    const std::uint64_t most_work =
        work.value_or(kPeakFirstWork + kPeakFirstWorkPerBuffer * (turns.size() / 2));
    const MomentTable table = moments_of(lifetimes, turns);
    Occupancy occupancy(table.count, turns.size() / 2);
    offsets->assign(lifetimes.size(), 0);
    std::uint64_t height = 0;
    for (const std::uint32_t buffer : order_by_peak(lifetimes, turns)) {
        if (occupancy.work() > most_work) {
            return std::nullopt;
        }
        const std::uint64_t size_bytes = lifetimes[buffer].size_bytes;
        const std::uint64_t offset = occupancy.lowest(table.of[buffer], size_bytes);
        occupancy.take(table.of[buffer], offset, size_bytes);
        (*offsets)[buffer] = offset;
        height = std::max(height, offset + size_bytes);
    }
    return height;
}

}  // namespace fragtrace::analyzer
