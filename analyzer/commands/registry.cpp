#include "analyzer/commands/registry.h"

#include <array>
#include <fmt/format.h>

namespace fragtrace::analyzer {

namespace {

constexpr std::array kCommands = {
    Command{"report", "verdict, culprits and remedies (the default)", run_report},
    Command{"anonymize", "write a trace without names and paths, to send to others", run_anonymize},
    Command{"check", "check limits of a run, for continuous integration", run_check},
    Command{"compare", "compare two runs: peaks, waste, lines, phases", run_compare},
    Command{"dump", "print the events, one per line", run_dump},
    Command{"explain", "explain an out-of-memory message, without a trace", run_explain},
    Command{"export", "write a recording in the format of another tool", run_export},
    Command{"list", "list traces, one line each", run_list},
    Command{"merge", "join summaries of a job's processes into one file", run_merge},
    Command{"mcp", "answer a language model's questions (Model Context Protocol)", run_mcp},
    Command{"plan", "place buffers with known lifetimes, from CSV to CSV", run_plan},
    Command{"replay", "replay once under other settings or on another card", run_replay},
    Command{"summarize", "print the figures of a run, for traces of any length", run_summarize},
    Command{"top", "show the memory of a running process, one line per second", run_top},
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
        "  fraganalyze train.myhost.4711.ftrace                       verdict, culprit and remedy\n"
        "  fraganalyze train.myhost.4711.ftrace --html timeline.html  the same as an HTML page\n"
        "  fraganalyze replay train.myhost.4711.ftrace --conf expandable_segments:True --capacity "
        "16GiB\n"
        "\n"
        "fraganalyze TRACE [options], or fraganalyze COMMAND TRACE [options]. Without COMMAND, "
        "the\n"
        "options are those of `fraganalyze report --help`.\n"
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
