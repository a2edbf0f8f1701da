// Why a request failed (or needed a retry): the first relaxation under which the same pool serves
// it. The ladder, and what each rung means, is docs/metrics.md; no rung names a remedy.
//
// Rungs are cumulative: each is tried on top of those before it.
#pragma once

#include "analyzer/pools/pool.h"

#include <cstdint>
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
    std::uint64_t page_bytes = 0;    // of the serving rung, 0 = not about pages
    std::vector<VerdictStep> steps;  // up to and including the one that serves

    // State just before the request (retry) or after the failed retry (out of memory).
    std::uint64_t requested_bytes = 0;
    std::uint64_t rounded_bytes = 0;
    std::uint64_t free_bytes = 0;          // free inside the pool
    std::uint64_t largest_free_bytes = 0;  // usable by this request
    std::uint64_t largest_hole_bytes = 0;  // anywhere in the pool
    std::uint64_t device_free_bytes = 0;
    std::uint64_t allocated_bytes = 0;
    std::uint64_t active_bytes = 0;
    std::uint64_t reserved_bytes = 0;

    // "Out of memory despite free memory": any verdict but these three.
    [[nodiscard]] bool despite_free_memory() const {
        return id != "genuine" && id != "limit" && id != "outside_pool";
    }
};

// `state` is the pool right after its own releases and retry have failed (out of memory), or
// right before them (retry). It is cloned, not changed. `others_bytes` is what the context,
// libraries and other processes hold of the card.
Verdict judge(Pool& state, const Request& request, std::uint64_t others_bytes);

// One sentence for people: what was asked, what was free, why it was of no use.
std::string verdict_sentence(const Verdict& verdict, Outcome outcome);
// The serving rung in words ("free 2 MiB pages would have served it, ...").
std::string verdict_explanation(const Verdict& verdict);

}  // namespace fragtrace::analyzer
