// Why a request failed or needed a retry: the first constraint whose removal lets the same pool
// serve it. docs/metrics.md describes the ladder and its rungs. No rung names a remedy.
//
// Rungs are cumulative: each one is tried with all earlier ones removed too.
#pragma once

#include "analyzer/analysis/verdict/free_places.h"
#include "analyzer/pools/pool.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

// False: the size of the card is not known, so `bytes` were counted from kUnlimitedBytes.
inline bool is_of_known_card(std::uint64_t bytes) {
    return bytes < kUnlimitedBytes / 2;
}

struct VerdictStep {
    std::string_view id;            // "pending", "releasable", ...
    std::uint64_t frees_bytes = 0;  // bytes that this rung frees in addition to earlier rungs
    std::uint64_t page_bytes = 0;   // "stitchable": the page size tried
    bool serves = false;
};

struct Verdict {
    std::string_view id = "genuine";
    // "program": no pool was recorded; "library": a driver request outside the pool.
    std::string_view requester = "pool";
    std::uint64_t page_bytes = 0;    // of the serving rung, 0 = not about pages
    std::vector<VerdictStep> steps;  // up to and including the rung that serves the request
    // Ids of other rungs that would be enough alone. Only rungs that a pool can carry out are
    // tried.
    std::vector<std::string_view> also_served_by;
    // For "stream_bound" by stream, for "other_pool" by pool: free memory at each place, with
    // earlier rungs applied.
    std::optional<FreePlaces> places;

    // State just before the request (retry), or after the failed retry (out of memory).
    std::uint64_t requested_bytes = 0;
    std::uint64_t rounded_bytes = 0;
    std::uint64_t free_bytes = 0;          // free inside the pool
    std::uint64_t largest_free_bytes = 0;  // largest free block that this request may use
    std::uint64_t largest_hole_bytes = 0;  // largest free block anywhere in the pool
    // If the card's size is not known, counted from kUnlimitedBytes.
    std::uint64_t device_free_bytes = 0;
    std::uint64_t allocated_bytes = 0;
    std::uint64_t active_bytes = 0;
    std::uint64_t reserved_bytes = 0;

    [[nodiscard]] bool device_free_known() const { return is_of_known_card(device_free_bytes); }

    // True for "out of memory despite free memory": all verdicts but these four.
    [[nodiscard]] bool despite_free_memory() const {
        return id != "genuine" && id != "limit" && id != "outside_pool" && id != "unexplained";
    }

    // Bytes by which the request was larger than all free memory; 0 = enough was free, or unknown.
    [[nodiscard]] std::uint64_t missing_bytes() const {
        const std::uint64_t asked = std::max(requested_bytes, rounded_bytes);
        const std::uint64_t free = free_bytes + device_free_bytes;
        return despite_free_memory() || asked <= free ? 0 : asked - free;
    }
};

// `state` is the pool right after its own releases and retry have failed (out of memory), or right
// before them (retry). It is cloned, not changed. `others_bytes` is memory of the card that others
// could free: libraries and other processes, not the program's own context. `waited_for_bytes` is
// memory that was freed and pending before the request, and that the failed retry made available.
// If the state already serves the request, no rung is tried and the verdict is "unexplained".
Verdict judge(Pool& state,
              const Request& request,
              std::uint64_t others_bytes,
              std::uint64_t waited_for_bytes = 0);

// Describes only the state, without a verdict; largest_free_bytes stays 0.
Verdict describe_state(Pool& state, std::uint64_t requested_bytes);

}  // namespace fragtrace::analyzer
