#include "analyzer/analysis/job/several_jobs.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

namespace fragtrace::analyzer {
namespace {

using Rank = std::pair<int, int>;  // generation, rank

Rank rank_of(const ProcessSummary& process) {
    return {generation_of(process), process.place.rank};
}

// Whether two processes with different job ids have the same rank.
bool is_mixed(const Job& job) {
    std::map<Rank, std::string_view> known;
    return std::any_of(
        job.processes.begin(), job.processes.end(), [&known](const ProcessSummary& process) {
            const std::string_view id = process.place.job_id;
            return process.place.rank >= 0 &&
                   known.emplace(rank_of(process), id).first->second != id;
        });
}

bool has_rank_twice(const Job& job) {
    std::set<Rank> ranks;
    return std::any_of(
        job.processes.begin(), job.processes.end(), [&ranks](const ProcessSummary& process) {
            return process.place.rank >= 0 && !ranks.insert(rank_of(process)).second;
        });
}

std::uint64_t start_of(const Job& job) {
    std::uint64_t start = ~std::uint64_t{0};
    for (const ProcessSummary& process : job.processes) {
        start = std::min(start, process.start_unix_ns);
    }
    return start;
}

void add(const Job& from, std::size_t i, OneJob* one) {
    one->members.push_back(i);
    one->job.processes.push_back(from.processes[i]);
}

std::vector<OneJob> by_id(const Job& job) {
    std::vector<OneJob> jobs;
    std::map<std::string_view, std::size_t> known;
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        const std::string& id = job.processes[i].place.job_id;
        const auto [at, is_new] = known.emplace(id, jobs.size());
        if (is_new) {
            jobs.push_back({.id = id});
        }
        add(job, i, &jobs[at->second]);
    }
    std::stable_sort(jobs.begin(), jobs.end(), [](const OneJob& a, const OneJob& b) {
        return std::tuple(a.id.empty(), start_of(a.job)) <
               std::tuple(b.id.empty(), start_of(b.job));
    });
    return jobs;
}

// Runs one after the other. One run if the start of a process is not known.
std::vector<OneJob> by_time(const Job& job) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        if (job.processes[i].start_unix_ns == 0) {
            return {};
        }
        order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&job](std::size_t a, std::size_t b) {
        return job.processes[a].start_unix_ns < job.processes[b].start_unix_ns;
    });
    std::vector<std::vector<std::size_t>> runs(1);
    std::set<Rank> ranks;
    std::uint64_t end_unix_ns = 0;  // of all processes of the run
    for (const std::size_t i : order) {
        const ProcessSummary& process = job.processes[i];
        if (process.place.rank >= 0 && ranks.contains(rank_of(process)) &&
            process.start_unix_ns >= end_unix_ns) {
            runs.emplace_back();
            ranks.clear();
        }
        runs.back().push_back(i);
        ranks.insert(rank_of(process));
        end_unix_ns = std::max(end_unix_ns, process.ended_at());
    }
    std::vector<OneJob> jobs;
    for (std::vector<std::size_t>& run : runs) {
        std::sort(run.begin(), run.end());  // as in `job`
        const std::string& id = job.processes[run.front()].place.job_id;
        jobs.push_back({.id = fmt::format("{}{}run-{}", id, id.empty() ? "" : "-", jobs.size() + 1),
                        .is_run = true});
        for (const std::size_t i : run) {
            add(job, i, &jobs.back());
        }
    }
    return jobs;
}

}  // namespace

std::vector<OneJob> jobs_in(const Job& job) {
    std::vector<OneJob> jobs;
    if (!is_mixed(job)) {
        jobs = has_rank_twice(job) ? by_time(job) : std::vector<OneJob>();
    } else {
        for (OneJob& one : by_id(job)) {
            std::vector<OneJob> runs =
                has_rank_twice(one.job) ? by_time(one.job) : std::vector<OneJob>();
            if (runs.size() < 2) {
                jobs.push_back(std::move(one));
                continue;
            }
            for (OneJob& run : runs) {
                for (std::size_t& member : run.members) {
                    member = one.members[member];
                }
                jobs.push_back(std::move(run));
            }
        }
    }
    if (jobs.size() < 2) {
        return {};
    }
    for (OneJob& one : jobs) {
        tell_apart(&one.job.processes);
    }
    return jobs;
}

std::vector<std::string> job_ids(const Job& job) {
    std::set<std::string> ids;
    for (const ProcessSummary& process : job.processes) {
        ids.insert(process.place.job_id);
    }
    return {ids.begin(), ids.end()};
}

bool keep_job(const std::string& id, Job* job) {
    for (OneJob& one : jobs_in(*job)) {
        if (one.is_run && one.id == id) {
            job->processes = std::move(one.job.processes);
            return true;
        }
    }
    const auto other = [&id](const ProcessSummary& process) {
        return process.place.job_id != (id == "-" ? "" : id);
    };
    if (std::all_of(job->processes.begin(), job->processes.end(), other)) {
        return false;
    }
    std::erase_if(job->processes, other);
    tell_apart(&job->processes);
    return true;
}

}  // namespace fragtrace::analyzer
