#include "analyzer/analysis/whatif/iteration_sizes.h"

#include <algorithm>
#include <cmath>

namespace fragtrace::analyzer {
namespace {

// The value with the greatest count.
template <typename Value>
Value most_counted(const std::map<Value, std::uint64_t>& counts) {
    return std::max_element(counts.begin(),
                            counts.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; })
        ->first;
}

std::uint64_t scaled(std::uint64_t bytes, double ratio) {
    const double now = std::round(static_cast<double>(bytes) * ratio);
    return static_cast<std::uint64_t>(std::clamp(now, 1.0, 0x1p48));
}

}  // namespace

SizesThen IterationSizes::proportions(const SizesThen& then) {
    SizesThen against_first;
    for (const std::uint64_t size : then) {
        const double part = static_cast<double>(size) / static_cast<double>(then.front());
        against_first.push_back(static_cast<std::uint64_t>(std::min(part * 0x1p20 + 0.5, 0x1p62)));
    }
    return against_first;
}

void IterationSizes::know(const SizesThen& then, std::uint64_t now_bytes) {
    if (then.empty() || then.front() == 0) {
        return;
    }
    ++now_[then][now_bytes];
    ratios_[proportions(then)]
           [static_cast<double>(now_bytes) / static_cast<double>(then.front())] += then.front();
}

std::uint64_t IterationSizes::of(const SizesThen& then, double scale) const {
    const std::uint64_t before = then.empty() ? 0 : then.front();
    if (const auto same = now_.find(then); same != now_.end()) {
        return most_counted(same->second);
    }
    const bool constant = std::all_of(
        then.begin(), then.end(), [before](std::uint64_t size) { return size == before; });
    if (constant && lasting_.contains(before)) {
        return before;
    }
    if (before != 0) {
        if (const auto alike = ratios_.find(proportions(then)); alike != ratios_.end()) {
            return scaled(before, most_counted(alike->second));
        }
    }
    return constant && then.size() > 1 ? before : scaled(before, scale);
}

}  // namespace fragtrace::analyzer
