// Finds iterations of a program that marks none, from the recurring sequence of request stacks.
// Each iteration begins with a request of one stack, the anchor.
#pragma once

#include "analyzer/analysis/iterations/requests.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace fragtrace::analyzer {

// How well stretches of requests repeat each other.
struct MatchRate {
    std::uint64_t requests = 0;  // all requests within stretches
    std::uint64_t matched = 0;   // how many of them also occur in the stretch before or after
    std::size_t stretches = 0;
    // Requests of the last stretch, which the end of the recording may cut short.
    std::uint64_t last_requests = 0;
    std::uint64_t last_matched = 0;  // how many of them also occur in the stretch before

    // If there are two stretches, only the second one counts. If it is cut short, the first stretch
    // has requests that the second never reached.
    [[nodiscard]] double rate() const {
        const std::uint64_t all = stretches == 2 ? last_requests : requests;
        const std::uint64_t same = stretches == 2 ? last_matched : matched;
        return all == 0 ? 0 : static_cast<double>(same) / static_cast<double>(all);
    }
};

// A stretch begins at each position in `starts` (ascending positions in `keys`). The last one lasts
// to the end. All keys are less than `key_count`.
MatchRate match_rate(const std::vector<std::uint32_t>& keys,
                     std::uint32_t key_count,
                     const std::vector<std::uint32_t>& starts);

// The stack whose requests begin the iterations. nullopt if nothing recurs well enough.
// docs/metrics.md, Iterations, has the rules.
std::optional<std::uint32_t> find_anchor(const Timeline& timeline, const Requests& requests);

}  // namespace fragtrace::analyzer
