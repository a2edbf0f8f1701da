#include "analyzer/plan/search_placer.h"

#include <algorithm>
#include <utility>

namespace fragtrace::analyzer {

SearchPlacer::SearchPlacer(std::span<const Lifetime> lifetimes, const Overlaps& overlaps)
    : lifetimes_(lifetimes), overlaps_(overlaps) {
    const std::vector<Turn> turns = turns_of(lifetimes);
    MomentTable table = moments_of(lifetimes, turns);
    moments_of_ = std::move(table.of);
    live_at_.resize(table.count);
    for (const Turn& turn : turns) {
        if (turn.begins) {
            buffers_.push_back(turn.buffer);
            for (std::uint32_t m = moments_of_[turn.buffer].begin; m < moments_of_[turn.buffer].end;
                 ++m) {
                live_at_[m].push_back(turn.buffer);
            }
        }
    }
    work_per_step_ = buffers_.size();
    for (const auto& moment : live_at_) {
        work_per_step_ += moment.size();
    }
}

SearchOutcome SearchPlacer::place(std::uint64_t capacity_bytes,
                                  const std::vector<std::uint32_t>& order,
                                  std::uint64_t steps,
                                  std::vector<std::uint64_t>* offsets) {
    capacity_ = capacity_bytes;
    steps_left_ = steps;
    rank_.assign(lifetimes_.size(), 0);
    for (std::uint32_t i = 0; i < order.size(); ++i) {
        rank_[order[i]] = i;
    }
    least_offset_.assign(lifetimes_.size(), 0);
    offset_.assign(lifetimes_.size(), 0);
    placed_.assign(lifetimes_.size(), 0);
    trail_.clear();
    unplaced_bytes_.assign(live_at_.size(), 0);
    for (std::size_t moment = 0; moment < live_at_.size(); ++moment) {
        for (const std::uint32_t buffer : live_at_[moment]) {
            unplaced_bytes_[moment] += lifetimes_[buffer].size_bytes;
        }
        if (unplaced_bytes_[moment] > capacity_) {
            return SearchOutcome::kImpossible;
        }
    }
    down_.clear();
    blame_.assign(lifetimes_.size(), 0);
    const SearchOutcome outcome = place_parts(buffers_, 0);
    if (outcome == SearchOutcome::kFound) {
        *offsets = offset_;
    }
    return outcome;
}

bool SearchPlacer::moment_has_room(std::uint32_t moment, std::uint64_t last_offset) const {
    if (unplaced_bytes_[moment] == 0) {
        return true;
    }
    std::uint64_t floor = ~std::uint64_t{0};
    for (const std::uint32_t buffer : live_at_[moment]) {
        if (placed_[buffer] == 0) {
            floor = std::min(floor, least_offset_[buffer]);
        }
    }
    return std::max(floor, last_offset) + unplaced_bytes_[moment] <= capacity_;
}

// `rest` are the unplaced buffers of the same part.
bool SearchPlacer::put_down(std::uint32_t buffer,
                            std::uint64_t offset,
                            const std::vector<std::uint32_t>& rest) {
    placed_[buffer] = 1;
    offset_[buffer] = offset;
    const std::uint64_t top = offset + lifetimes_[buffer].size_bytes;
    for (std::uint32_t m = moments_of_[buffer].begin; m < moments_of_[buffer].end; ++m) {
        unplaced_bytes_[m] -= lifetimes_[buffer].size_bytes;
    }
    bool fits = true;
    for (const std::uint32_t other : overlaps_.of(buffer)) {
        if (placed_[other] == 0 && least_offset_[other] < top) {
            trail_.push_back({other, least_offset_[other]});
            least_offset_[other] = top;
            if (top + lifetimes_[other].size_bytes > capacity_) {
                ++blame_[other];
                fits = false;
            }
        }
    }
    if (!fits) {
        return false;
    }
    std::uint32_t begin = moments_of_[buffer].begin;
    std::uint32_t end = moments_of_[buffer].end;
    for (const std::uint32_t other : rest) {
        begin = std::min(begin, moments_of_[other].begin);
        end = std::max(end, moments_of_[other].end);
    }
    for (std::uint32_t m = begin; m < end; ++m) {
        if (!moment_has_room(m, offset)) {
            for (const std::uint32_t other : live_at_[m]) {
                blame_[other] += placed_[other] == 0 ? 1 : 0;
            }
            return false;
        }
    }
    return true;
}

void SearchPlacer::take_back(std::uint32_t buffer, std::size_t changes) {
    while (trail_.size() > changes) {
        least_offset_[trail_.back().buffer] = trail_.back().least_offset;
        trail_.pop_back();
    }
    for (std::uint32_t m = moments_of_[buffer].begin; m < moments_of_[buffer].end; ++m) {
        unplaced_bytes_[m] += lifetimes_[buffer].size_bytes;
    }
    placed_[buffer] = 0;
}

// Divides the unplaced buffers, sorted by begin, into parts that do not overlap in time. Each part
// is searched separately.
SearchOutcome SearchPlacer::place_parts(const std::vector<std::uint32_t>& rest,
                                        std::uint64_t last_offset) {
    std::size_t done = 0;
    const std::size_t mark = down_.size();
    while (done < rest.size()) {
        std::vector<std::uint32_t> part;
        std::uint32_t end = 0;
        for (; done < rest.size() && (part.empty() || moments_of_[rest[done]].begin < end);
             ++done) {
            end = std::max(end, moments_of_[rest[done]].end);
            part.push_back(rest[done]);
        }
        const SearchOutcome outcome = place_part(part, last_offset);
        if (outcome != SearchOutcome::kFound) {
            while (down_.size() > mark) {
                take_back(down_.back().buffer, down_.back().changes);
                down_.pop_back();
            }
            return outcome;
        }
    }
    return SearchOutcome::kFound;
}

SearchOutcome SearchPlacer::place_part(const std::vector<std::uint32_t>& part,
                                       std::uint64_t last_offset) {
    // If another buffer fits entirely below this buffer, this buffer need not be placed first: the
    // ceiling excludes it.
    std::uint64_t ceiling = ~std::uint64_t{0};
    std::vector<std::uint32_t> candidates;
    for (const std::uint32_t buffer : part) {
        ceiling = std::min(
            ceiling, std::max(least_offset_[buffer], last_offset) + lifetimes_[buffer].size_bytes);
        if (least_offset_[buffer] >= last_offset) {
            candidates.push_back(buffer);
        }
    }
    std::sort(candidates.begin(), candidates.end(), [this](std::uint32_t a, std::uint32_t b) {
        return least_offset_[a] != least_offset_[b] ? least_offset_[a] < least_offset_[b]
                                                    : rank_[a] < rank_[b];
    });
    std::vector<std::uint32_t> rest;
    for (const std::uint32_t buffer : candidates) {
        const std::uint64_t offset = least_offset_[buffer];
        if (offset >= ceiling) {
            break;
        }
        if (steps_left_ == 0) {
            return SearchOutcome::kGaveUp;
        }
        --steps_left_;
        const std::size_t changes = trail_.size();
        rest.clear();
        for (const std::uint32_t other : part) {
            if (other != buffer) {
                rest.push_back(other);
            }
        }
        if (put_down(buffer, offset, rest)) {
            down_.push_back({buffer, changes});
            const SearchOutcome outcome = place_parts(rest, offset);
            if (outcome != SearchOutcome::kImpossible) {
                return outcome;
            }
            down_.pop_back();
        }
        take_back(buffer, changes);
    }
    return SearchOutcome::kImpossible;
}

}  // namespace fragtrace::analyzer
