// How small a card may be, per setting. Capacities are scanned, not bisected, because a larger card
// can fail where a smaller one fits (docs/metrics.md).
#pragma once

#include "analyzer/analysis/whatif/whatif_row.h"
#include "analyzer/support/result.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct CapacityScan {
    Candidate candidate;  // capacity_bytes is not used
    // This capacity, and all larger ones, should fit. It is peak reserved on an unlimited card,
    // plus room for requests of libraries outside the pool. If the program limits itself to a part
    // of the card, that part must be large enough. It is tried like the others.
    std::uint64_t enough_bytes = 0;
    // Smallest tried capacity that fits, bytes for the pool; 0 = none fits.
    std::uint64_t least_fits = 0;
    std::uint64_t largest_fails = 0;  // largest tried capacity that fails; 0 = all tried ones fit
    std::uint64_t step_bytes = 0;     // distance between tried capacities around these two
    std::uint64_t tried = 0;
    // Smallest card in common use that fits; 0 = none of them does.
    std::uint64_t least_card_bytes = 0;
    std::vector<std::uint64_t> failing_cards;  // cards larger than that on which the run fails
    RowClass row_class = RowClass::kExact;
    BoundKind bound_kind = BoundKind::kNone;
    std::string class_reason;
};

// Signs that a program adapts to free memory. Its rows on other cards are then estimates.
struct Adaptation {
    EventIndex asks = kNoEvent;  // the first event that queries free memory
    std::uint64_t asked = 0;
    EventIndex goes_on = kNoEvent;  // the first out-of-memory after which the program continued
    bool ends_with_oom = false;     // nothing was recorded after the last out-of-memory

    [[nodiscard]] bool adapts() const { return asks != kNoEvent || goes_on != kNoEvent; }
};

Adaptation find_adaptation(const ReplayScript& script);

// `least_bytes`: below this nothing fits (peak requested). `others_bytes`: memory that context and
// other holders take on every card.
Result<std::vector<CapacityScan>> scan_capacities(
    const ReplayScript& script,
    const std::vector<Candidate>& settings,
    const SweepContext& context,
    std::uint64_t least_bytes,
    std::uint64_t others_bytes,
    const std::function<void(std::size_t, std::size_t)>& progress = {});

}  // namespace fragtrace::analyzer
