// fraganalyze dump TRACE: prints the events, one per line.
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/registry.h"
#include "analyzer/snapshot/input.h"
#include "analyzer/support/terminal.h"
#include "analyzer/trace/describe_event.h"
#include "analyzer/trace/event_stream.h"
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

void print_note(const std::string& path, const std::string& note) {
    print_to_stderr(fmt::format("fraganalyze: {}\n", printable(path + ": " + note)));
}

// The notes of the timeline, and what --facts prints.
void print_head(const Timeline& timeline, bool facts) {
    for (const std::string& note : timeline.damage.notes) {
        print_note(timeline.path, note);
    }
    if (facts) {
        for (const auto& [key, value] : timeline.facts) {
            fmt::print("{}\t{}\n", one_line(key), one_line(value));
        }
    }
}

// A snapshot or a recording of another tool, which is read as a whole.
Status dump_timeline(const std::string& path, bool facts, bool stacks) {
    const auto timeline = read_input(path);
    if (!timeline) {
        return timeline.error();
    }
    print_head(*timeline, facts);
    Symbolizer symbols(*timeline);
    const auto count = static_cast<EventIndex>(facts ? 0 : timeline->events.size());
    for (EventIndex i = 0; i < count; ++i) {
        fmt::print("{}\n", printable(describe_event(*timeline, i, stacks ? &symbols : nullptr)));
    }
    return Ok{};
}

// A trace, event by event: its length does not matter.
Status dump_trace(const std::string& path, bool facts, bool stacks) {
    Result<EventStream> stream = EventStream::open(path);
    if (!stream) {
        return stream.error();
    }
    Timeline tables = stream->tables();
    print_head(tables, facts);
    if (facts) {
        return Ok{};
    }
    // The tables get the stream and the origin of one event at a time, as number 0 and 1.
    tables.streams.assign(1, 0);
    tables.origins.assign(2, Origin{});
    Symbolizer symbols(tables);
    stream->for_each([&](std::uint64_t index, const Event& streamed, const EventRecord& record) {
        Event event = streamed;
        tables.origins[1] = {record.thread, record.native_stack, record.python_stack};
        event.origin = tables.origins[1] == Origin{} ? 0 : 1;
        if (has_trait(event.kind, kHasStream) && record.stream != kStreamUnknown) {
            tables.streams[0] = record.stream;
            event.stream = 0;
        }
        fmt::print("{}\n",
                   printable(describe_event(
                       tables, index, event, record.pool, stacks ? &symbols : nullptr)));
    });
    for (const std::string& note : stream->notes_of_pass()) {
        print_note(path, note);
    }
    return Ok{};
}

}  // namespace

Status run_dump(int argc, char** argv) {
    CLI::App app(
        "Prints the events of a trace, one per line, as it reads them: its memory does not grow "
        "with the length of the trace.\n\n"
        "Examples\n"
        "  fraganalyze dump train.myhost.4711.ftrace | grep block_out_of_memory\n"
        "  fraganalyze dump train.myhost.4711.ftrace --facts\n",
        "fraganalyze dump");
    CommonOptions common;
    bool facts = false;
    bool without_stacks = false;
    common.add_trace(&app);
    app.add_flag("--facts", facts, "print what is known about the process instead");
    app.add_flag("--no-stacks", without_stacks, "leave the source line out (faster)");
    if (const Status parsed = parse_arguments(&app, argc, argv); !parsed) {
        return parsed;
    }
    const bool trace = !is_snapshot(common.trace) && import_name(common.trace).empty();
    return (trace ? dump_trace : dump_timeline)(common.trace, facts, !without_stacks);
}

}  // namespace fragtrace::analyzer
