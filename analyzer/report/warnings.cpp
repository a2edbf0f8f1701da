#include "analyzer/report/analysis.h"
#include "analyzer/support/units.h"

#include <fmt/format.h>

namespace fragtrace::analyzer {

std::vector<std::string> warnings_with_stacks(const Analysis& analysis) {
    std::vector<std::string> lines = analysis.warnings;
    const std::uint64_t without_order = analysis.symbols->stacks_without_order();
    if (without_order != 0) {
        lines.push_back(
            fmt::format("in {} it is not known how native and Python frames called each other: the "
                        "native ones come first",
                        format_counted(without_order, "stack", "stacks")));
    }
    const std::vector<std::string>& notes = analysis.symbols->notes();
    lines.insert(lines.end(), notes.begin(), notes.end());
    if (analysis.symbols->notes_left_out() != 0) {
        lines.push_back(
            fmt::format("and {} likewise",
                        format_counted(analysis.symbols->notes_left_out(), "module", "modules")));
    }
    const std::uint64_t unnamed = analysis.symbols->unnamed_addresses();
    if (unnamed != 0) {
        lines.push_back(fmt::format("the function at {} of the stacks shown is not known",
                                    format_counted(unnamed, "code address", "code addresses")));
    }
    return lines;
}

}  // namespace fragtrace::analyzer
