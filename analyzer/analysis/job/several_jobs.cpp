#include "analyzer/analysis/job/several_jobs.h"

#include <algorithm>
#include <cstdint>
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

// Where another run begins. Knows the ranks of the run so far; processes come by their start.
class RunSplitter {
  public:
    // Whether this process begins another run: its rank was there and has ended, and so has each
    // other rank, or it begins again while this process runs. A rank that is restarted alone, while
    // the others run on, begins none. `again_at` is when the rank of this process begins again.
    bool begins_run(const ProcessSummary& process, std::uint64_t again_at) {
        const std::uint64_t now = process.start_unix_ns;
        while (!running_.empty() && running_.begin()->first <= now) {
            again_.erase(again_.find(running_.begin()->second));
            running_.erase(running_.begin());
        }
        const auto same_rank = ended_.find(rank_of(process));
        const bool begins = same_rank != ended_.end() && same_rank->second <= now &&
                            (again_.empty() || *again_.rbegin() <= process.ended_at());
        if (begins) {
            ended_.clear();
            running_.clear();
            again_.clear();
        }
        std::uint64_t& end = ended_[rank_of(process)];
        end = std::max(end, process.ended_at());
        running_.emplace(process.ended_at(), again_at);
        again_.insert(again_at);
        return begins;
    }

  private:
    std::map<Rank, std::uint64_t> ended_;                  // when the last of each rank ended
    std::multimap<std::uint64_t, std::uint64_t> running_;  // end, and when its rank begins again
    std::multiset<std::uint64_t> again_;                   // the second numbers of running_
};

// When the rank of each process begins again after its end. ~0: it does not, or it begins again
// before its end. `order` is by start, and has processes with a rank.
std::vector<std::uint64_t> begin_again(const Job& job, const std::vector<std::size_t>& order) {
    std::vector<std::uint64_t> again(order.size(), ~std::uint64_t{0});
    std::map<Rank, std::uint64_t> next;
    for (std::size_t at = order.size(); at-- > 0;) {
        const ProcessSummary& process = job.processes[order[at]];
        const auto known = next.find(rank_of(process));
        if (known != next.end() && known->second >= process.ended_at()) {
            again[at] = known->second;
        }
        next[rank_of(process)] = process.start_unix_ns;
    }
    return again;
}

struct Run {
    std::uint64_t begin_unix_ns = 0;
    std::uint64_t end_unix_ns = 0;  // of all its ranks
    std::vector<std::size_t> members = {};
};

std::vector<Run> runs_of_ranks(const Job& job, const std::vector<std::size_t>& order) {
    const std::vector<std::uint64_t> again = begin_again(job, order);
    std::vector<Run> runs;
    RunSplitter splitter;
    for (std::size_t at = 0; at < order.size(); ++at) {
        const ProcessSummary& process = job.processes[order[at]];
        if (splitter.begins_run(process, again[at]) || runs.empty()) {
            runs.push_back({.begin_unix_ns = process.start_unix_ns});
        }
        runs.back().members.push_back(order[at]);
        runs.back().end_unix_ns = std::max(runs.back().end_unix_ns, process.ended_at());
    }
    return runs;
}

// The run in which a process without a rank began. Between two runs it belongs to the second one.
Run& run_at(std::uint64_t unix_ns, std::vector<Run>* runs) {
    const auto later = std::upper_bound(
        runs->begin(), runs->end(), unix_ns, [](std::uint64_t time, const Run& run) {
            return time < run.begin_unix_ns;
        });
    if (later == runs->begin() || (later != runs->end() && unix_ns >= (later - 1)->end_unix_ns)) {
        return *later;
    }
    return *(later - 1);
}

// Runs one after the other. One run if the start of a process is not known.
std::vector<OneJob> by_time(const Job& job) {
    std::vector<std::size_t> ranks;
    std::vector<std::size_t> others;
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        if (job.processes[i].start_unix_ns == 0) {
            return {};
        }
        (job.processes[i].place.rank < 0 ? others : ranks).push_back(i);
    }
    std::stable_sort(ranks.begin(), ranks.end(), [&job](std::size_t a, std::size_t b) {
        return job.processes[a].start_unix_ns < job.processes[b].start_unix_ns;
    });
    std::vector<Run> runs = runs_of_ranks(job, ranks);
    for (const std::size_t i : others) {
        run_at(job.processes[i].start_unix_ns, &runs).members.push_back(i);
    }
    std::vector<OneJob> jobs;
    for (Run& run : runs) {
        std::sort(run.members.begin(), run.members.end());  // as in `job`
        const std::string& id = job.processes[run.members.front()].place.job_id;
        jobs.push_back({.id = fmt::format("{}{}run-{}", id, id.empty() ? "" : "-", jobs.size() + 1),
                        .is_run = true});
        for (const std::size_t i : run.members) {
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
