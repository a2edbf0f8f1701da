#include "analyzer/analysis/job/generation_ends.h"

#include "analyzer/analysis/job/first_failure.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;

// Whether an out-of-memory of another host came within a second after the first one.
bool as_early(const ProcessSummary& first, const ProcessSummary& other, std::uint64_t oom_ns) {
    const auto at_ns = first.named_oom();
    return at_ns && other.place.host != first.place.host && oom_ns - *at_ns < kSecondNs;
}

// Whether `other` may have failed before `first`, because the end of `first` is not known exactly.
bool maybe_earlier(const ProcessSummary& first, const ProcessSummary& other) {
    const auto latest = first.ended_by();
    return !first.first_oom() && (!latest || other.ended_at() < *latest) &&
           ended_by_others(first) == ended_by_others(other);
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

}  // namespace

std::vector<GenerationEnd> generation_ends(const Job& job) {
    using Key = std::tuple<int, int, int>;

    struct Ends {
        GenerationEnd made;
        std::map<Key, std::pair<ProcessEnd, std::size_t>> otherwise;
    };

    std::map<int, Ends> generations;
    for (const FirstFailure& first : first_failures(job)) {
        generations[generation_of(job.processes[first.process])].made.first = first;
    }
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        const ProcessSummary& process = job.processes[i];
        auto& [made, otherwise] = generations[generation_of(process)];
        ++made.processes;
        if (made.first && made.first->process == i) {
            continue;
        }
        if (const auto oom = process.named_oom()) {
            ++made.also_out_of_memory;
            if (!made.as_early && made.first &&
                as_early(job.processes[made.first->process], process, *oom)) {
                made.as_early = i;
            }
        } else if (process.end.failed()) {
            const Key key{static_cast<int>(process.end.ending),
                          process.end.code.value_or(-1),
                          process.end.signal.value_or(-1)};
            auto& [end, count] = otherwise[key];
            end = process.end;
            ++count;
            if (!made.maybe_earlier && made.first &&
                maybe_earlier(job.processes[made.first->process], process)) {
                made.maybe_earlier = i;
            }
        } else {
            ++made.did_not_fail;
        }
    }
    std::map<int, GenerationRanks> all_ranks = ranks_by_generation(job);
    std::vector<GenerationEnd> all;
    for (auto& [generation, ends] : generations) {
        ends.made.generation = generation;
        ends.made.world_size = all_ranks[generation].world_size;
        find_missing(all_ranks[generation].ranks, &ends.made);
        std::vector<std::pair<ProcessEnd, std::size_t>>& failed = ends.made.failed_otherwise;
        for (const auto& [key, end] : ends.otherwise) {
            failed.push_back(end);
        }
        std::stable_sort(failed.begin(), failed.end(), [](const auto& a, const auto& b) {
            return a.second > b.second;
        });
        all.push_back(std::move(ends.made));
    }
    return all;
}

}  // namespace fragtrace::analyzer
