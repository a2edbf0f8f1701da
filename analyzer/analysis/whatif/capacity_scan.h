// How small a card may be, per setting: scanned, as feasibility is not monotone in capacity
// (docs/metrics.md).
#pragma once

#include "analyzer/analysis/whatif/whatif_row.h"
#include "analyzer/support/result.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct CapacityScan {
    Candidate candidate;  // capacity_bytes has no meaning
    // Fits, and above: peak reserved when nothing ever runs out, and room for what libraries ask
    // beside it; where the program limits itself to a part of the card, as much as makes that part
    // enough. Tried like the others.
    std::uint64_t enough_bytes = 0;
    std::uint64_t least_fits = 0;     // of the capacities tried, bytes for the pool; 0 = none fits
    std::uint64_t largest_fails = 0;  // below `enough_bytes`; 0 = all tried fit
    std::uint64_t step_bytes = 0;     // distance of the capacities tried around these
    std::uint64_t tried = 0;
    std::uint64_t least_card_bytes = 0;  // of the cards people have; 0 = none of them is enough
    std::vector<std::uint64_t> failing_cards;  // larger than that, and the run fails on them
    RowClass row_class = RowClass::kExact;
    BoundKind bound_kind = BoundKind::kNone;
    std::string class_reason;
};

// What a program that adapts to free memory did: its rows on other cards are estimates.
struct Adaptation {
    EventIndex asks = kNoEvent;  // asks first how much memory is free
    std::uint64_t asked = 0;
    EventIndex goes_on = kNoEvent;  // ran out of memory first, and went on
    bool ends_with_oom = false;     // nothing was recorded after it

    [[nodiscard]] bool adapts() const { return asks != kNoEvent || goes_on != kNoEvent; }
};

Adaptation find_adaptation(const ReplayScript& script);

// `least_bytes`: below this nothing fits (peak requested). `others_bytes`: what context and others
// have of every card.
Result<std::vector<CapacityScan>> scan_capacities(
    const ReplayScript& script,
    const std::vector<Candidate>& settings,
    const SweepContext& context,
    std::uint64_t least_bytes,
    std::uint64_t others_bytes,
    const std::function<void(std::size_t, std::size_t)>& progress = {});

}  // namespace fragtrace::analyzer
