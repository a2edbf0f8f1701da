#include "analyzer/plan/lifetimes.h"

#include <algorithm>

namespace fragtrace::analyzer {

std::vector<Turn> turns_of(std::span<const Lifetime> lifetimes) {
    std::vector<Turn> turns;
    turns.reserve(2 * lifetimes.size());
    for (std::uint32_t i = 0; i < lifetimes.size(); ++i) {
        if (lifetimes[i].begin < lifetimes[i].end && lifetimes[i].size_bytes != 0) {
            turns.push_back({i, true});
            turns.push_back({i, false});
        }
    }
    const auto time = [lifetimes](const Turn& turn) {
        return turn.begins ? lifetimes[turn.buffer].begin : lifetimes[turn.buffer].end;
    };
    std::stable_sort(turns.begin(), turns.end(), [&time](const Turn& a, const Turn& b) {
        return time(a) != time(b) ? time(a) < time(b) : a.begins < b.begins;
    });
    return turns;
}

MomentTable moments_of(std::span<const Lifetime> lifetimes, std::span<const Turn> turns) {
    MomentTable table;
    table.of.resize(lifetimes.size());
    bool grew = false;
    for (const Turn& turn : turns) {
        if (turn.begins) {
            table.of[turn.buffer].begin = table.count;
        } else {
            table.count += grew ? 1 : 0;
            table.of[turn.buffer].end = table.count;
        }
        grew = turn.begins;
    }
    return table;
}

std::uint64_t load_bytes(std::span<const Lifetime> lifetimes) {
    std::uint64_t live = 0;
    std::uint64_t most = 0;
    for (const Turn& turn : turns_of(lifetimes)) {
        const std::uint64_t size_bytes = lifetimes[turn.buffer].size_bytes;
        live += turn.begins ? size_bytes : -size_bytes;
        most = std::max(most, live);
    }
    return most;
}

std::uint64_t height_bytes(std::span<const Lifetime> lifetimes,
                           const std::vector<std::uint64_t>& offsets) {
    std::uint64_t height = 0;
    for (std::size_t i = 0; i < lifetimes.size(); ++i) {
        if (lifetimes[i].begin < lifetimes[i].end) {
            height = std::max(height, offsets[i] + lifetimes[i].size_bytes);
        }
    }
    return height;
}

bool Overlaps::find(std::span<const Lifetime> lifetimes, std::size_t max_pairs) {
    const std::vector<Turn> turns = turns_of(lifetimes);
    std::vector<std::uint32_t> live;
    std::vector<std::uint32_t> place(lifetimes.size());  // in `live`
    std::size_t pairs = 0;
    for (const Turn& turn : turns) {
        pairs += turn.begins ? live.size() : 0;
        live.resize(turn.begins ? live.size() + 1 : live.size() - 1);
    }
    first_.assign(lifetimes.size() + 1, 0);
    neighbours_.clear();
    if (pairs > max_pairs) {
        return false;
    }
    // Twice the same sweep: count, then fill.
    neighbours_.resize(2 * pairs);
    for (const bool fill : {false, true}) {
        live.clear();
        for (const Turn& turn : turns) {
            if (!turn.begins) {
                live[place[turn.buffer]] = live.back();
                place[live.back()] = place[turn.buffer];
                live.pop_back();
                continue;
            }
            for (const std::uint32_t other : live) {
                if (fill) {
                    neighbours_[first_[turn.buffer]++] = other;
                    neighbours_[first_[other]++] = turn.buffer;
                } else {
                    ++first_[turn.buffer + 1];
                    ++first_[other + 1];
                }
            }
            place[turn.buffer] = static_cast<std::uint32_t>(live.size());
            live.push_back(turn.buffer);
        }
        if (!fill) {
            for (std::size_t i = 1; i < first_.size(); ++i) {
                first_[i] += first_[i - 1];
            }
        }
    }
    // Filling has moved every begin to the next one's.
    for (std::size_t i = first_.size() - 1; i > 0; --i) {
        first_[i] = first_[i - 1];
    }
    first_[0] = 0;
    return true;
}

}  // namespace fragtrace::analyzer
