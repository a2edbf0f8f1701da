#include "analyzer/analysis/job/first_failure.h"

#include "analyzer/analysis/job/job_groups.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <tuple>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kFirstFailures = 6;

enum class FailureKind : std::uint8_t {
    kFatalOom,
    kFailed,
    kEndedByOthers,
    kHelperOom,
    kOomGotPast,
    kNone
};

FailureKind kind_of(const ProcessSummary& process) {
    if (process.fatal_oom()) {
        return process.rank_ended_normally ? FailureKind::kHelperOom : FailureKind::kFatalOom;
    }
    return ended_by_others(process) ? FailureKind::kEndedByOthers
           : process.end.failed()   ? FailureKind::kFailed
           : process.first_oom()    ? FailureKind::kOomGotPast
                                    : FailureKind::kNone;
}

bool is_out_of_memory(FailureKind kind) {
    return kind == FailureKind::kFatalOom || kind == FailureKind::kHelperOom ||
           kind == FailureKind::kOomGotPast;
}

// A sort key: processes that failed first come first. All processes that did not fail have equal
// keys.
std::pair<FailureKind, std::uint64_t> order_of_failure(const ProcessSummary& process) {
    const FailureKind kind = kind_of(process);
    return {kind,
            is_out_of_memory(kind)       ? *process.named_oom()
            : kind == FailureKind::kNone ? 0
                                         : process.ended_at()};
}

// The failures of a generation.
struct Generation {
    std::size_t processes = 0;
    std::optional<std::size_t> first;           // by order_of_failure()
    std::optional<std::size_t> first_end;       // that failed before an out-of-memory
    std::optional<std::uint64_t> first_oom_ns;  // also one that a program got past

    void add(const Job& job, std::size_t i) {
        const auto before = [&job](std::size_t a, std::size_t b) {
            return order_of_failure(job.processes[a]) < order_of_failure(job.processes[b]);
        };
        const ProcessSummary& process = job.processes[i];
        processes += process.has_later_program ? 0 : 1;
        if (failed(process) && (!first || before(i, *first))) {
            first = i;
        }
        if (const auto oom = process.first_oom()) {
            first_oom_ns = std::min(first_oom_ns.value_or(*oom), *oom);
        }
    }

    // A process that failed before the first out-of-memory. Helpers of a rank may fail without
    // harm.
    void look_before_oom(const Job& job, std::size_t i) {
        const ProcessSummary& oom = job.processes[*first];
        const ProcessSummary& process = job.processes[i];
        if (kind_of(oom) == FailureKind::kFatalOom && !process.fatal_oom() &&
            (process.place.rank >= 0 || oom.place.rank < 0) && process.end.failed() &&
            !ended_by_others(process) &&
            ended_before(process, *oom.fatal_oom(), oom.place) == EndedBefore::kYes &&
            (!first_end || process.ended_at() < job.processes[*first_end].ended_at())) {
            first_end = i;
        }
    }
};

// Whether a process is in a small group of equal processes, or in none.
std::vector<bool> unlike_others(const Job& job) {
    std::vector<std::size_t> rest;
    const std::vector<ProcessGroup> groups = groups_of(job, &rest);
    std::size_t largest = 0;
    for (const ProcessGroup& group : groups) {
        largest = std::max(largest, group.members.size());
    }
    std::vector<bool> unlike(job.processes.size());
    for (const ProcessGroup& group : groups) {
        if (is_small(group.members.size(), largest)) {
            rest.insert(rest.end(), group.members.begin(), group.members.end());
        }
    }
    for (const std::size_t i : rest) {
        unlike[i] = true;
    }
    return unlike;
}

}  // namespace

bool survived_oom(const ProcessSummary& process) {
    const Ending ending = process.end.ending;
    return process.first_oom() && !process.fatal_oom() &&
           (ending == Ending::kNormal || ending == Ending::kQuickExit) && process.end.code == 0;
}

bool ended_by_others(const ProcessSummary& process) {
    const int signal = process.end.signal.value_or(0);
    return signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

bool failed(const ProcessSummary& process) {
    return process.first_oom().has_value() || process.end.failed();
}

EndedBefore ended_before(const ProcessSummary& process,
                         std::uint64_t at_unix_ns,
                         const JobPlace& place) {
    constexpr std::uint64_t kNotesNs = 300'000'000;  // three notes
    const bool one_clock = process.place.same_machine(place);
    const auto ended_by = process.ended_by();
    if (ended_by && *ended_by + (one_clock ? 0 : kClocksDifferNs) < at_unix_ns) {
        return EndedBefore::kYes;
    }
    // An exact time needs no margin for the notes.
    const bool exact = ended_by == process.ended_at();
    const std::uint64_t margin = exact || !one_clock ? 0 : kNotesNs;
    return process.ended_at() + margin < at_unix_ns ? EndedBefore::kPerhaps : EndedBefore::kNo;
}

FirstFailure failure_of(const Job& job, std::size_t i) {
    const ProcessSummary& process = job.processes[i];
    const auto oom = is_out_of_memory(kind_of(process)) ? process.named_oom() : std::nullopt;
    return {.process = i,
            .out_of_memory = oom.has_value(),
            .at_unix_ns = oom ? *oom : process.ended_at(),
            .until_unix_ns = oom ? oom : process.ended_by()};
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
    std::map<int, GenerationRanks> all_ranks = ranks_by_generation(job);
    std::map<int, Generation> generations;
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        generations[generation_of(job.processes[i])].add(job, i);
    }
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        Generation& generation = generations[generation_of(job.processes[i])];
        if (generation.first) {
            generation.look_before_oom(job, i);
        }
    }
    const GenerationRanks none;
    std::vector<FirstFailure> failures;
    for (auto& [number, generation] : generations) {
        if (!generation.first) {
            continue;
        }
        FirstFailure failure = failure_of(job, generation.first_end.value_or(*generation.first));
        if (generation.first_end) {
            failure.later_oom = generation.first;
        }
        const ProcessSummary& process = job.processes[failure.process];
        failure.others_got_past = failure.out_of_memory &&
                                  *generation.first_oom_ns < failure.at_unix_ns &&
                                  *generation.first_oom_ns != process.first_oom();
        const bool ranked = process.place.rank >= 0;
        const GenerationRanks& with_rank = ranked ? all_ranks[number] : none;
        failure.of = ranked ? with_rank.ranks.size() : generation.processes;
        failure.world_size = with_rank.world_size;
        failures.push_back(failure);
    }
    return failures;
}

std::optional<FirstFailure> first_failure(const Job& job) {
    const std::vector<FirstFailure> failures = first_failures(job);
    const auto first = std::min_element(
        failures.begin(), failures.end(), [&job](const FirstFailure& a, const FirstFailure& b) {
            return order_of_failure(job.processes[a.later_oom.value_or(a.process)]) <
                   order_of_failure(job.processes[b.later_oom.value_or(b.process)]);
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
    const std::vector<bool> unlike = unlike_others(job);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        const auto key = [&](std::size_t i) {
            const ProcessSummary& process = job.processes[i];
            return std::tuple(order_of_failure(process),
                              !unlike[i],
                              ~process.sum(&RunFigures::retries),
                              ~peak(i));
        };
        return key(a) < key(b);
    });
    if (const auto first_failed = first_failure(job)) {
        const auto at = std::find(order.begin(), order.end(), first_failed->process);
        std::rotate(order.begin(), at, at == order.end() ? at : at + 1);
    }
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

std::uint64_t blocks_of(const ProcessSummary& process) {
    std::uint64_t blocks = 0;
    for (const ProcessDevice& device : process.devices)
        blocks += device.blocks;
    return blocks;
}

std::vector<std::size_t> choose_whole(const Job& job, const WholeLimits& most) {
    std::vector<std::size_t> chosen;
    WholeLimits used;
    for (const std::size_t at : by_interest(job)) {
        const std::uint64_t more = blocks_of(job.processes[at]);
        if (job.processes[at].path.empty()) {
            continue;
        }
        const std::size_t devices = job.processes[at].devices.size();
        const bool has_room = used.processes < most.processes &&
                              used.devices + devices <= most.devices &&
                              used.blocks + more <= most.blocks;
        if (has_room || chosen.empty()) {
            chosen.push_back(at);
            ++used.processes;
            used.devices += devices;
            used.blocks += more;
        }
    }
    return chosen;
}

}  // namespace fragtrace::analyzer
