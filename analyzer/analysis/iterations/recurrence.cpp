#include "analyzer/analysis/iterations/recurrence.h"

#include "analyzer/analysis/iterations/common_caller.h"
#include "analyzer/analysis/iterations/requests.h"

#include <algorithm>
#include <map>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// Numbers of occurrences that are examined, and stacks examined for each number.
constexpr std::size_t kCounts = 12;
constexpr std::size_t kStacksOfCount = 4;
constexpr double kLeastRate = 0.75;
constexpr double kLeastRateOfTwo = 0.9;  // required rate if there is only one repetition
// An anchor must reach this part of the best one's matches. The one with the shortest iterations is
// chosen.
constexpr double kAsGood = 0.8;
constexpr std::size_t kLeastRequests = 2;  // median number of requests in an iteration, at least

// Stacks support each other if they occur equally often, or a few times less because iterations
// failed. A stack that recurs by chance has little support.
constexpr std::size_t kLeastSupport = 4;  // required support: 1 / this of the largest support
constexpr std::uint32_t kFailures = 2;

struct Anchor {
    std::uint32_t stack = 0;
    std::uint64_t matched = 0;
    std::size_t iterations = 0;
    std::size_t support = 0;
};

// The positions of each stack in the sample.
class Occurrences {
  public:
    Occurrences(const std::vector<std::uint32_t>& stacks, std::uint32_t count)
        : first_(count + 1, 0), positions_(stacks.size()) {
        for (const std::uint32_t stack : stacks) {
            ++first_[stack + 1];
        }
        for (std::uint32_t i = 0; i < count; ++i) {
            first_[i + 1] += first_[i];
        }
        std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
        for (std::uint32_t at = 0; at < stacks.size(); ++at) {
            positions_[next[stacks[at]]++] = at;
        }
    }

    [[nodiscard]] std::vector<std::uint32_t> of(std::uint32_t stack) const {
        return {positions_.begin() + first_[stack], positions_.begin() + first_[stack + 1]};
    }

    [[nodiscard]] std::uint32_t count(std::uint32_t stack) const {
        return first_[stack + 1] - first_[stack];
    }

    [[nodiscard]] std::uint32_t first(std::uint32_t stack) const {
        return positions_[first_[stack]];
    }

  private:
    std::vector<std::uint32_t> first_;  // index into positions_, per stack
    std::vector<std::uint32_t> positions_;
};

struct CountClass {
    std::uint32_t count = 0;
    std::vector<std::uint32_t> stacks;  // in the order of their first occurrence
    std::size_t support = 0;
};

// Groups stacks that occur equally often. Groups with most support come first.
std::vector<CountClass> by_count(const Occurrences& occurrences, std::uint32_t stack_count) {
    std::map<std::uint32_t, std::vector<std::uint32_t>> classes;
    for (std::uint32_t stack = 0; stack < stack_count; ++stack) {
        if (occurrences.count(stack) != 0) {
            classes[occurrences.count(stack)].push_back(stack);
        }
    }
    std::vector<CountClass> result;
    for (const auto& [count, stacks] : classes) {
        CountClass alike{count, stacks, 0};
        for (std::uint32_t less = 0; less <= kFailures && less + 1 < count; ++less) {
            const auto beside = classes.find(count - less);
            alike.support += beside == classes.end() ? 0 : beside->second.size();
        }
        std::sort(alike.stacks.begin(), alike.stacks.end(), [&](std::uint32_t a, std::uint32_t b) {
            return occurrences.first(a) < occurrences.first(b);
        });
        if (count >= 2) {
            result.push_back(std::move(alike));
        }
    }
    std::stable_sort(result.begin(), result.end(), [](const CountClass& a, const CountClass& b) {
        return a.support > b.support;
    });
    result.resize(std::min(result.size(), kCounts));
    return result;
}

// True if each occurrence of `earlier` is followed by one of `later` before `earlier` occurs again.
bool take_turns(const std::vector<std::uint32_t>& earlier,
                const std::vector<std::uint32_t>& later) {
    for (std::size_t i = 0; i < earlier.size(); ++i) {
        if (earlier[i] > later[i] || (i + 1 < earlier.size() && later[i] > earlier[i + 1])) {
            return false;
        }
    }
    return true;
}

std::size_t median_length(const std::vector<std::uint32_t>& starts) {
    std::vector<std::size_t> lengths;
    for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
        lengths.push_back(starts[i + 1] - starts[i]);
    }
    const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
    std::nth_element(lengths.begin(), middle, lengths.end());
    return *middle;
}

// Considers anchors that repeat nearly as well as the best and have support. Chooses those with the
// most, and so shortest, iterations; a few fewer are accepted, since iterations may fail. Among
// these, the one that repeats best is returned. nullptr if there is none.
const Anchor* best_anchor(const std::vector<Anchor>& anchors) {
    std::uint64_t matched = 0;
    std::size_t support = 0;
    for (const Anchor& anchor : anchors) {
        matched = std::max(matched, anchor.matched);
        support = std::max(support, anchor.support);
    }
    const auto serves = [&](const Anchor& anchor) {
        return static_cast<double>(anchor.matched) >= static_cast<double>(matched) * kAsGood &&
               anchor.support * kLeastSupport >= support;
    };
    std::size_t most = 0;
    for (const Anchor& anchor : anchors) {
        most = serves(anchor) ? std::max(most, anchor.iterations) : most;
    }
    const Anchor* best = nullptr;
    for (const Anchor& anchor : anchors) {
        if (serves(anchor) && anchor.iterations + kFailures >= most &&
            (best == nullptr || anchor.matched > best->matched)) {
            best = &anchor;
        }
    }
    return best;
}

}  // namespace

MatchRate match_rate(const std::vector<std::uint32_t>& keys,
                     std::uint32_t key_count,
                     const std::vector<std::uint32_t>& starts) {
    constexpr std::uint32_t kNever = 0xffffffffu;

    struct Seen {
        std::uint32_t stretch = kNever;
        std::uint32_t alone = 0;  // requests of that stretch that have no match yet
    };

    MatchRate result;
    if (starts.empty()) {
        return result;
    }
    std::vector<Seen> seen(key_count);
    result.stretches = starts.size();
    std::uint32_t stretch = 0;
    for (std::uint32_t at = starts.front(); at < keys.size(); ++at) {
        while (stretch + 1 < starts.size() && starts[stretch + 1] <= at) {
            ++stretch;
        }
        Seen& key = seen[keys[at]];
        const bool last = stretch + 1 == starts.size();
        ++result.requests;
        result.last_requests += last ? 1 : 0;
        result.last_matched +=
            last && (key.stretch == stretch ? key.alone == 0
                                            : key.stretch != kNever && key.stretch + 1 == stretch)
                ? 1
                : 0;
        if (key.stretch == stretch) {
            if (key.alone == 0) {
                ++result.matched;
            } else {
                ++key.alone;
            }
        } else if (key.stretch != kNever && key.stretch + 1 == stretch) {
            result.matched += key.alone + 1;
            key = {stretch, 0};
        } else {
            key = {stretch, 1};
        }
    }
    return result;
}

std::optional<std::uint32_t> find_anchor(const Timeline& timeline, const Requests& requests) {
    const std::size_t left_out =
        requests.size() > kMostRequests ? requests.size() - kMostRequests : 0;
    const std::vector<std::uint32_t> stacks(
        requests.stacks.begin() + static_cast<std::ptrdiff_t>(left_out), requests.stacks.end());
    const auto stack_count = static_cast<std::uint32_t>(requests.origins.size());
    const Occurrences occurrences(stacks, stack_count);
    std::vector<Anchor> anchors;
    const auto try_stack = [&](std::uint32_t stack, std::size_t support) {
        const std::vector<std::uint32_t> starts = occurrences.of(stack);
        const MatchRate match = match_rate(stacks, stack_count, starts);
        if (match.rate() < (starts.size() == 2 ? kLeastRateOfTwo : kLeastRate) ||
            median_length(starts) < kLeastRequests ||
            lies_inside_an_operation(timeline, requests, left_out, starts)) {
            return;
        }
        anchors.push_back({stack, match.matched, starts.size(), support});
    };
    for (const CountClass& alike : by_count(occurrences, stack_count)) {
        const std::size_t tried = std::min(kStacksOfCount, alike.stacks.size());
        for (std::size_t i = 0; i < tried; ++i) {
            try_stack(alike.stacks[i * alike.stacks.size() / tried], alike.support);
        }
    }
    const Anchor* best = best_anchor(anchors);
    if (best == nullptr) {
        return std::nullopt;
    }
    // An iteration begins, by definition, with its first request in the recording. So an earlier
    // stack that alternates with the best anchor replaces it.
    const std::vector<std::uint32_t> starts = occurrences.of(best->stack);
    std::uint32_t first = best->stack;
    for (std::uint32_t stack = 0; stack < stack_count; ++stack) {
        if (occurrences.count(stack) == starts.size() &&
            occurrences.first(stack) < occurrences.first(best->stack) &&
            take_turns(occurrences.of(stack), starts)) {
            first = occurrences.first(stack) < occurrences.first(first) ? stack : first;
        }
    }
    return first;
}

}  // namespace fragtrace::analyzer
