// Why a request failed (or needed a retry): the first relaxation under which the same pool serves
// it. The ladder, and what each rung means, is docs/metrics.md; no rung names a remedy.
//
// Rungs are cumulative: each is tried on top of those before it.
#pragma once

#include "analyzer/analysis/verdict/free_places.h"
#include "analyzer/pools/pool.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

struct VerdictStep {
    std::string_view id;            // "pending", "releasable", ...
    std::uint64_t frees_bytes = 0;  // what this rung makes available beyond those before it
    std::uint64_t page_bytes = 0;   // "stitchable": the page size tried
    bool serves = false;
};

struct Verdict {
    std::string_view id = "genuine";
    std::string_view requester = "pool";  // "program": no pool was recorded; "library": beside it
    std::uint64_t page_bytes = 0;         // of the serving rung, 0 = not about pages
    std::vector<VerdictStep> steps;       // up to and including the one that serves
    // Ids of the other rungs that would do alone, on the state as it is; of those that a pool can
    // be asked to make.
    std::vector<std::string_view> also_served_by;
    // Of "stream_bound" by stream, of "other_pool" by pool: what was free where, with what the
    // rungs before it made free.
    std::optional<FreePlaces> places;

    // State just before the request (retry) or after the failed retry (out of memory).
    std::uint64_t requested_bytes = 0;
    std::uint64_t rounded_bytes = 0;
    std::uint64_t free_bytes = 0;          // free inside the pool
    std::uint64_t largest_free_bytes = 0;  // usable by this request
    std::uint64_t largest_hole_bytes = 0;  // anywhere in the pool
    std::uint64_t device_free_bytes = 0;   // where the card's size is not known: of kUnlimitedBytes
    std::uint64_t allocated_bytes = 0;
    std::uint64_t active_bytes = 0;
    std::uint64_t reserved_bytes = 0;

    [[nodiscard]] bool device_free_known() const { return device_free_bytes < kUnlimitedBytes / 2; }

    // "Out of memory despite free memory": any verdict but these four.
    [[nodiscard]] bool despite_free_memory() const {
        return id != "genuine" && id != "limit" && id != "outside_pool" && id != "unexplained";
    }
};

// `state` is the pool right after its own releases and retry have failed (out of memory), or
// right before them (retry). It is cloned, not changed. `others_bytes` is what
// others hold of the card and could give back: libraries, other processes, not the program's own
// context. `waited_for_bytes` is what was freed and pending when the request came: after a failed
// retry it no longer is. A state that would serve the request as it is gets no rung, and is
// "unexplained".
Verdict judge(Pool& state,
              const Request& request,
              std::uint64_t others_bytes,
              std::uint64_t waited_for_bytes = 0);

// The state alone, no verdict; largest_free_bytes stays 0.
Verdict describe_state(Pool& state, std::uint64_t requested_bytes);

}  // namespace fragtrace::analyzer
