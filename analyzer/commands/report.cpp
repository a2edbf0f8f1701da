// fraganalyze TRACE: the report as text, JSON or page.
#include "analyzer/analysis/analyze.h"
#include "analyzer/analysis/job/job.h"
#include "analyzer/analysis/job/read_job.h"
#include "analyzer/analysis/job/read_summaries.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/first_screen.h"
#include "analyzer/commands/job.h"
#include "analyzer/commands/long_trace.h"
#include "analyzer/commands/registry.h"
#include "analyzer/report/json/json.h"
#include "analyzer/report/page/page.h"
#include "analyzer/report/page/page_content.h"
#include "analyzer/report/page/page_sources.h"
#include "analyzer/report/text/text.h"
#include "analyzer/support/input_file.h"
#include "analyzer/support/output_file.h"

#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {
namespace {

SummaryCache summary_cache(std::string_view name) {
    return name == "always"  ? SummaryCache::kAlways
           : name == "never" ? SummaryCache::kNever
                             : SummaryCache::kLarge;
}

// `html`: empty = no page. `summary`: at most 25 lines.
Status report_trace(const CommonOptions& common,
                    AnalyzeOptions options,
                    const std::string& html,
                    bool sources,
                    bool summary,
                    bool progress) {
    FirstScreen first_screen(progress);
    options.when_recorded = [&](const Analysis& recorded) { first_screen.show(recorded); };
    const auto analyzed = analyze(common.trace, options);
    first_screen.clear();
    if (!analyzed) {
        return analyzed.error();
    }
    const Analysis& analysis = **analyzed;
    if (!html.empty()) {
        PageData content = page_content(analysis);
        if (sources) {
            add_sources(analysis.timeline.start_unix_ns, {}, &content);
        }
        const auto page = render_page(content);
        if (!page) {
            return page.error();
        }
        Status written = write_output(html, *page);
        if (!written || html == "-") {
            return written;
        }
    }
    if (!common.json.empty()) {
        Status written = write_output(common.json, report_json(analysis));
        if (!written || common.json == "-") {
            return written;
        }
    }
    const Terminal terminal = common.terminal();
    const bool has_page = !html.empty();
    const std::string text = summary ? summary_text(analysis, terminal, has_page)
                                     : report_text(analysis, terminal, has_page);
    Status written = write_text(text);
    if (written && !html.empty()) {
        fmt::print("  page written to {}\n", printable(html));
    }
    return written;
}

struct Arguments {
    CommonOptions common;
    std::string html;
    bool sources = false;
    bool summary = false;
    bool without_whatif = false;
    bool progress = false;
    std::string cache = "large";
    std::string job_id;
    std::vector<std::string> traces;

    void add(CLI::App* app) {
        app->add_option(
               "TRACE",
               traces,
               "a trace that fragtrace recorded, a memory snapshot of PyTorch (pickle), a log of "
               "RMM (CSV), a profile with memory events of PyTorch (JSON), of TensorFlow or JAX "
               "(.xplane.pb), or of Nsight Systems (.sqlite); of a job several, or a folder of "
               "them, or summaries (fraganalyze summarize -o)")
            ->required();
        app->add_option("--html", html, "write the page to FILE ('-' is standard output, instead)")
            ->type_name("FILE")
            ->check(output_fault);
        app->add_flag(
            "--sources",
            sources,
            "copy a few lines of source code around each line of the stacks into the page; "
            "whoever gets the page can read them");
        common.add_json(app);
        common.add_capacity(app);
        common.add_torch_version(app);
        common.add_assumptions(app);
        common.add_categories(app);
        common.add_events(app);
        common.add_color(app);
        app->add_flag("--summary", summary, "print at most 25 lines, for the log of a job");
        app->add_flag("--no-whatif", without_whatif, "skip the what-if replays");
        app->add_option("--cache",
                        cache,
                        "of a folder: keep summaries beside the traces (TRACE.summary.json), so "
                        "that the next "
                        "view of the folder reads only traces that have changed. 'large': of "
                        "traces from 1 MiB "
                        "on, if the folder is yours; 'always': of all traces; 'never': write no "
                        "file (default: "
                        "large)")
            ->check(CLI::IsMember({"large", "always", "never"}))
            ->type_name("WHICH");
        app->add_option(
               "--job-id",
               job_id,
               "of a folder with several jobs: only the traces of this job; '-': those without "
               "a job id")
            ->type_name("ID");
        common.add_killed(app);
        app->add_flag(
            "--progress",
            progress,
            "print progress and first results on standard error, even if it is not a terminal");
    }
};

}  // namespace

Status run_report(int argc, char** argv) {
    CLI::App app(
        "Explains a run: what happened, which lines of the program caused it, and which "
        "change avoids it.\n\n"
        "Examples\n"
        "  fraganalyze train.myhost.4711.ftrace\n"
        "  fraganalyze train.myhost.4711.ftrace --html timeline.html --json report.json\n"
        "  fraganalyze traces/ [--json job.json]    a job: which process failed first, and why\n"
        "  fraganalyze traces/ --html job.html      all processes of a job on one page\n",
        "fraganalyze report");
    Arguments arguments;
    arguments.add(&app);
    auto& [common, html, sources, summary, without_whatif, progress, cache, job_id, traces] =
        arguments;
    if (const Status parsed = parse_arguments(&app, argc, argv); !parsed) {
        return parsed;
    }
    if (html == "-" && common.json == "-") {
        return Error{ErrorCode::kUsage, "--html and --json cannot both go to standard output"};
    }
    std::error_code unknown;
    if (!html.empty() && html != "-" &&
        std::filesystem::weakly_canonical(html, unknown) ==
            std::filesystem::weakly_canonical(common.json, unknown) &&
        !unknown) {
        return Error{ErrorCode::kUsage, html + ": --html and --json need two files"};
    }
    if (sources && html.empty()) {
        return Error{ErrorCode::kUsage, "--sources copies into a page: add --html FILE"};
    }
    auto options = common.analyze_options();
    if (!options) {
        return options.error();
    }
    options->absorb_ring = true;
    if (progress) {
        Progress::show_everywhere();
    }
    if (Status noted = common.note_killed(traces); !noted) {
        return noted;
    }
    if (!without_whatif) {
        add_report_replays(&*options);
        // The text report has no room for other pools. The whatif table, the JSON and the page show
        // them.
        options->pools = !summary && !(html.empty() && common.json.empty());
    }
    common.trace = traces.front();
    const bool folder = traces.size() == 1 && is_folder(common.trace);
    if (folder || traces.size() > 1 || is_summaries_file(common.trace)) {
        // The summary at the end of a run leaves nothing in the user's folder.
        return report_job(
            {.folder = folder ? common.trace : std::string(),
             .traces = traces,
             .job_id = job_id,
             .json = common.json,
             .html = html,
             .sources = sources,
             .summary = summary,
             .options = *options,
             .cache = folder && !summary ? summary_cache(cache) : SummaryCache::kNever},
            common.terminal());
    }
    if (!job_id.empty()) {
        return Error{ErrorCode::kUsage,
                     "--job-id chooses among the traces of a folder. Give a folder or several "
                     "traces."};
    }
    if (summary && is_long_trace(common.trace)) {
        const auto text = summarize_long_trace(common.trace, common.terminal());
        return text ? write_text(*text) : Status(text.error());
    }
    return report_trace(common, std::move(options).value(), html, sources, summary, progress);
}

}  // namespace fragtrace::analyzer
