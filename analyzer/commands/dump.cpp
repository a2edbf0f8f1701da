// fraganalyze dump TRACE: prints the events, one per line.
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/registry.h"
#include "analyzer/snapshot/input.h"
#include "analyzer/trace/describe_event.h"
#include "analyzer/trace/symbols.h"

#include <cstdio>
#include <fmt/format.h>
#include <string>
#include <string_view>

namespace fragtrace::analyzer {
namespace {

// Escapes line ends and tabs, so that a fact stays on one line.
std::string one_line(std::string_view text) {
    std::string result;
    for (const char character : text) {
        result += character == '\n'   ? std::string("\\n")
                  : character == '\t' ? std::string("\\t")
                                      : std::string(1, character);
    }
    return printable(result);
}

}  // namespace

Status run_dump(int argc, char** argv) {
    CLI::App app(
        "Prints the events of a trace, one per line.\n\n"
        "Examples\n"
        "  fraganalyze dump train.4711.ftrace | grep block_out_of_memory\n"
        "  fraganalyze dump train.4711.ftrace --facts\n",
        "fraganalyze dump");
    CommonOptions common;
    bool facts = false;
    bool without_stacks = false;
    common.add_trace(&app);
    app.add_flag("--facts", facts, "print what is known about the process instead");
    app.add_flag("--no-stacks", without_stacks, "leave the source line out (faster)");
    const auto parsed = parse_arguments(&app, argc, argv);
    if (!parsed) {
        return parsed.error();
    }
    if (!*parsed) {
        return Ok{};
    }
    const auto timeline = read_input(common.trace);
    if (!timeline) {
        return timeline.error();
    }
    for (const std::string& note : timeline->damage.notes) {
        fmt::print(stderr, "fraganalyze: {}\n", printable(common.trace + ": " + note));
    }
    if (facts) {
        for (const auto& [key, value] : timeline->facts) {
            fmt::print("{}\t{}\n", one_line(key), one_line(value));
        }
        return Ok{};
    }
    Symbolizer symbols(*timeline);
    for (EventIndex i = 0; i < timeline->events.size(); ++i) {
        fmt::print("{}\n",
                   printable(describe_event(*timeline, i, without_stacks ? nullptr : &symbols)));
    }
    return Ok{};
}

}  // namespace fragtrace::analyzer
