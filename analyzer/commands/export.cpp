// fraganalyze export TRACE --to FORMAT -o FILE: writes a recording in the format of another tool.
#include <fragtrace/suggestion.h>

#include "analyzer/analysis/analyze.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/registry.h"
#include "analyzer/export/formats.h"
#include "analyzer/export/stack_weights.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/support/output_file.h"
#include "analyzer/support/terminal.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <string>
#include <vector>

namespace fragtrace::analyzer {
namespace {

const std::map<std::string, StackQuantity> kQuantities = {
    {"holders", StackQuantity::kHolders},
    {"waste", StackQuantity::kWaste},
    {"allocations", StackQuantity::kAllocations},
};

std::string format_list() {
    std::string text = "Formats\n";
    for (const ExportFormat& format : export_formats()) {
        text += fmt::format("  {:<12} {}\n", format.name, format.synopsis);
    }
    return text;
}

// The last event at or before a time; the first one if there is none.
EventIndex event_at(const Timeline& timeline, double seconds) {
    EventIndex last = 0;
    for (EventIndex i = 0; i < timeline.events.size(); ++i) {
        if (static_cast<double>(timeline.events[i].time_ns) / 1e9 > seconds) {
            break;
        }
        last = i;
    }
    return last;
}

// Whether the events around this time were left out (analyzer/analysis/windows.h).
bool was_left_out(const Timeline& timeline, double seconds) {
    const auto time_of = [&timeline](EventIndex event) {
        return static_cast<double>(timeline.events[event].time_ns) / 1e9;
    };
    return std::any_of(timeline.gaps.begin(), timeline.gaps.end(), [&](const RecordingGap& gap) {
        return gap.left_out != 0 && (gap.begin == 0 || time_of(gap.begin) < seconds) &&
               (gap.end >= timeline.events.size() || seconds < time_of(gap.end));
    });
}

Result<EventIndex> moment_of(const Analysis& analysis, const std::string& at) {
    if (at.empty()) {
        return kNoEvent;
    }
    if (analysis.timeline.events.empty()) {
        return Error{ErrorCode::kUsage, "--at: the recording has no events"};
    }
    if (at == "end") {
        return static_cast<EventIndex>(analysis.timeline.events.size() - 1);
    }
    if (at == "oom" || at == "peak") {
        const EventIndex event = at == "oom" ? oom_moment(analysis) : peak_moment(analysis);
        if (event != kNoEvent) {
            return event;
        }
        return Error{ErrorCode::kUsage,
                     fmt::format("--at {}: the recording has no {}",
                                 at,
                                 at == "oom" ? "out-of-memory" : "allocation")};
    }
    std::size_t read = 0;
    double seconds = -1;
    try {
        seconds = std::stod(at, &read);
    } catch (const std::exception&) {
        read = 0;
    }
    if (read == 0 || !std::isfinite(seconds) || seconds < 0 ||
        (at.substr(read) != "s" && read != at.size())) {
        return Error{ErrorCode::kUsage,
                     fmt::format("--at {}: must be peak, oom, end or seconds since the start of "
                                 "the recording, such as 12.5s",
                                 at)};
    }
    if (was_left_out(analysis.timeline, seconds)) {
        return Error{ErrorCode::kUsage,
                     fmt::format("--at {}: the events around this moment were not read; --events "
                                 "all reads everything",
                                 at)};
    }
    return event_at(analysis.timeline, seconds);
}

// The format of --to, once it is known that it uses all given options.
Result<const ExportFormat*> format_of(const std::string& name, const CLI::App& app) {
    const ExportFormat* const format = find_export_format(name);
    if (format == nullptr) {
        std::vector<std::string> names;
        for (const ExportFormat& one : export_formats()) {
            names.emplace_back(one.name);
        }
        return Error{ErrorCode::kUsage,
                     fmt::format("--to {}: is no format{} (see 'fraganalyze export --help')",
                                 name,
                                 did_you_mean(name, names))};
    }
    for (const char* option : {"--of", "--at", "--blocks", "--with", "--categories"}) {
        if (app.count(option) != 0 && format->uses.find(option) == std::string_view::npos) {
            return Error{ErrorCode::kUsage,
                         fmt::format("{}: the format {} does not use it", option, format->name)};
        }
    }
    return format;
}

// Says on standard error what the written file lacks.
void print_gaps(const Timeline& timeline, const std::string& output) {
    if (const std::string part = part_text(timeline); !part.empty()) {
        print_to_stderr(fmt::format(
            "fraganalyze: {} shows {} (--events all: everything)\n", printable(output), part));
    }
    const TraceDamage& damage = timeline.damage;
    if (damage.bytes_unreadable != 0 || damage.events_lost != 0) {
        print_to_stderr(
            fmt::format("fraganalyze: {} lacks events: {} of {} cannot be read, {} lost while "
                        "recording\n",
                        printable(output),
                        format_bytes(damage.bytes_unreadable),
                        printable(timeline.path),
                        format_counted(damage.events_lost, "event was", "events were")));
    }
}

}  // namespace

Status run_export(int argc, char** argv) {
    CLI::App app(
        "Writes a trace or a snapshot in the format of another tool.\n\n"
        "Examples\n"
        "  fraganalyze export train.myhost.4711.ftrace --to speedscope -o held.speedscope.json\n"
        "  fraganalyze export train.myhost.4711.ftrace --to folded --of waste -o - | flamegraph.pl "
        "> waste.svg\n"
        "  fraganalyze export train.myhost.4711.ftrace --to perfetto --with profile.json.gz "
        "-o train.perfetto-trace\n"
        "  fraganalyze export train.myhost.4711.ftrace --to csv -o tables\n\n" +
            format_list(),
        "fraganalyze export");
    CommonOptions common;
    std::string to;
    std::string of = "holders";
    std::string at;
    ExportOptions options;
    common.add_trace(&app);
    app.add_option("--to", to, "the format, see above")->type_name("FORMAT")->required();
    app.add_option("-o,--output",
                   options.output,
                   "the file to write; - is standard output. csv: the folder")
        ->type_name("FILE")
        ->required();
    app.add_option("--of", of, "folded: holders, waste or allocations")
        ->type_name("QUANTITY")
        ->capture_default_str();
    app.add_option("--at",
                   at,
                   "the moment of holders and waste: peak, oom, end, or seconds since the start. "
                   "Default: the reported out-of-memory, else the peak of allocated memory")
        ->type_name("MOMENT");
    app.add_flag("--blocks", options.blocks, "perfetto: add each block as a slice");
    app.add_option("--with",
                   options.profile,
                   "perfetto: add the slices of this trace of PyTorch's profiler (JSON, also "
                   "gzipped), so that memory stands beside operators and kernels")
        ->type_name("FILE");
    common.add_torch_version(&app);
    common.add_categories(&app);
    common.add_events(&app);
    CommonOptions::add_force(&app);
    if (const Status parsed = parse_arguments(&app, argc, argv); !parsed) {
        return parsed;
    }
    const Result<const ExportFormat*> found = format_of(to, app);
    if (!found) {
        return found.error();
    }
    const ExportFormat* const format = *found;
    const auto quantity = kQuantities.find(of);
    if (quantity == kQuantities.end()) {
        return Error{ErrorCode::kUsage,
                     fmt::format("--of {}: must be holders, waste or allocations", of)};
    }
    if (!format->writes_folder) {
        if (const Status possible = check_output(options.output); !possible) {
            return possible;
        }
    }
    options.quantity = quantity->second;
    const auto categories = common.category_rules();
    if (!categories) {
        return categories.error();
    }
    const auto most_events = common.most_events();
    if (!most_events) {
        return most_events.error();
    }
    AnalyzeOptions analyze_options = {.torch_version = common.torch_version,
                                      .categories = *categories,
                                      .most_events = *most_events};
    if (format->shows_replays) {
        add_report_replays(&analyze_options);
    }
    const auto analysis = analyze(common.trace, analyze_options);
    if (!analysis) {
        return analysis.error();
    }
    const auto moment = moment_of(**analysis, at);
    if (!moment) {
        return moment.error();
    }
    options.moment = *moment;
    const Status written = format->write(**analysis, options);
    if (written) {
        print_gaps((*analysis)->timeline, options.output);
    }
    return written;
}

}  // namespace fragtrace::analyzer
