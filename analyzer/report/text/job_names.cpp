#include "analyzer/report/text/job_names.h"

#include "analyzer/report/text/text_parts.h"
#include "analyzer/report/text/text_source.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace fragtrace::analyzer {
namespace {

// " of generation 1" if the job has several.
std::string of_generation(const Job& job, const ProcessSummary& process) {
    return has_generations(job) ? fmt::format(" of generation {}", generation_of(process)) : "";
}

// "0-2, 4"
std::string ranges(const std::vector<int>& numbers) {
    constexpr std::size_t kMostRanges = 8;
    std::string text;
    std::size_t shown = 0;
    for (std::size_t i = 0; i < numbers.size();) {
        std::size_t end = i;
        while (end + 1 < numbers.size() && numbers[end + 1] <= numbers[end] + 1) {
            ++end;
        }
        if (++shown > kMostRanges) {
            return text + fmt::format(" and {} more", format_count(numbers.size() - i));
        }
        text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[i]);
        text += numbers[end] == numbers[i] ? "" : fmt::format("-{}", numbers[end]);
        i = end + 1;
    }
    return text;
}

// Of a rank: exec replaced it.
bool is_earlier_program(const ProcessSummary& process) {
    return process.end.ending == Ending::kExec && process.place.inherited_rank >= 0;
}

// The names of processes of one generation.
std::string names_in_generation(const std::vector<const ProcessSummary*>& members) {
    constexpr std::size_t kMostNames = 3;
    std::vector<int> ranks;
    std::string others;
    std::size_t without_rank = 0;
    std::size_t earlier = 0;
    std::size_t named = 0;
    for (const ProcessSummary* process : members) {
        if (process->place.rank >= 0 && process->told_apart_by.empty()) {
            ranks.push_back(process->place.rank);
            continue;
        }
        without_rank += process->place.rank < 0 ? 1 : 0;
        earlier += is_earlier_program(*process) ? 1 : 0;
        if (++named <= kMostNames) {
            others += (others.empty() ? "" : ", ") + name_of(*process);
        }
    }
    if (named > kMostNames) {
        others =
            earlier == named ? fmt::format("{} earlier programs of ranks", format_count(named))
            : without_rank == named
                ? format_counted(named, "process", "processes without a rank")
                : fmt::format("{}, {}",
                              others,
                              format_counted(named - kMostNames, "more process", "more processes"));
    }
    std::sort(ranks.begin(), ranks.end());
    const std::string text =
        ranks.empty() ? "" : (ranks.size() == 1 ? "rank " : "ranks ") + ranges(ranks);
    return text + (text.empty() || others.empty() ? "" : ", ") + others;
}

}  // namespace

std::string name_of(const ProcessSummary& process) {
    const JobPlace& place = process.place;
    const std::string rank = helper_text(process);
    const std::string apart = printable(process.told_apart_by);
    return (place.rank >= 0    ? fmt::format("rank {}", place.rank)
            : process.pid != 0 ? fmt::format("pid {}", process.pid)
                               : printable(process.file)) +
           (rank.empty() && apart.empty()
                ? ""
                : fmt::format(" ({}{}{})", rank, rank.empty() || apart.empty() ? "" : ", ", apart));
}

std::string name_of(const Job& job, const ProcessSummary& process) {
    return name_of(process) + of_generation(job, process);
}

std::string names_of(const Job& job, const std::vector<std::size_t>& members) {
    std::map<int, std::vector<const ProcessSummary*>> generations;
    for (const std::size_t i : members) {
        generations[generation_of(job.processes[i])].push_back(&job.processes[i]);
    }
    std::string text;
    for (const auto& [generation, of_it] : generations) {
        text += (text.empty() ? "" : ", ") + names_in_generation(of_it) +
                of_generation(job, *of_it.front());
    }
    return text;
}

std::string on_host(const Job& job, const ProcessSummary& process) {
    const bool several =
        std::any_of(job.processes.begin(), job.processes.end(), [&](const ProcessSummary& other) {
            return other.place.host != process.place.host;
        });
    return several && !process.place.host.empty() ? " on " + printable(process.place.host) : "";
}

std::string called(const Job& job, const ProcessSummary& process) {
    return name_of(job, process) +
           (process.place.rank < 0 && !process.program.empty()
                ? fmt::format(" ({})", printable(shorten(command_text(process.program), 40)))
                : "");
}

std::string end_of(const ProcessSummary& process) {
    return !process.import.empty() ? printable(process.import)
           : process.pid == 0      ? "snapshot"
                                   : ending_text(process.end);
}

std::string helper_text(const ProcessSummary& process) {
    const int rank = process.place.inherited_rank;
    return rank < 0 ? ""
                    : fmt::format("{} {}",
                                  is_earlier_program(process) ? "earlier program of rank"
                                                              : "helper of rank",
                                  rank);
}

}  // namespace fragtrace::analyzer
