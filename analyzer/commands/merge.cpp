// fraganalyze merge SUMMARY...: joins summaries of a job's processes into one file.
#include "analyzer/analysis/job/job.h"
#include "analyzer/analysis/job/process_summary_json.h"
#include "analyzer/analysis/job/read_job.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/job.h"
#include "analyzer/commands/registry.h"

#include <string>
#include <vector>

namespace fragtrace::analyzer {

Status run_merge(int argc, char** argv) {
    CLI::App app(
        "Joins summaries of a job's processes into one file, which `fraganalyze FILE` shows. The "
        "order does not matter, and a process that is given twice counts once. So a job can be "
        "joined in parts, and parts again.\n\n"
        "Examples\n"
        "  fraganalyze merge rank*.json -o job.json\n"
        "  fraganalyze merge summaries/ -o job.json     all summaries (and traces) in a folder\n"
        "  fraganalyze job.json",
        "fraganalyze merge");
    std::vector<std::string> inputs;
    std::string output;
    app.add_option("SUMMARY",
                   inputs,
                   "files that `fraganalyze summarize -o` or `merge` wrote, traces, and folders of "
                   "them")
        ->required();
    CommonOptions::add_output(&app, &output)->required();
    if (const Status parsed = parse_arguments(&app, argc, argv); !parsed) {
        return parsed;
    }
    const Result<std::vector<std::string>> paths = recordings_of_job(inputs);
    if (!paths) {
        return paths.error();
    }
    const Job job = read_job(*paths);
    if (job.processes.empty()) {
        return no_process_in(job, paths->front());
    }
    const Status written = write_summaries(output, job.processes, job.unreadable);
    if (written && !job.unreadable.empty()) {
        return unreadable_in_job(
            job.unreadable.size(), traces_of(job), job.unreadable.front().reason);
    }
    return written;
}

}  // namespace fragtrace::analyzer
