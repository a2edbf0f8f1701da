// fraganalyze summarize TRACE: figures of a run, for traces of any length. For a folder, figures of
// each run.
#include "analyzer/analysis/analyze_options.h"
#include "analyzer/analysis/job/job.h"
#include "analyzer/analysis/job/merge_summaries.h"
#include "analyzer/analysis/job/process_summary_json.h"
#include "analyzer/analysis/job/read_job.h"
#include "analyzer/analysis/job/read_summaries.h"
#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/analysis/metrics/trace_summary.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/job.h"
#include "analyzer/commands/registry.h"
#include "analyzer/report/json/json_figures.h"
#include "analyzer/report/text/text_source.h"
#include "analyzer/support/guarded.h"
#include "analyzer/support/input_file.h"
#include "analyzer/support/output_file.h"
#include "analyzer/support/units.h"
#include "analyzer/trace/symbols.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <unistd.h>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMostHolders = 10;

// Merges stacks that differ only outside the user's code into one row.
std::vector<HeldBy> holder_rows(const DeviceSummary& device, bool wanted, Symbolizer* symbols) {
    if (!wanted) {
        return {};
    }
    std::map<std::string, HeldBy> by_label;
    for (const HeldBy& holder : device.holders) {
        by_label[holder.label.empty() ? symbols->describe(holder.origin) : holder.label].add(
            holder.bytes, holder.blocks);
    }
    std::vector<HeldBy> rows;
    for (auto& [label, row] : by_label) {
        row.label = label;
        rows.push_back(row);
    }
    std::stable_sort(rows.begin(), rows.end(), [](const HeldBy& a, const HeldBy& b) {
        return a.bytes > b.bytes;
    });
    rows.resize(std::min(rows.size(), kMostHolders));
    return rows;
}

std::string summary_text(const TraceSummary& summary, bool with_holders) {
    const Timeline& tables = summary.tables;
    Symbolizer symbols(tables);
    const std::string events = format_counted(summary.events, "event", "events");
    std::string text = shell_quoted(tables.path);
    text += tables.pid == 0
                ? fmt::format("  {}, {}\n", printable(tables.fact("import", "snapshot")), events)
                : fmt::format("  {}  pid {}, {}, {}\n",
                              command_text(tables.fact("command_line")),
                              tables.pid,
                              events,
                              ending_text(tables));
    for (const DeviceSummary& device : summary.devices) {
        const RunFigures& run = device.metrics.summary;
        const WasteSplit& waste = run.waste_at_peak;
        if (!segments_known(run)) {
            text += fmt::format(
                "gpu{}  peak allocated {}; reserved memory unknown\n"
                "      {}\n",
                device.device,
                format_bytes(run.peak_allocated),
                run.ooms == 0 && !summary.failures_known()
                    ? "failed requests unknown"
                    : format_counted(run.ooms, "failed request", "failed requests"));
            continue;
        }
        text += device.metrics.state_only ? fmt::format("gpu{}  state at one moment: {} reserved\n",
                                                        device.device,
                                                        format_bytes(run.peak_reserved))
                                          : fmt::format("gpu{}  peak reserved {} at {}\n",
                                                        device.device,
                                                        format_bytes(run.peak_reserved),
                                                        format_duration(device.peak_time_ns));
        text += fmt::format(
            "      at this peak: requested {}, rounding {}, slack {}, pending {}, releasable {}, "
            "inactive split {}\n",
            format_bytes(waste.requested),
            format_bytes(waste.rounding),
            format_bytes(waste.slack),
            format_bytes(waste.pending),
            format_bytes(waste.releasable),
            format_bytes(waste.inactive_split));
        text += fmt::format("      peaks: requested {}, allocated {}, active {}\n",
                            format_bytes(run.peak_requested),
                            format_bytes(run.peak_allocated),
                            format_bytes(run.peak_active));
        text += device.metrics.state_only
                    ? std::string("      whether a request failed is unknown\n")
                    : fmt::format("      segments: {} allocated, {} freed; {}, {}\n",
                                  format_count(run.segments_allocated),
                                  format_count(run.segments_freed),
                                  format_counted(run.retries, "retry", "retries"),
                                  format_counted(run.ooms, "OOM", "OOMs"));
        text += !with_holders               ? ""
                : device.metrics.state_only ? "      memory by line\n"
                                            : "      memory by line at the peak\n";
        for (const HeldBy& row : holder_rows(device, with_holders, &symbols)) {
            text += fmt::format("        {:>9} in {:>7} {:<6}  {}\n",
                                format_bytes(row.bytes),
                                format_count(row.blocks),
                                row.blocks == 1 ? "block" : "blocks",
                                printable(row.label));
        }
    }
    if (summary.devices.empty()) {
        text += "no device memory was requested\n";
    }
    if (summary.calls_of_unknown_device != 0) {
        text += fmt::format("{} failed because memory ran out; the device is not recorded\n",
                            format_counted(summary.calls_of_unknown_device, "call", "calls"));
    }
    if (summary.events_left_out != 0) {
        text += fmt::format(
            "{} are out of order or repeated, and are not counted (fraganalyze report sorts "
            "them)\n",
            format_counted(summary.events_left_out, "event", "events"));
    }
    if (tables.damage.events_lost != 0) {
        text +=
            fmt::format("{} LOST\n", format_counted(tables.damage.events_lost, "event", "events"));
    }
    return text;
}

using Json = nlohmann::ordered_json;

Json summary_json(const TraceSummary& summary, bool with_holders) {
    const Timeline& tables = summary.tables;
    Symbolizer symbols(tables);
    Json devices = Json::array();
    for (const DeviceSummary& device : summary.devices) {
        const RunFigures& run = device.metrics.summary;
        Json holders = Json::array();
        for (const HeldBy& row : holder_rows(device, with_holders, &symbols)) {
            holders.push_back({{"label", row.label}, {"bytes", row.bytes}, {"blocks", row.blocks}});
        }
        devices.push_back(
            {{"index", device.device},
             {"peak", peaks_json(run)},
             {"peak_time_ns", device.peak_time_ns},
             {"waste_at_peak", waste_json(run)},
             {"segments_allocated", if_reserved(run, run.segments_allocated)},
             {"segments_freed", if_reserved(run, run.segments_freed)},
             {"retries", if_reserved(run, run.retries)},
             {"ooms", run.ooms == 0 && !summary.failures_known() ? Json() : Json(run.ooms)},
             {"violations", device.metrics.violations},
             {"state_only", device.metrics.state_only},
             {"holders_at_peak", holders}});
    }
    return Json{{"schema", 1},
                {"path", tables.path},
                {"process", tables.pid},
                {"command_line", tables.fact("command_line")},
                {"ended", ending_name(process_end(tables).ending)},
                {"ending", ending_json(process_end(tables))},
                {"events", summary.events},
                {"events_left_out", summary.events_left_out},
                {"events_lost", tables.damage.events_lost},
                {"devices", devices}};
}

// Names from the traced programs may be invalid UTF-8.
std::string json_text(const Json& document) {
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Whether `output` has all that would be written for this trace.
bool is_current(const std::string& trace, const std::string& output, bool whatif) {
    const auto summary = current_summary(trace, output);
    if (!summary || summary->end.ending == Ending::kRunning) {
        return false;
    }
    const bool has_pool = std::any_of(  // without one nothing is replayed
        summary->devices.begin(),
        summary->devices.end(),
        [](const ProcessDevice& device) { return device.blocks_are_pool_blocks; });
    return summary->events > kLongTrace ||
           (summary->analysed && (summary->replayed || !whatif || !has_pool));
}

// Writes what the view of a job needs of a trace, or of each trace of a folder.
Status write_for_job(const std::string& input, const std::string& output, bool whatif) {
    std::vector<std::string> paths = {input};
    if (is_folder(input)) {
        Result<std::vector<std::string>> found = recordings_of_job(input);
        if (!found) {
            return found.error();
        }
        paths = std::move(found).value();
    }
    Job job = read_job(paths);
    AnalyzeOptions options;
    if (whatif) {
        add_report_replays(&options);
    }
    for (ProcessSummary& process : job.processes) {
        const Status explained = explain_process(options, &process);
        if (!explained) {
            job.unreadable.push_back({process.file, explained.error().message});
        }
    }
    if (job.processes.empty() && job.unreadable.empty()) {
        return no_process_in(job, input);
    }
    const std::string first_reason = job.unreadable.empty() ? "" : job.unreadable.front().reason;
    const std::size_t unreadable = job.unreadable.size();
    const Status written =
        write_summaries(output, job.processes, merged(std::move(job.unreadable), job.processes));
    if (!written || unreadable == 0) {
        return written;
    }
    return paths.size() == 1 ? Error{ErrorCode::kInput, first_reason}
                             : unreadable_in_job(unreadable, paths.size(), first_reason);
}

// Summarizes each trace and snapshot of a folder separately, so that only one is in memory at a
// time.
Status summarize_folder(const std::string& folder, const std::string& json, bool with_holders) {
    const Result<std::vector<std::string>> paths = recordings_of_job(folder);
    if (!paths) {
        return paths.error();
    }
    if (std::all_of(paths->begin(), paths->end(), is_summaries_file)) {
        return Error{ErrorCode::kInput,
                     folder +
                         ": only summaries in it, without the traces. `fraganalyze FOLDER` "
                         "shows them; `fraganalyze merge FOLDER -o FILE` joins them."};
    }
    std::string text;
    Json runs = Json::array();
    Json unreadable = Json::array();
    for (const std::string& path : *paths) {
        if (is_summaries_file(path)) {
            continue;  // of traces elsewhere, without the figures that are printed here
        }
        const Result<TraceSummary> summary =
            guarded(path, [&] { return summarize_trace(path, with_holders); });
        if (!summary) {
            text += "unreadable  " + printable(summary.error().message) + "\n";
            unreadable.push_back({{"file", std::filesystem::path(path).filename().string()},
                                  {"reason", summary.error().message}});
        } else if (json.empty()) {
            text += summary_text(*summary, with_holders);
        } else {
            runs.push_back(summary_json(*summary, with_holders));
        }
    }
    const Status written = json.empty() ? write_text(text)
                                        : write_output(json,
                                                       json_text({{"schema", 1},
                                                                  {"folder", folder},
                                                                  {"runs", runs},
                                                                  {"unreadable", unreadable}}));
    if (written && !unreadable.empty()) {
        return unreadable_in_job(
            unreadable.size(), paths->size(), unreadable.front()["reason"].get<std::string>());
    }
    return written;
}

}  // namespace

Status run_summarize(int argc, char** argv) {
    CLI::App app(
        "Prints the figures of a run: peaks, waste at the peak, segments, out-of-memory "
        "errors, and memory by line at the peak. It keeps no events and replays nothing: its "
        "memory use depends on the number of live blocks, not on the length of the trace.\n\n"
        "Examples\n"
        "  fraganalyze summarize train.myhost.4711.ftrace\n"
        "  fraganalyze summarize snapshots/                        every trace and snapshot in the "
        "folder\n"
        "  fraganalyze summarize train.myhost.4711.ftrace --json - | jq '.devices[0].peak'\n"
        "  fraganalyze summarize train.myhost.4711.ftrace -o s.json       for fraganalyze merge, "
        "and for the view of a job\n",
        "fraganalyze summarize");
    CommonOptions common;
    std::vector<std::string> inputs;
    app.add_option("TRACE",
                   inputs,
                   "one trace, snapshot or profile that `fraganalyze report` reads, or one folder "
                   "of them")
        ->required();
    common.add_json(&app);
    bool no_stacks = false;
    app.add_flag("--no-stacks", no_stacks, "leave out memory by line: no symbols are read");
    std::string output;
    bool no_whatif = false;
    bool if_changed = false;
    app.add_option("-o,--output",
                   output,
                   "write to FILE, instead, all that the view of a job shows of this process, with "
                   "explained failures and replays; at most 20 kB per process ('-' is standard "
                   "output)")
        ->type_name("FILE")
        ->check(output_fault);
    app.add_flag("--no-whatif", no_whatif, "with -o: skip the what-if replays");
    app.add_flag("--if-changed",
                 if_changed,
                 "with -o: do nothing if FILE is the summary of this trace as it is now, by this "
                 "version of fraganalyze");
    if (const Status parsed = parse_arguments(&app, argc, argv); !parsed) {
        return parsed;
    }
    if (inputs.size() > 1) {
        return Error{ErrorCode::kUsage,
                     fmt::format("{}: this command takes one trace or one folder, and {} is given "
                                 "too. Put the traces into one folder and name the folder; `merge "
                                 "TRACE... -o FILE` writes one file for the view of a job.",
                                 inputs[1],
                                 inputs[0])};
    }
    if (output.empty() && (if_changed || no_whatif)) {
        return Error{ErrorCode::kUsage,
                     fmt::format("{} needs -o FILE: without it nothing is {}",
                                 if_changed ? "--if-changed" : "--no-whatif",
                                 if_changed ? "kept" : "replayed")};
    }
    if (!output.empty() && !common.json.empty()) {
        return Error{ErrorCode::kUsage,
                     "-o and --json exclude each other: -o writes what the view of a job needs, "
                     "--json the figures of the run. Give one of them."};
    }
    common.trace = inputs.front();
    if (!output.empty()) {
        if (!std::filesystem::exists(common.trace)) {
            return Error{ErrorCode::kInput, common.trace + ": no such file or folder"};
        }
        if (if_changed && is_current(common.trace, output, !no_whatif)) {
            return Ok{};
        }
        if (if_changed && std::filesystem::exists(output)) {
            if (!is_summaries_file(output)) {
                return Error{ErrorCode::kOutput,
                             output + ": exists, and is not a summary. Name another file."};
            }
            unlink(output.c_str());  // this command has read it, and would not replace it
        }
        return write_for_job(common.trace, output, !no_whatif);
    }
    if (is_folder(common.trace)) {
        return summarize_folder(common.trace, common.json, !no_stacks);
    }
    const Result<TraceSummary> summary = summarize_trace(common.trace, !no_stacks);
    if (!summary) {
        return summary.error();
    }
    if (!common.json.empty()) {
        return write_output(common.json, json_text(summary_json(*summary, !no_stacks)));
    }
    return write_text(summary_text(*summary, !no_stacks));
}

}  // namespace fragtrace::analyzer
