// Iterations of a program that marks none: the stack that begins each of them, found from the
// recurring sequence of stacks.
#pragma once

#include "analyzer/analysis/iterations/requests.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace fragtrace::analyzer {

// How well stretches of requests repeat each other.
struct MatchRate {
    std::uint64_t requests = 0;  // in stretches
    std::uint64_t matched = 0;   // of them, such as occur in the stretch before or after as well
    std::size_t stretches = 0;
    std::uint64_t last_requests = 0;  // of the last stretch, which the record may cut short
    std::uint64_t last_matched = 0;   // of them, such as occur in the stretch before

    // Of two stretches the last one's: what it did not come to says nothing about the first.
    [[nodiscard]] double rate() const {
        const std::uint64_t all = stretches == 2 ? last_requests : requests;
        const std::uint64_t same = stretches == 2 ? last_matched : matched;
        return all == 0 ? 0 : static_cast<double>(same) / static_cast<double>(all);
    }
};

// Stretches begin where `starts` has an entry: positions in `keys`, ascending; the last one goes on
// to the end. `key_count`: all keys are less.
MatchRate match_rate(const std::vector<std::uint32_t>& keys,
                     std::uint32_t key_count,
                     const std::vector<std::uint32_t>& starts);

// The stack whose requests begin the iterations; none where nothing recurs well enough.
// docs/metrics.md, Iterations, has the rules.
std::optional<std::uint32_t> find_anchor(const Timeline& timeline, const Requests& requests);

}  // namespace fragtrace::analyzer
