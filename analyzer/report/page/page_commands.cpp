#include "analyzer/report/page/page_commands.h"

#include "analyzer/report/text/conclusion_text.h"
#include "analyzer/support/terminal.h"

#include <fmt/format.h>
#include <string_view>

namespace fragtrace::analyzer {
namespace {

// fragtrace try takes a trace, no import. With several devices it takes the rows of one of them.
bool can_be_tried(const Analysis& analysis, std::string_view file) {
    constexpr std::string_view kEnding = ".ftrace";
    return analysis.devices.size() == 1 && file.size() > kEnding.size() &&
           file.substr(file.size() - kEnding.size()) == kEnding;
}

}  // namespace

PageCommands commands_of(const Analysis& analysis, const WhatIfRow& row, std::size_t rank) {
    const Candidate& candidate = row.candidate;
    const bool settings = (candidate.remedy == Remedy::kSettings && candidate.pool == "pytorch") ||
                          candidate.remedy == Remedy::kCachingOff;
    if (row.is_recorded || !row.usable || !settings || rank == 0) {
        return {};
    }
    PageCommands commands{.set = shell_assignment(candidate), .run = {}};
    const std::string& path = analysis.timeline.path;
    const std::string file = path.substr(path.find_last_of('/') + 1);
    if (can_be_tried(analysis, file)) {
        // The command of a rank is that of the whole job, which the trace does not have.
        commands.run = fmt::format("fragtrace try {} --remedy {}{}",
                                   shell_quoted(file),
                                   rank,
                                   analysis.timeline.rank < 0 ? "" : " -- COMMAND");
    }
    return commands;
}

}  // namespace fragtrace::analyzer
