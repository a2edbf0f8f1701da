// What each popular advice did on this trace: a line each, from rows that were replayed.
#pragma once

#include "analyzer/analysis/whatif/whatif_row.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

struct Advice {
    enum class Effect : std::uint8_t {
        // The first five are those of change_of (ranking.h).
        kHelped,
        kHelpedALittle,
        kNothing,
        kWorseALittle,
        kWorse,
        kInForce,      // the recorded run had it
        kNotUsable,    // in this program; what it would have done is in `row`
        kNotReplayed,  // nothing in the trace to replay it by
    };
    std::string name;      // as people say it
    std::string key = {};  // a word for programs
    Effect effect = Effect::kNotReplayed;
    std::string row = {};          // the best of its rows: name; empty without any
    std::int64_t saved_bytes = 0;  // of peak reserved, by that row; negative: it took more
    std::int64_t ooms = 0;         // difference
    std::int64_t retries = 0;      // difference
    std::uint64_t ooms_left = 0;   // of that row
    std::uint64_t helped = 0;      // of its rows, a little included; `worse` likewise
    std::uint64_t nothing = 0;
    std::uint64_t worse = 0;
    RowClass row_class = RowClass::kEstimate;
    BoundKind bound_kind = BoundKind::kNone;
    std::string class_text = "estimate";  // in the words of class_words()
    // Why it could not be used, or was not replayed; what else the row changes.
    std::string reason = {};
};

// When a block was used last is not recorded: that del and gc.collect() could have freed what was
// old at the peak is an estimate. Parameters are old as well, and the last step's loss is not.
struct HeldAtPeak {
    std::uint64_t live_bytes = 0;
    std::uint64_t older_bytes = 0;  // of blocks that had lived through two steps
};

// What making activations again in the backward pass (checkpointing) could save, at most.
struct ActivationsHeld {
    std::uint64_t bytes = 0;            // by stack and lifetime: an estimate; 0 = none known
    std::uint64_t allocated_bytes = 0;  // of all live blocks, at the same instant
};

std::string_view effect_name(Advice::Effect effect);
Advice::Effect effect_of(const WhatIfRow& row, const WhatIfRow& recorded);

// `rows`: settings and remedies at the recorded capacity.
std::vector<Advice> judge_advice(const std::vector<WhatIfRow>& rows,
                                 const std::optional<HeldAtPeak>& held,
                                 const ActivationsHeld& activations = {});

}  // namespace fragtrace::analyzer
