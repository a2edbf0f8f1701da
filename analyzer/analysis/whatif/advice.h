// The effect of each popular piece of advice on this trace: one entry each, from replayed rows.
// less_memory.h has the advice that no replay can show.
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
        // The first five are the results of change_of (ranking.h).
        kHelped,
        kHelpedALittle,
        kNothing,
        kWorseALittle,
        kWorse,
        kInForce,      // the recorded run already had it
        kNotUsable,    // this program cannot use it; the other fields say what it would have done
        kNotReplayed,  // the trace does not allow it, e.g. it has no steps
    };
    std::string name;      // as people call it
    std::string key = {};  // a name for programs that read the JSON
    Effect effect = Effect::kNotReplayed;
    std::string row = {};          // name of its best row; empty = it has no rows
    std::int64_t saved_bytes = 0;  // of peak reserved, by that row; negative: it needs more
    std::int64_t ooms = 0;         // change against the recorded run
    std::int64_t retries = 0;      // change against the recorded run
    std::uint64_t ooms_left = 0;   // OOMs of that row
    // Number of its rows that helped, even a little; the next two count likewise.
    std::uint64_t helped = 0;
    std::uint64_t nothing = 0;
    std::uint64_t worse = 0;
    RowClass row_class = RowClass::kEstimate;
    BoundKind bound_kind = BoundKind::kNone;
    std::string class_text = "estimate";  // as class_words() says it
    // It reduces the memory of the program itself, which no replay shows: saved_bytes is then the
    // most that it could save.
    bool less_memory = false;
    // Whether the most that it could save reaches what the failed request lacked; nullopt = not
    // compared.
    std::optional<bool> can_be_enough = std::nullopt;
    // Why it cannot be used or was not replayed, or what else the row changes.
    std::string reason = {};
};

std::string_view effect_name(Advice::Effect effect);
Advice::Effect effect_of(const WhatIfRow& row, const WhatIfRow& recorded);

// `rows` are settings and remedies at the recorded capacity.
std::vector<Advice> judge_advice(const std::vector<WhatIfRow>& rows);

}  // namespace fragtrace::analyzer
