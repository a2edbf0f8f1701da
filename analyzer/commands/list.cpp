// fraganalyze list PATH...: lists traces, one line each, without reading their events.
#include "analyzer/analysis/job/read_summaries.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/job.h"
#include "analyzer/commands/registry.h"
#include "analyzer/report/text/text_source.h"
#include "analyzer/snapshot/input.h"
#include "analyzer/support/guarded.h"
#include "analyzer/support/input_file.h"
#include "analyzer/support/output_file.h"
#include "analyzer/support/terminal.h"
#include "analyzer/support/units.h"
#include "analyzer/trace/event_stream.h"
#include "analyzer/trace/trace_outline.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <system_error>

namespace fragtrace::analyzer {
namespace {

namespace fs = std::filesystem;

struct ListOptions {
    std::vector<std::string> paths;
    std::string job;        // empty = any
    std::size_t limit = 0;  // 0 = all
    bool absorb = false;    // move rings of ended processes into their traces
};

// Replaces a folder by the traces and snapshots in it, sorted by name.
std::vector<std::string> trace_files(const std::vector<std::string>& paths) {
    std::vector<std::string> files;
    for (const std::string& path : paths) {
        std::error_code error;
        if (!fs::is_directory(path, error)) {
            files.push_back(path);
            continue;
        }
        const std::vector<std::string> found = recordings_in(path, &error);
        files.insert(files.end(), found.begin(), found.end());
    }
    return files;
}

// True if the snapshot's history has requests after the memory that was live at its start.
bool has_requests(const Timeline& timeline) {
    const std::size_t begin =
        timeline.checkpoints.empty() ? 0 : std::size_t{timeline.checkpoints.back().end} + 1;
    for (std::size_t i = begin; i < timeline.events.size(); ++i) {
        const EventKind kind = timeline.events.kind(i);
        if (kind == EventKind::kBlockAlloc || kind == EventKind::kBlockOutOfMemory) {
            return true;
        }
    }
    return false;
}

// Snapshots and imports have no index, so they are read completely.
Result<TraceOutline> outline_of(const std::string& file, bool absorb) {
    if (is_summaries_file(file)) {
        return Error{ErrorCode::kInput,
                     file + ": is a file of summaries, which `fraganalyze " + shell_quoted(file) +
                         "` shows. Give traces or snapshots to list."};
    }
    const std::string import = import_name(file);
    if (import.empty() && !is_snapshot(file)) {
        if (absorb) {
            if (const auto taken_over = take_over_ring(file); !taken_over) {
                return taken_over.error();
            }
        }
        Result<TraceOutline> outline = read_outline(file);
        if (outline && outline->damaged) {
            outline->end = end_despite_damage(outline->end, outline->killed);
        }
        return outline;
    }
    const Result<Timeline> timeline = read_input(file);
    if (!timeline) {
        return timeline.error();
    }
    TraceOutline outline;
    outline.path = file;
    outline.start_unix_ns = timeline->start_unix_ns;
    outline.events = timeline->events.size();
    outline.end = process_end(*timeline);
    outline.snapshot = import.empty();
    outline.import = import;
    outline.state_only = !has_requests(*timeline);
    return outline;
}

struct Listed {
    std::vector<TraceOutline> outlines;
    std::vector<UnreadableTrace> unreadable;
    std::size_t files = 0;
};

// A trace without a job matches any job.
Listed read_outlines(const ListOptions& options) {
    Listed listed;
    for (const std::string& file : trace_files(options.paths)) {
        Result<TraceOutline> outline =
            guarded(file, [&] { return outline_of(file, options.absorb); });
        ++listed.files;
        if (!outline) {
            listed.unreadable.push_back(
                {fs::path(file).filename().string(), outline.error().message});
        } else if (options.job.empty() || outline->job.empty() || outline->job == options.job) {
            listed.outlines.push_back(std::move(outline).value());
        }
    }
    return listed;
}

std::string heading(const std::vector<TraceOutline>& outlines) {
    const std::string& job = outlines.front().job;
    const bool one_job = std::all_of(
        outlines.begin(), outlines.end(), [&](const TraceOutline& o) { return o.job == job; });
    return format_counted(outlines.size(), "trace", "traces") +
           (one_job && !job.empty() ? fmt::format(" of job {}", printable(job)) : "") + ":\n";
}

std::string line_of(const TraceOutline& outline) {
    if (outline.snapshot) {
        return outline.state_only
                   ? std::string("snapshot, state at one moment")
                   : "snapshot, " + format_counted(outline.events, "event", "events");
    }
    if (!outline.import.empty()) {
        return outline.import + ", " + format_counted(outline.events, "event", "events");
    }
    std::string text = fmt::format("pid {}", outline.pid);
    const JobPlace& place = outline.place;
    if (place.rank >= 0) {
        text += fmt::format(", rank {}", place.rank);
    } else if (place.inherited_rank >= 0) {
        text += fmt::format(", helper of rank {}", place.inherited_rank);
    }
    if (place.generation > 0) {
        text += fmt::format(", generation {}", place.generation);
    }
    if (!place.copy_reason.empty()) {
        text += fmt::format(", copy ({})", printable(place.copy_reason));
    }
    text += fmt::format(
        ", {}, {}", format_counted(outline.events, "event", "events"), ending_text(outline.end));
    if (outline.events_lost != 0) {
        text += fmt::format("; {} LOST", format_counted(outline.events_lost, "event", "events"));
    }
    return text + (outline.damaged ? "; DAMAGED" : "");
}

std::string list_text(const Listed& listed, std::size_t limit) {
    const std::vector<TraceOutline>& outlines = listed.outlines;
    const std::size_t shown = limit == 0 ? outlines.size() : std::min(limit, outlines.size());
    std::vector<std::string> names;
    std::vector<std::string> programs;
    std::size_t name_width = 0;
    std::size_t program_width = 0;
    for (std::size_t i = 0; i < shown; ++i) {
        names.push_back(shell_quoted(outlines[i].path));
        const bool no_program = outlines[i].snapshot || !outlines[i].import.empty();
        programs.push_back(no_program ? "-" : command_text(outlines[i].command_line));
        name_width = std::max(name_width, names.back().size());
        program_width = std::max(program_width, programs.back().size());
    }
    std::string text = outlines.empty() ? "" : heading(outlines);
    for (std::size_t i = 0; i < shown; ++i) {
        text += fmt::format("  {:<{}}  {:<{}}  {}\n",
                            names[i],
                            name_width,
                            programs[i],
                            program_width,
                            line_of(outlines[i]));
    }
    if (shown < outlines.size()) {
        text += fmt::format("  and {} more\n", format_count(outlines.size() - shown));
    }
    for (const UnreadableTrace& trace : listed.unreadable) {
        text += "unreadable  " + printable(trace.reason) + "\n";
    }
    return text;
}

std::string list_json(const Listed& listed) {
    using Json = nlohmann::ordered_json;
    Json traces = Json::array();
    for (const TraceOutline& outline : listed.outlines) {
        traces.push_back(
            {{"path", outline.path},
             {"process", outline.pid},
             {"rank", outline.place.rank >= 0 ? Json(outline.place.rank) : Json()},
             {"host", outline.place.host.empty() ? Json() : Json(outline.place.host)},
             {"generation",
              outline.place.generation >= 0 ? Json(outline.place.generation) : Json()},
             {"copy_reason",
              outline.place.copy_reason.empty() ? Json() : Json(outline.place.copy_reason)},
             {"part", outline.place.part},
             {"job", outline.job},
             {"command_line", outline.command_line},
             {"start_unix_ns", outline.start_unix_ns},
             {"events", outline.events},
             {"events_lost", outline.events_lost},
             {"ended", ending_name(outline.end.ending)},
             {"ending", ending_json(outline.end)},
             {"snapshot", outline.snapshot},
             {"import", outline.import.empty() ? Json() : Json(outline.import)},
             {"state_only", outline.state_only},
             {"damaged", outline.damaged}});
    }
    Json unreadable = Json::array();
    for (const UnreadableTrace& trace : listed.unreadable) {
        unreadable.push_back({{"file", trace.file}, {"reason", trace.reason}});
    }
    return Json{{"schema", 1}, {"traces", traces}, {"unreadable", unreadable}}.dump(
               2, ' ', false, Json::error_handler_t::replace) +
           "\n";
}

}  // namespace

Status run_list(int argc, char** argv) {
    CLI::App app(
        "Lists traces, one line each: program, process, rank, events, how it ended. It reads "
        "no events (except of snapshots and imports), and changes nothing without --absorb.\n\n"
        "Examples\n"
        "  fraganalyze list traces/\n"
        "  fraganalyze list traces/ --job 67409f1c2b7a --json - | jq '.traces[].path'\n"
        "  fraganalyze list --absorb traces/    complete the traces of killed processes\n",
        "fraganalyze list");
    ListOptions options;
    CommonOptions common;
    app.add_option("PATH", options.paths, "traces, snapshots, imports, and folders of them")
        ->required();
    app.add_option(
        "--job",
        options.job,
        "list only the traces of this run (FRAGTRACE_JOB), and traces without a run name");
    app.add_option(
        "--limit", options.limit, "most lines to print, then a count of the rest (default: all)");
    app.add_flag("--absorb",
                 options.absorb,
                 "move the last events of killed processes from shared memory into their traces");
    common.add_killed(&app);
    common.add_json(&app);
    if (const Status parsed = parse_arguments(&app, argc, argv); !parsed) {
        return parsed;
    }
    if (!common.killed.empty() && !options.absorb) {
        return Error{ErrorCode::kUsage, "--killed changes a trace and needs --absorb"};
    }
    if (const Status noted = common.note_killed(trace_files(options.paths)); !noted) {
        return noted;
    }
    const Listed listed = read_outlines(options);
    if (!listed.unreadable.empty()) {
        const std::string& reason = listed.unreadable.front().reason;
        const bool one_file = listed.files == 1 && !is_folder(options.paths.front());
        const Status written = !common.json.empty() ? write_output(common.json, list_json(listed))
                               : one_file           ? Status(Ok{})
                                                    : write_text(list_text(listed, options.limit));
        return !written   ? written
               : one_file ? Error{ErrorCode::kInput, reason}
                          : unreadable_in_job(listed.unreadable.size(), listed.files, reason);
    }
    if (!common.json.empty()) {
        return write_output(common.json, list_json(listed));
    }
    const std::vector<TraceOutline>& outlines = listed.outlines;
    std::error_code unknown;
    if (outlines.empty() && options.job.empty() && options.paths.size() == 1 &&
        fs::is_directory(fs::status(options.paths.front(), unknown))) {
        return nothing_in(options.paths.front(), {});
    }
    if (outlines.empty()) {
        return Error{ErrorCode::kInput,
                     fmt::format("{}{}: no trace there that can be listed",
                                 options.paths.front(),
                                 options.paths.size() > 1 ? " ..." : "")};
    }
    return write_text(list_text(listed, options.limit));
}

}  // namespace fragtrace::analyzer
