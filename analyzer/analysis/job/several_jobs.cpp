#include "analyzer/analysis/job/several_jobs.h"

#include "analyzer/analysis/job/shared_cards.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <iterator>
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

// The processes that began while an earlier process of their rank ran. `by_start` is by start.
std::vector<std::size_t> begun_while_running(const Job& job,
                                             const std::vector<std::size_t>& by_start) {
    std::map<Rank, std::uint64_t> ended;
    std::vector<std::size_t> begun;
    for (const std::size_t i : by_start) {
        const ProcessSummary& process = job.processes[i];
        std::uint64_t& end = ended[rank_of(process)];
        if (process.start_unix_ns < end) {
            begun.push_back(i);
        }
        end = std::max(end, process.ended_at());
    }
    std::sort(begun.begin(), begun.end());
    return begun;
}

// Indices of the ranks, by their start.
std::vector<std::size_t> ranks_by_start(const Job& job) {
    std::vector<std::size_t> ranks;
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        if (job.processes[i].place.rank >= 0) {
            ranks.push_back(i);
        }
    }
    std::stable_sort(ranks.begin(), ranks.end(), [&job](std::size_t a, std::size_t b) {
        return job.processes[a].start_unix_ns < job.processes[b].start_unix_ns;
    });
    return ranks;
}

// Runs that overlap, told apart by their starts: each has all ranks of the world size once, and
// its ranks began closer together than the runs follow each other. Empty if that is not so.
std::vector<Run> runs_by_start(const Job& job, const std::vector<std::size_t>& by_start) {
    std::map<int, std::size_t> begun;  // by rank: how often
    std::vector<Run> runs;
    std::vector<std::uint64_t> last_start;  // of each run
    for (const std::size_t i : by_start) {
        const ProcessSummary& process = job.processes[i];
        const std::size_t at = begun[process.place.rank]++;
        if (at == runs.size()) {
            runs.push_back({.begin_unix_ns = process.start_unix_ns});
            last_start.push_back(0);
        }
        runs[at].members.push_back(i);
        runs[at].end_unix_ns = std::max(runs[at].end_unix_ns, process.ended_at());
        last_start[at] = process.start_unix_ns;
    }
    const auto size =
        static_cast<std::size_t>(std::max(job.processes[by_start.front()].place.world_size, 0));
    for (std::size_t at = 0; at < runs.size(); ++at) {
        if (runs[at].members.size() != size) {
            return {};
        }
        const std::uint64_t spread = last_start[at] - runs[at].begin_unix_ns;
        for (const std::size_t next : {at, at + 1}) {  // the gaps before and after it
            if (next > 0 && next < runs.size() &&
                (runs[next].begin_unix_ns <= last_start[next - 1] ||
                 runs[next].begin_unix_ns - last_start[next - 1] < spread)) {
                return {};
            }
        }
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
    std::vector<std::size_t> others;
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        if (job.processes[i].start_unix_ns == 0) {
            return {};
        }
        if (job.processes[i].place.rank < 0) {
            others.push_back(i);
        }
    }
    std::vector<Run> runs;
    for (Run& run : runs_of_ranks(job, ranks_by_start(job))) {
        std::vector<Run> apart =
            !has_generations(job) && !begun_while_running(job, run.members).empty()
                ? runs_by_start(job, run.members)
                : std::vector<Run>();
        apart = apart.empty() ? std::vector<Run>{std::move(run)} : std::move(apart);
        std::move(apart.begin(), apart.end(), std::back_inserter(runs));
    }
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

// When the processes of a job used a card.
struct CardTime {
    std::uint64_t begin_unix_ns = ~std::uint64_t{0};
    std::uint64_t end_unix_ns = 0;  // the largest number: not known
};

std::map<CardKey, CardTime> card_times(const Job& job) {
    std::map<CardKey, CardTime> times;
    for (const ProcessSummary& process : job.processes) {
        for (const CardKey& card : cards_of(process)) {
            CardTime& time = times[card];
            time.begin_unix_ns = std::min(time.begin_unix_ns, process.start_unix_ns);
            time.end_unix_ns =
                std::max(time.end_unix_ns, process.ended_by().value_or(~std::uint64_t{0}));
        }
    }
    return times;
}

std::string name_of(const OneJob& one) {
    return one.is_run ? one.id : one.id.empty() ? "no job id" : "job " + one.id;
}

void prepare(std::vector<OneJob>* jobs) {
    for (OneJob& one : *jobs) {
        find_survivors(&one.job.processes);
        tell_apart(&one.job.processes);
    }
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
    prepare(&jobs);
    return jobs;
}

std::vector<ProcessSummary> outside_of(const std::vector<OneJob>& jobs, std::size_t of) {
    std::vector<ProcessSummary> outside;
    const std::map<CardKey, CardTime> times = card_times(jobs[of].job);
    for (std::size_t other = 0; other < jobs.size() && !times.empty(); ++other) {
        if (other == of) {
            continue;
        }
        for (const ProcessSummary& process : jobs[other].job.processes) {
            const std::set<CardKey> cards = cards_of(process);
            const bool used = std::any_of(cards.begin(), cards.end(), [&](const CardKey& card) {
                const auto time = times.find(card);
                return time != times.end() && process.start_unix_ns <= time->second.end_unix_ns &&
                       process.ended_by().value_or(~std::uint64_t{0}) >= time->second.begin_unix_ns;
            });
            if (used) {
                ProcessSummary& added = outside.emplace_back(process);
                added.told_apart_by += added.told_apart_by.empty() ? "" : ", ";
                added.told_apart_by += name_of(jobs[other]);
            }
        }
    }
    return outside;
}

std::vector<std::size_t> ranks_again(const Job& job) {
    std::vector<std::size_t> by_start = ranks_by_start(job);
    std::erase_if(by_start, [&job](std::size_t i) { return job.processes[i].start_unix_ns == 0; });
    return begun_while_running(job, by_start);
}

std::vector<std::string> job_ids(const Job& job) {
    std::set<std::string> ids;
    for (const ProcessSummary& process : job.processes) {
        ids.insert(process.place.job_id);
    }
    return {ids.begin(), ids.end()};
}

bool keep_job(const std::string& id, Job* job) {
    std::vector<OneJob> jobs = jobs_in(*job);
    const auto is_wanted = [&id](const OneJob& one) { return one.id == (id == "-" ? "" : id); };
    auto found = std::find_if(jobs.begin(), jobs.end(), is_wanted);
    if (found == jobs.end()) {
        jobs = by_id(*job);
        prepare(&jobs);
        found = std::find_if(jobs.begin(), jobs.end(), is_wanted);
    }
    if (found == jobs.end()) {
        return false;
    }
    job->outside = outside_of(jobs, static_cast<std::size_t>(found - jobs.begin()));
    job->processes = std::move(found->job.processes);
    return true;
}

}  // namespace fragtrace::analyzer
