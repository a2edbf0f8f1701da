#include "analyzer/analysis/job/first_failure.h"

#include <algorithm>
#include <csignal>
#include <string_view>
#include <tuple>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kFirstFailures = 6;

// A sort key: processes that failed first come first. All processes that did not fail have equal
// keys.
auto order_of_failure(const ProcessSummary& process) {
    const auto oom = process.named_oom();
    const std::uint64_t at = oom ? *oom : process.end.failed() ? process.ended_at() : 0;
    const bool final = process.final_oom().has_value();
    return std::tuple(
        !oom, !final, !final && !process.end.failed(), !oom && ended_by_others(process), at);
}

}  // namespace

bool survived_oom(const ProcessSummary& process) {
    const Ending ending = process.end.ending;
    return process.first_oom() && !process.final_oom() &&
           (ending == Ending::kNormal || ending == Ending::kQuickExit) && process.end.code == 0;
}

bool ended_by_others(const ProcessSummary& process) {
    const int signal = process.end.signal.value_or(0);
    return signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

bool failed(const ProcessSummary& process) {
    return process.first_oom().has_value() || process.end.failed();
}

std::map<int, GenerationRanks> ranks_by_generation(const Job& job) {
    std::map<int, GenerationRanks> generations;
    for (const ProcessSummary& process : job.processes) {
        if (process.place.rank >= 0) {
            GenerationRanks& generation = generations[generation_of(process)];
            generation.ranks.insert(process.place.rank);
            generation.world_size =
                std::max(generation.world_size,
                         static_cast<std::size_t>(std::max(process.place.world_size, 0)));
        }
    }
    return generations;
}

// Few passes over the processes: a file of summaries may claim a generation for each of them.
std::vector<FirstFailure> first_failures(const Job& job) {
    struct Generation {
        std::optional<FirstFailure> first;
        std::set<std::tuple<std::uint32_t, std::string_view, std::string_view>> processes;
    };

    std::map<int, GenerationRanks> all_ranks = ranks_by_generation(job);
    std::map<int, Generation> generations;
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        const ProcessSummary& process = job.processes[i];
        Generation& generation = generations[generation_of(process)];
        generation.processes.emplace(
            process.pid, process.place.host, process.pid == 0 ? process.file : std::string_view());
        std::optional<FirstFailure>& first = generation.first;
        if (failed(process) && (!first || order_of_failure(process) <
                                              order_of_failure(job.processes[first->process]))) {
            const auto oom = process.named_oom();
            first = {.process = i,
                     .out_of_memory = oom.has_value(),
                     .at_unix_ns = oom ? *oom : process.ended_at(),
                     .until_unix_ns = oom ? oom : process.ended_by()};
        }
    }
    const GenerationRanks none;
    std::vector<FirstFailure> failures;
    for (auto& [number, generation] : generations) {
        if (generation.first) {
            const bool ranked = job.processes[generation.first->process].place.rank >= 0;
            const GenerationRanks& with_rank = ranked ? all_ranks[number] : none;
            generation.first->of = ranked ? with_rank.ranks.size() : generation.processes.size();
            generation.first->world_size = with_rank.world_size;
            failures.push_back(*generation.first);
        }
    }
    return failures;
}

std::optional<FirstFailure> first_failure(const Job& job) {
    const std::vector<FirstFailure> failures = first_failures(job);
    const auto first = std::min_element(
        failures.begin(), failures.end(), [&job](const FirstFailure& a, const FirstFailure& b) {
            return order_of_failure(job.processes[a.process]) <
                   order_of_failure(job.processes[b.process]);
        });
    return first == failures.end() ? std::nullopt : std::optional(*first);
}

std::vector<std::size_t> by_interest(const Job& job) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        if (!job.processes[i].devices.empty()) {
            order.push_back(i);
        }
    }
    const auto peak = [&](std::size_t i) { return peak_of(job.processes[i]); };
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        const auto key = [&](std::size_t i) {
            const ProcessSummary& process = job.processes[i];
            return std::tuple(
                order_of_failure(process), ~process.sum(&RunFigures::retries), ~peak(i));
        };
        return key(a) < key(b);
    });
    // The highest and the lowest peak come right after the first failures.
    const auto failures = static_cast<std::size_t>(std::count_if(
        order.begin(), order.end(), [&](std::size_t i) { return failed(job.processes[i]); }));
    const std::size_t first =
        std::min({std::max<std::size_t>(failures, 1), kFirstFailures, order.size()});
    const auto rest = [&] { return order.begin() + static_cast<std::ptrdiff_t>(first); };
    const auto less = [&](std::size_t a, std::size_t b) { return peak(a) < peak(b); };
    if (rest() != order.end()) {
        const auto lowest = std::min_element(rest(), order.end(), less);
        std::rotate(rest(), lowest, lowest + 1);
        const auto highest = std::max_element(rest(), order.end(), less);
        std::rotate(rest(), highest, highest + 1);
    }
    return order;
}

std::vector<std::size_t> choose_whole(const Job& job, std::size_t processes, std::uint64_t blocks) {
    std::vector<std::size_t> chosen;
    std::uint64_t used = 0;
    for (const std::size_t at : by_interest(job)) {
        std::uint64_t more = 0;
        for (const ProcessDevice& device : job.processes[at].devices) {
            more += device.blocks;
        }
        if (job.processes[at].path.empty()) {
            continue;
        }
        const bool has_room = chosen.empty() || used + more <= blocks;
        if (has_room && chosen.size() < processes) {
            chosen.push_back(at);
            used += more;
        }
    }
    return chosen;
}

}  // namespace fragtrace::analyzer
