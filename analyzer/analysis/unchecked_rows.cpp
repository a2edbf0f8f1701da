#include "analyzer/analysis/unchecked_rows.h"

#include "analyzer/analysis/metrics/known_figures.h"

#include <string>

namespace fragtrace::analyzer {

void mark_unchecked(const RunFigures& recorded, WhatIfRow* row) {
    if (segments_known(recorded)) {
        return;
    }
    row->is_recorded = false;
    const std::string not_exact(SweepContext{}.why_not_exact());
    if (const std::size_t at = row->class_reason.find(not_exact); at != std::string::npos) {
        row->class_reason.replace(at,
                                  not_exact.size(),
                                  "the input does not show the pool, so no replay of it could be "
                                  "checked");
    }
}

}  // namespace fragtrace::analyzer
