#include "analyzer/analysis/analysis.h"
#include "analyzer/support/units.h"

#include <fmt/format.h>
#include <map>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMostModules = 3;

std::string unnamed_line(const std::map<std::string, std::uint64_t>& by_module) {
    std::uint64_t all = 0;
    std::string where;
    std::size_t told = 0;
    for (const auto& [module, count] : by_module) {
        all += count;
        if (told < kMostModules) {
            where += fmt::format(
                "{}{} in {}", told == 0 ? "" : ", ", count, module.empty() ? "no module" : module);
            ++told;
        }
    }
    if (told < by_module.size()) {
        where += fmt::format(" and others in {}",
                             format_counted(by_module.size() - told, "module", "modules"));
    }
    return fmt::format("{} of the printed stacks have no function name: {}",
                       format_counted(all, "code address", "code addresses"),
                       where);
}

}  // namespace

std::vector<std::string> warnings_with_stacks(const Analysis& analysis) {
    std::vector<std::string> lines = analysis.warnings;
    const std::uint64_t without_order = analysis.symbols->stacks_without_order();
    if (without_order != 0) {
        lines.push_back(fmt::format(
            "{}: the order of native and Python frames is unknown; the native frames come first",
            format_counted(without_order, "stack", "stacks")));
    }
    const std::vector<std::string>& notes = analysis.symbols->notes();
    lines.insert(lines.end(), notes.begin(), notes.end());
    if (analysis.symbols->notes_left_out() != 0) {
        lines.push_back(
            fmt::format("and {} with the same problem",
                        format_counted(analysis.symbols->notes_left_out(), "module", "modules")));
    }
    if (!analysis.symbols->unnamed_addresses().empty()) {
        lines.push_back(unnamed_line(analysis.symbols->unnamed_addresses()));
    }
    return lines;
}

}  // namespace fragtrace::analyzer
