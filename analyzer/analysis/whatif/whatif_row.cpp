#include "analyzer/analysis/whatif/whatif_row.h"

#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {

std::uint64_t WhatIfRow::least_reserved_bytes() const {
    const std::uint64_t peak = result.statistics.reserved.peak;
    return lower ? std::min(peak, lower->statistics.reserved.peak) : peak;
}

std::string WhatIfRow::class_text() const {
    return class_words(row_class, bound_kind, fails_first() ? result.divergence->event : kNoEvent);
}

std::uint64_t WhatIfRow::ooms() const {
    return result.ooms();
}

std::uint64_t WhatIfRow::retries() const {
    return result.retries();
}

const WhatIfRow* recorded_row(const std::vector<WhatIfRow>& rows) {
    const auto found = std::find_if(
        rows.begin(), rows.end(), [](const WhatIfRow& row) { return row.is_recorded; });
    return found == rows.end() ? nullptr : &*found;
}

std::string_view SweepContext::why_not_exact() const {
    return !fidelity_exact ? "the recorded settings do not replay exactly"
           : assumed       ? "requested sizes or streams are assumed"
           : pending_assumed
               ? "cross-stream frees are assumed to complete at other times (--pending)"
               : "";
}

std::string adopted_reason(std::uint64_t adopted_bytes) {
    return fmt::format(
        "{} allocated before the recording began or continued keep their recorded addresses",
        format_bytes(adopted_bytes));
}

}  // namespace fragtrace::analyzer
