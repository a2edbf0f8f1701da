#include "analyzer/commands/registry.h"

#include <array>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::array kCommands = {
    Command{"report", "verdict, culprits and remedies (the default)", run_report},
    Command{"anonymize", "a trace without names and paths, to send to others", run_anonymize},
    Command{"check", "limits that a run has to keep, for continuous integration", run_check},
    Command{"compare", "two runs: peaks, waste, who grew, phase by phase", run_compare},
    Command{"dump", "the events, one a line", run_dump},
    Command{"explain", "what an out-of-memory message proves, without a trace", run_explain},
    Command{"list", "traces, a line each: program, events, how it ended", run_list},
    Command{"plan", "place buffers with known lifetimes, from CSV to CSV", run_plan},
    Command{"replay", "replay once under other settings or on another card", run_replay},
    Command{"summarize", "a run's figures, of traces of any length", run_summarize},
    Command{"top", "what a running process holds, a line per second", run_top},
    Command{"validate", "check every placement of a simulated pool, or of a plan", run_validate},
    Command{"whatif", "replay under many settings and capacities, ranked", run_whatif},
};

}  // namespace

std::span<const Command> commands() {
    return kCommands;
}

const Command* find_command(std::string_view name) {
    for (const Command& command : kCommands) {
        if (command.name == name) {
            return &command;
        }
    }
    return nullptr;
}

std::string overview() {
    std::string text =
        "Examples\n"
        "  fraganalyze train.4711.ftrace                       what happened, who did it, what "
        "helps\n"
        "  fraganalyze train.4711.ftrace --html timeline.html  the same as a page\n"
        "  fraganalyze replay train.4711.ftrace --conf expandable_segments:True --capacity 16GiB\n"
        "\n"
        "fraganalyze TRACE [options], or fraganalyze COMMAND TRACE [options]\n"
        "\n"
        "Commands (each has --help)\n";
    for (const Command& command : kCommands) {
        text += fmt::format("  {:<10} {}\n", command.name, command.synopsis);
    }
    text +=
        "\n"
        "Exit status: 0 fine, 1 a check failed, 2 bad usage or unreadable input, 130 "
        "interrupted.\n";
    return text;
}

}  // namespace fragtrace::analyzer
