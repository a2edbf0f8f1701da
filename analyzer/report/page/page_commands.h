// Commands that a reader of the page can copy.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/report/page/page_data.h"

#include <cstddef>

namespace fragtrace::analyzer {

// `rank`: position of the row in ranked_rows(), from 1 on; 0 = not in it.
PageCommands commands_of(const Analysis& analysis, const WhatIfRow& row, std::size_t rank);

}  // namespace fragtrace::analyzer
