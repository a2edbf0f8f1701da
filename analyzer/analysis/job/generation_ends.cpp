#include "analyzer/analysis/job/generation_ends.h"

#include "analyzer/analysis/job/first_failure.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace fragtrace::analyzer {
namespace {

// Whether a process of another host failed about when the first one did. After an out-of-memory,
// only others count: ended_before() decides about ends.
bool as_early(const Job& job, const FirstFailure& first, const ProcessSummary& other) {
    const auto oom = other.fatal_oom();
    if (other.place.same_machine(job.processes[first.process].place) || ended_by_others(other) ||
        (first.out_of_memory && !oom)) {
        return false;
    }
    const std::uint64_t at = oom ? *oom : other.ended_at();
    return std::max(at, first.at_unix_ns) - std::min(at, first.at_unix_ns) < kClocksDifferNs;
}

// Whether a process that failed without an out-of-memory, or whose end is unknown, may have failed
// before the first failure.
bool maybe_earlier(const Job& job, const FirstFailure& first, const ProcessSummary& other) {
    if (first.out_of_memory) {
        return ended_before(other, first.at_unix_ns, job.processes[first.process].place) ==
               EndedBefore::kPerhaps;
    }
    return (!ended_by_others(other) || ended_by_others(job.processes[first.process])) &&
           (!first.until_unix_ns || other.ended_at() < *first.until_unix_ns);
}

// The ranks below the world size that are not among `ranks`.
void find_missing(const std::set<int>& ranks, GenerationEnd* made) {
    constexpr std::size_t kMostRanges = 8;
    const int end = static_cast<int>(made->world_size);
    int next = 0;
    const auto skip_to = [&](int rank) {
        if (rank > next) {
            made->ranks_missing += static_cast<std::size_t>(rank - next);
            if (made->missing.size() < kMostRanges) {
                made->missing.emplace_back(next, rank - 1);
            }
        }
        next = rank == end ? end : rank + 1;
    };
    for (auto rank = ranks.begin(); rank != ranks.end() && *rank < end; ++rank) {
        skip_to(*rank);
    }
    skip_to(end);
}

// Counts processes by how they ended.
class EndCounts {
  public:
    void add(const ProcessEnd& end) {
        auto& [kept, count] =
            counts_[{static_cast<int>(end.ending), end.code.value_or(-1), end.signal.value_or(-1)}];
        kept = end;
        ++count;
    }

    // Most frequent first.
    [[nodiscard]] std::vector<std::pair<ProcessEnd, std::size_t>> sorted() const {
        std::vector<std::pair<ProcessEnd, std::size_t>> ends;
        for (const auto& [key, end] : counts_) {
            ends.push_back(end);
        }
        std::stable_sort(ends.begin(), ends.end(), [](const auto& a, const auto& b) {
            return a.second > b.second;
        });
        return ends;
    }

  private:
    std::map<std::tuple<int, int, int>, std::pair<ProcessEnd, std::size_t>> counts_;
};

struct Ends {
    GenerationEnd made;
    EndCounts before;
    EndCounts perhaps;
    EndCounts otherwise;

    void add_first(const Job& job, std::size_t i) {
        ++made.processes;
        add_if_end_unknown(job, i);
    }

    // A process that is not the first failure.
    void add(const Job& job, std::size_t i) {
        const ProcessSummary& process = job.processes[i];
        const bool fatal = process.fatal_oom().has_value();
        if (process.first_oom() && !fatal) {
            ++made.got_past_oom;
            made.got_past_before +=
                made.first && *process.first_oom() < made.first->at_unix_ns ? 1 : 0;
        }
        if (process.has_later_program) {
            return;  // that one counts
        }
        ++made.processes;
        add_if_end_unknown(job, i);
        if (fatal && process.rank_ended_normally) {
            ++made.helpers_out_of_memory;
            return;
        }
        if (fatal) {
            ++made.also_out_of_memory;
        } else if (process.end.failed()) {
            counts_of(job, process).add(process.end);
        } else if (!process.end.unknown()) {
            ++made.did_not_fail;
            return;
        }
        if (made.first) {
            look_at_time(job, i, fatal);
        }
    }

  private:
    void add_if_end_unknown(const Job& job, std::size_t i) {
        if (job.processes[i].end.unknown()) {
            made.end_unknown.push_back(i);
        }
    }

    EndCounts& counts_of(const Job& job, const ProcessSummary& process) {
        if (!made.first || !(made.first->out_of_memory || ended_by_others(process))) {
            return otherwise;
        }
        switch (ended_before(
            process, made.first->at_unix_ns, job.processes[made.first->process].place)) {
            case EndedBefore::kYes:
                return before;
            case EndedBefore::kPerhaps:
                return perhaps;
            case EndedBefore::kNo:
                break;
        }
        return otherwise;
    }

    void look_at_time(const Job& job, std::size_t i, bool fatal) {
        const ProcessSummary& process = job.processes[i];
        if (!made.as_early && !process.end.unknown() && as_early(job, *made.first, process)) {
            made.as_early = i;
        }
        const bool earliest = !made.maybe_earlier ||
                              process.ended_at() < job.processes[*made.maybe_earlier].ended_at();
        if (!fatal && earliest && maybe_earlier(job, *made.first, process)) {
            made.maybe_earlier = i;
        }
    }
};

}  // namespace

std::vector<GenerationEnd> generation_ends(const Job& job) {
    std::map<int, Ends> generations;
    for (const FirstFailure& first : first_failures(job)) {
        generations[generation_of(job.processes[first.process])].made.first = first;
    }
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        const ProcessSummary& process = job.processes[i];
        Ends& ends = generations[generation_of(process)];
        if (ends.made.first && ends.made.first->process == i) {
            ends.add_first(job, i);
        } else if (ends.made.first &&
                   same_process(process, job.processes[ends.made.first->process])) {
            ends.made.earlier_program_got_past =
                ends.made.earlier_program_got_past ||
                (process.end.ending == Ending::kExec && process.first_oom());
        } else {
            ends.add(job, i);
        }
    }
    std::map<int, GenerationRanks> all_ranks = ranks_by_generation(job);
    std::vector<GenerationEnd> all;
    for (auto& [generation, ends] : generations) {
        ends.made.generation = generation;
        ends.made.world_size = all_ranks[generation].world_size;
        find_missing(all_ranks[generation].ranks, &ends.made);
        ends.made.failed_before = ends.before.sorted();
        ends.made.perhaps_before = ends.perhaps.sorted();
        ends.made.failed_otherwise = ends.otherwise.sorted();
        all.push_back(std::move(ends.made));
    }
    return all;
}

}  // namespace fragtrace::analyzer
