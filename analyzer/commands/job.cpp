#include "analyzer/commands/job.h"

#include "analyzer/analysis/analyze.h"
#include "analyzer/analysis/job/card_moments.h"
#include "analyzer/analysis/job/first_failure.h"
#include "analyzer/analysis/job/job.h"
#include "analyzer/analysis/job/job_view.h"
#include "analyzer/analysis/job/read_job.h"
#include "analyzer/analysis/job/several_jobs.h"
#include "analyzer/commands/job_page.h"
#include "analyzer/commands/long_trace.h"
#include "analyzer/report/json/job_json.h"
#include "analyzer/report/text/job_failure_text.h"
#include "analyzer/report/text/job_text.h"
#include "analyzer/report/text/judged_process.h"
#include "analyzer/report/text/text.h"
#include "analyzer/snapshot/input.h"
#include "analyzer/support/guarded.h"
#include "analyzer/support/input_file.h"
#include "analyzer/support/output_file.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {
namespace {

// One of each group is replayed, up to this number of groups.
constexpr std::size_t kMostReplayed = 4;
// Of an elastic job that fails again and again, the first failures of these generations are
// explained.
constexpr std::size_t kMostGenerations = 8;
// If there are more jobs in one folder, only a table of them is printed.
constexpr std::size_t kMostViews = 3;

// The file that explains why a process failed.
const std::string& path_of_failure(const ProcessSummary& process) {
    return process.failure_path.empty() ? process.path : process.failure_path;
}

// Writes the summary of the process that failed first. If none failed, of the first recording.
Status write_first_summary(const AnalyzeOptions& options,
                           const Job& job,
                           const std::string& first_path,
                           const Terminal& terminal) {
    const auto failure = first_failure(job);
    const std::string path =
        failure ? path_of_failure(job.processes[failure->process]) : first_path;
    std::string first =
        failure ? terminal.styled(Style::kBold, first_failure_text(job, *failure)) + "\n" : "";
    for (const FirstFailure& other : first_failures(job)) {
        if (other.process != failure->process) {
            first += first_failure_text(job, other) + "\n";
        }
    }
    if (failure && path.empty()) {
        return write_text(first + "Its trace is not in this folder, only a summary of it.\n");
    }
    if (is_long_trace(path)) {
        const auto text = summarize_long_trace(path, terminal);
        return text ? write_text(first + *text) : Status(text.error());
    }
    const auto analyzed = analyze(path, options);
    if (!analyzed) {
        return analyzed.error();
    }
    return write_text(first + summary_text(**analyzed, terminal));
}

// Whether summaries can have the replays of these options: those of a report without options.
bool are_usual(const AnalyzeOptions& options) {
    constexpr ReplayAssumptions kUsual;
    const ReplayAssumptions& assumed = options.assumptions;
    return !options.capacity_bytes && options.torch_version.empty() && !options.categories &&
           assumed.pending == kUsual.pending &&
           assumed.driver_page_bytes == kUsual.driver_page_bytes && !assumed.context_bytes;
}

// Replays that were kept were made without the options of this command. A failure stays explained
// if its trace is not at hand.
void forget_replays(Job* job) {
    for (ProcessSummary& process : job->processes) {
        process.replayed = false;
        process.analysed = process.analysed && process.path.empty();
        for (ProcessDevice& device : process.devices) {
            device.settings.clear();
            device.cards.clear();
            if (!process.analysed) {
                device.failures.clear();
            }
        }
    }
}

// Explains the first failure of each generation, and replays one process of each group.
Status explain_job(const JobRequest& request, Job* job) {
    std::vector<FirstFailure> failures = first_failures(*job);
    failures.resize(std::min(failures.size(), kMostGenerations));
    const std::vector<std::size_t> chosen =
        representatives(*job, kMostReplayed + std::max<std::size_t>(failures.size(), 1) - 1);
    Progress progress("replaying");
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        progress.show(i, chosen.size());
        ProcessSummary& process = job->processes[chosen[i]];
        const bool first =
            std::any_of(failures.begin(), failures.end(), [&](const FirstFailure& failure) {
                return (failure.out_of_memory && failure.process == chosen[i]) ||
                       failure.later_oom == chosen[i];
            });
        if (!request.options.settings && !(first && !process.analysed)) {
            continue;  // --no-whatif
        }
        AnalyzeOptions options = request.options;
        options.remedies = options.remedies && first;
        Status explained = explain_process(options, &process);
        if (!explained && explained.error().code == ErrorCode::kUsage) {
            return explained;
        }
        if (explained && process.analysed && process.other_files.empty() &&
            are_usual(request.options)) {
            keep_summary(process, request.cache);
        }
    }
    return Ok{};
}

// The view of one job.
std::string view_text(const Job& job, const Terminal& terminal) {
    JobView view = view_of(job);
    add_moments(job, &view);
    return job_text(job, view, terminal);
}

// The views of two or three jobs, one after the other, or a table of more jobs. The processes of
// `job` get the explanations.
Result<std::string> jobs_text(const JobRequest& request,
                              std::vector<OneJob> jobs,
                              const Terminal& terminal,
                              Job* job) {
    if (jobs.size() > kMostViews) {
        return jobs_table(jobs, request.folder) + unreadable_text(*job, terminal);
    }
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        jobs[i].job.outside = outside_of(jobs, i);
    }
    std::string text;
    for (OneJob& one : jobs) {
        if (const Status explained = explain_job(request, &one.job); !explained) {
            return explained.error();
        }
        text += job_heading(one) + "\n" + view_text(one.job, terminal);
        for (std::size_t i = 0; i < one.members.size(); ++i) {
            job->processes[one.members[i]] = std::move(one.job.processes[i]);
        }
    }
    return text + unreadable_text(*job, terminal);
}

// Says of which job or run the view is, if --job-id chose it.
std::string chosen_text(const JobRequest& request, const Job& job) {
    return request.job_id.empty()
               ? ""
               : fmt::format("--job-id {}: {}\n",
                             printable(request.job_id),
                             format_counted(job.processes.size(), "process", "processes"));
}

// What --job-id takes.
std::string names_of_jobs(const Job& job) {
    constexpr std::size_t kMostNames = 8;
    std::vector<std::string> names;
    for (const OneJob& one : jobs_in(job)) {
        names.push_back(one.id);
    }
    names = names.empty() ? job_ids(job) : names;
    std::string text;
    for (std::size_t i = 0; i < std::min(names.size(), kMostNames); ++i) {
        text += (i == 0 ? "" : ", ") + (names[i].empty() ? "-" : printable(names[i]));
    }
    return text + (names.size() > kMostNames ? ", ..." : "");
}

Error no_such_job(const Job& job, const std::string& id) {
    return {ErrorCode::kInput,
            fmt::format("--job-id {}: no trace of this job. Give one of: {}",
                        printable(id),
                        names_of_jobs(job))};
}

Error several_jobs_on_page(const Job& job) {
    return {
        ErrorCode::kInput,
        fmt::format("--html: the traces are of several jobs, and a page shows one. Add --job-id "
                    "with one of: {}",
                    names_of_jobs(job))};
}

// Explains the failures of the job or, if the traces are of several jobs, of each; `text` is then
// the text of all.
Status explain_all(const JobRequest& request,
                   const Terminal& terminal,
                   Job* job,
                   std::string* text) {
    std::vector<OneJob> jobs = jobs_in(*job);
    if (jobs.empty()) {
        return explain_job(request, job);
    }
    if (!request.html.empty()) {
        return several_jobs_on_page(*job);
    }
    Result<std::string> made = jobs_text(request, std::move(jobs), terminal, job);
    if (!made) {
        return made.error();
    }
    *text = std::move(made).value();
    return Ok{};
}

}  // namespace

Status explain_process(AnalyzeOptions options, ProcessSummary* process) {
    if (process->events > kLongTrace || process->path.empty()) {
        return Ok{};
    }
    options.pools = false;  // a summary has no room for other pools
    const auto analyzed =
        guarded(process->path, [&] { return analyze(path_of_failure(*process), options); });
    if (!analyzed) {
        return analyzed.error();
    }
    add_judgement(**analyzed, process);
    return Ok{};
}

namespace {

// The first folder below `folder` that has recordings; empty = none. Looks three folders deep, and
// at the first thousand folders.
std::string subfolder_with_recordings(const std::string& folder) {
    namespace fs = std::filesystem;
    constexpr std::size_t kMostFolders = 1000;
    constexpr int kMostDepth = 2;
    std::error_code failed;
    std::size_t folders = 0;
    for (fs::recursive_directory_iterator
             at(folder, fs::directory_options::skip_permission_denied, failed),
         end;
         !failed && at != end && folders < kMostFolders;
         at.increment(failed)) {
        std::error_code unknown;
        if (!at->is_directory(unknown)) {
            continue;
        }
        ++folders;
        if (at.depth() >= kMostDepth) {
            at.disable_recursion_pending();
        }
        if (!recordings_in(at->path().string(), &unknown).empty()) {
            return at->path().string();
        }
    }
    return "";
}

}  // namespace

Error nothing_in(const std::string& folder, const std::error_code& failure) {
    if (failure) {
        return {ErrorCode::kInput,
                fmt::format("{}: {}. Give a folder that you can read.", folder, failure.message())};
    }
    const std::string below = subfolder_with_recordings(folder);
    return {ErrorCode::kInput,
            fmt::format("{}: no traces, snapshots or summaries in it. {}",
                        folder,
                        below.empty() ? "Give a trace (*.ftrace), a snapshot (*.pickle, *.pkl), a "
                                        "summary (of `fraganalyze summarize -o`), or a folder of "
                                        "them."
                                      : "Its subfolders are not read, and " + below +
                                            " has traces: give that folder, or several folders.")};
}

Result<std::vector<std::string>> recordings_of_job(const std::string& folder) {
    std::error_code failed;
    std::vector<std::string> paths = files_of_job(folder, &failed);
    if (failed || paths.empty()) {
        return nothing_in(folder, failed);
    }
    return paths;
}

Result<std::vector<std::string>> recordings_of_job(const std::vector<std::string>& inputs) {
    std::vector<std::string> paths;
    for (const std::string& input : inputs) {
        if (!is_folder(input)) {
            paths.push_back(input);
            continue;
        }
        const Result<std::vector<std::string>> found = recordings_of_job(input);
        if (!found) {
            return found.error();
        }
        paths.insert(paths.end(), found->begin(), found->end());
    }
    return paths;
}

Error no_process_in(const Job& job, const std::string& path) {
    return {ErrorCode::kInput,
            job.unreadable.empty() ? path + ": no process in it. Give summaries or traces."
                                   : job.unreadable.front().reason};
}

Error unreadable_in_job(std::size_t unreadable, std::size_t all, const std::string& first_reason) {
    return {ErrorCode::kInput,
            fmt::format("{} of {} cannot be read; the first: {}",
                        unreadable,
                        format_counted(all, "trace", "traces"),
                        first_reason)};
}

// Writes the page and the JSON, and adds the view to `text`.
Status write_views(const JobRequest& request,
                   const Terminal& terminal,
                   Job* job,
                   std::string* text) {
    JobView view = view_of(*job);
    add_moments(*job, &view);
    if (!request.html.empty()) {
        if (Status written = write_job_page(request, view, job); !written) {
            return written;
        }
    }
    if (text->empty()) {
        *text = chosen_text(request, *job) + job_text(*job, view, terminal);
    }
    return request.json.empty() ? Status(Ok{})
                                : write_output(request.json, job_json(request.folder, *job, view));
}

Status report_job(const JobRequest& request, const Terminal& terminal) {
    const Result<std::vector<std::string>> found = recordings_of_job(request.traces);
    if (!found) {
        return found.error();
    }
    const std::vector<std::string>& paths = *found;
    Job job;
    {
        Progress progress("reading");
        job = read_job(paths, request.cache, [&](std::size_t done, std::size_t all) {
            progress.show(done, all);
        });
    }
    if (!are_usual(request.options)) {
        forget_replays(&job);
    }
    const std::size_t traces = traces_of(job);
    arrange(&job);
    if (job.processes.empty() && job.unreadable.empty()) {
        return no_process_in(job, paths.front());
    }
    if (!request.job_id.empty() && !keep_job(request.job_id, &job)) {
        return no_such_job(job, request.job_id);
    }
    if (request.summary) {
        return write_first_summary(request.options, job, paths.front(), terminal);
    }
    std::string text;
    if (Status explained = explain_all(request, terminal, &job, &text); !explained) {
        return explained;
    }
    Status written = Ok{};
    if (text.empty() || !request.json.empty()) {
        written = write_views(request, terminal, &job, &text);
    }
    if (written && request.json != "-" && request.html != "-") {
        written = write_text(
            text + (job.processes.empty()
                        ? ""
                        : "Peaks are per process. Next: fraganalyze TRACE for one process.\n"));
        if (written && !request.html.empty()) {
            fmt::print("  page written to {}\n", printable(request.html));
        }
    }
    if (written && !job.unreadable.empty()) {
        return unreadable_in_job(job.unreadable.size(), traces, job.unreadable.front().reason);
    }
    return written;
}

}  // namespace fragtrace::analyzer
