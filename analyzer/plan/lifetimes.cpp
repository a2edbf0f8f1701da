#include "analyzer/plan/lifetimes.h"

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

bool takes_part(const Lifetime& buffer) {
    return buffer.begin < buffer.end && buffer.size_bytes != 0;
}

// Counting sort in linear time. Requires buffers sorted by begin, at times that are at most
// kMostTimes per buffer.
std::vector<Turn> turns_by_counting(std::span<const Lifetime> lifetimes) {
    const std::uint64_t last_begin = lifetimes.back().begin;
    std::vector<std::uint32_t> next(last_begin + 2);  // per time: number of ends, then position
    std::vector<std::uint32_t> late;                  // buffers that end after the last begin
    std::size_t count = 0;
    for (std::uint32_t i = 0; i < lifetimes.size(); ++i) {
        if (!takes_part(lifetimes[i])) {
            continue;
        }
        ++count;
        if (lifetimes[i].end > last_begin) {
            late.push_back(i);
        } else {
            ++next[lifetimes[i].end + 1];
        }
    }
    for (std::size_t time = 1; time < next.size(); ++time) {
        next[time] += next[time - 1];
    }
    std::vector<std::uint32_t> ended(count - late.size());
    for (std::uint32_t i = 0; i < lifetimes.size(); ++i) {
        if (takes_part(lifetimes[i]) && lifetimes[i].end <= last_begin) {
            ended[next[lifetimes[i].end]++] = i;
        }
    }
    std::vector<Turn> turns;
    turns.reserve(2 * count);
    std::size_t at = 0;
    for (std::uint32_t i = 0; i < lifetimes.size(); ++i) {
        if (takes_part(lifetimes[i])) {
            for (; at < ended.size() && lifetimes[ended[at]].end <= lifetimes[i].begin; ++at) {
                turns.push_back({ended[at], false});
            }
            turns.push_back({i, true});
        }
    }
    for (; at < ended.size(); ++at) {
        turns.push_back({ended[at], false});
    }
    std::stable_sort(late.begin(), late.end(), [lifetimes](std::uint32_t a, std::uint32_t b) {
        return lifetimes[a].end < lifetimes[b].end;
    });
    for (const std::uint32_t buffer : late) {
        turns.push_back({buffer, false});
    }
    return turns;
}

bool can_be_counted(std::span<const Lifetime> lifetimes) {
    constexpr std::uint64_t kMostTimes = 4;  // per buffer
    return !lifetimes.empty() && lifetimes.back().begin < kMostTimes * lifetimes.size() &&
           std::is_sorted(lifetimes.begin(),
                          lifetimes.end(),
                          [](const Lifetime& a, const Lifetime& b) { return a.begin < b.begin; });
}

}  // namespace

std::vector<Turn> turns_of(std::span<const Lifetime> lifetimes) {
    if (can_be_counted(lifetimes)) {
        return turns_by_counting(lifetimes);
    }
    std::vector<Turn> turns;
    turns.reserve(2 * lifetimes.size());
    for (std::uint32_t i = 0; i < lifetimes.size(); ++i) {
        if (takes_part(lifetimes[i])) {
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
    return load_bytes(lifetimes, turns_of(lifetimes));
}

std::uint64_t load_bytes(std::span<const Lifetime> lifetimes, std::span<const Turn> turns) {
    std::uint64_t live = 0;
    std::uint64_t most = 0;
    for (const Turn& turn : turns) {
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

bool Overlaps::find(std::span<const Lifetime> lifetimes,
                    std::span<const Turn> turns,
                    std::size_t max_pairs) {
    std::size_t pairs = 0;
    std::size_t live_now = 0;
    for (const Turn& turn : turns) {
        pairs += turn.begins ? live_now : 0;
        live_now += turn.begins ? 1 : std::size_t{0} - 1;
    }
    first_.clear();
    neighbours_.clear();
    if (pairs > max_pairs) {
        return false;
    }
    first_.resize(lifetimes.size() + 1);
    std::vector<std::uint32_t> live;
    std::vector<std::uint32_t> place(lifetimes.size());  // position in `live`
    // Run the same sweep twice: first count, then fill.
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
    // Filling advanced every begin to the begin of the next list: shift them back.
    for (std::size_t i = first_.size() - 1; i > 0; --i) {
        first_[i] = first_[i - 1];
    }
    first_[0] = 0;
    return true;
}

}  // namespace fragtrace::analyzer
