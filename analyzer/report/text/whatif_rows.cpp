#include "analyzer/report/text/whatif_rows.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {

std::string whatif_rows(const std::vector<WhatIfCells>& rows, const Terminal& terminal) {
    constexpr std::size_t kLeastName = 12;
    constexpr std::size_t kNote = 10;  // "  estimate"; longer ones may be wrapped
    std::size_t name_width = 0;
    std::size_t outcome_width = 0;
    std::vector<std::size_t> widths;
    for (const WhatIfCells& row : rows) {
        name_width = std::max(name_width, row.name.size());
        outcome_width = std::max(outcome_width, row.outcome.size());
        widths.resize(row.figures.size());
        for (std::size_t i = 0; i < widths.size(); ++i)
            widths[i] = std::max(widths[i], row.figures[i].size());
    }
    if (terminal.columns()) {
        std::size_t others = 2 + 2 + outcome_width + kNote;
        for (const std::size_t width : widths)
            others += 2 + width;
        const std::size_t room = *terminal.columns() - std::min(*terminal.columns(), others);
        name_width = std::min(name_width, std::max(room, kLeastName));
    }
    std::string text;
    for (const WhatIfCells& row : rows) {
        const bool is_long = row.name.size() > name_width;
        std::string line = is_long ? fmt::format("  {}\n", row.name) : "";
        line += fmt::format(
            "  {:<{}}  {:<{}}", is_long ? "" : row.name, name_width, row.outcome, outcome_width);
        for (std::size_t i = 0; i < widths.size(); ++i)
            line += fmt::format("  {:>{}}", row.figures[i], widths[i]);
        text += terminal.styled(row.style, line + "  " + row.note) + "\n";
    }
    return text;
}

}  // namespace fragtrace::analyzer
