// Rows of replays as text: a name and an outcome from the left, figures from the right, and a note.
#pragma once

#include "analyzer/support/terminal.h"

#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct WhatIfCells {
    std::string name;
    std::string outcome;
    std::vector<std::string> figures;  // as many in every row
    std::string note;
    Style style = Style::kPlain;
};

// Columns are as narrow as the rows allow. On a terminal on which a row would be wrapped within its
// figures, long names have a line of their own. All texts must be printable.
std::string whatif_rows(const std::vector<WhatIfCells>& rows, const Terminal& terminal);

}  // namespace fragtrace::analyzer
