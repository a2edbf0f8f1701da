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
    return lines;
}

}  // namespace fragtrace::analyzer
