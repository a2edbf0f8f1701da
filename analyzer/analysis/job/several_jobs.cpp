#include "analyzer/analysis/job/several_jobs.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace fragtrace::analyzer {
namespace {

bool is_mixed(const Job& job) {
    std::map<std::pair<int, int>, std::string_view> known;  // of a generation's rank
    return std::any_of(
        job.processes.begin(), job.processes.end(), [&known](const ProcessSummary& process) {
            const JobPlace& place = process.place;
            if (place.job_id.empty() || place.rank < 0) {
                return false;
            }
            const auto at = known.emplace(std::pair(generation_of(process), place.rank),
                                          std::string_view(place.job_id));
            return at.first->second != place.job_id;
        });
}

std::uint64_t start_of(const Job& job) {
    std::uint64_t start = ~std::uint64_t{0};
    for (const ProcessSummary& process : job.processes) {
        start = std::min(start, process.start_unix_ns);
    }
    return start;
}

}  // namespace

std::vector<OneJob> jobs_in(const Job& job) {
    std::vector<OneJob> jobs;
    if (!is_mixed(job)) {
        return jobs;
    }
    std::map<std::string_view, std::size_t> known;
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        const std::string& id = job.processes[i].place.job_id;
        const auto [at, is_new] = known.emplace(id, jobs.size());
        if (is_new) {
            jobs.push_back({.id = id});
        }
        jobs[at->second].members.push_back(i);
        jobs[at->second].job.processes.push_back(job.processes[i]);
    }
    std::stable_sort(jobs.begin(), jobs.end(), [](const OneJob& a, const OneJob& b) {
        return std::tuple(a.id.empty(), start_of(a.job)) <
               std::tuple(b.id.empty(), start_of(b.job));
    });
    return jobs;
}

bool keep_job(const std::string& id, Job* job) {
    const auto other = [&id](const ProcessSummary& process) {
        return process.place.job_id != (id == "-" ? "" : id);
    };
    if (std::all_of(job->processes.begin(), job->processes.end(), other)) {
        return false;
    }
    std::erase_if(job->processes, other);
    return true;
}

}  // namespace fragtrace::analyzer
