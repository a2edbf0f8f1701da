#include "analyzer/report/text/job_failure_text.h"

#include "analyzer/analysis/job/first_failure.h"
#include "analyzer/analysis/job/read_job.h"
#include "analyzer/report/text/job_cards_text.h"
#include "analyzer/report/text/job_names.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/report/text/text_source.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMostMissing = 4;  // generations

std::string why_not_explained(const ProcessSummary& process) {
    return process.analysed ? "the cause is unknown: the recording does not show it"
           : process.path.empty()
               ? "the cause is not in the summary: `fraganalyze summarize TRACE -o FILE` adds it"
           : process.events > kLongTrace
               ? fmt::format("the trace is long ({}): fraganalyze {} explains it",
                             format_counted(process.events, "event", "events"),
                             shell_quoted(process.path))
               : "";
}

// "200 ms"; "at least 200 ms"; "200 to 290 ms", if only these bounds are known.
std::string failure_time(const FirstFailure& failure, const JobView& view) {
    const std::string from = format_duration(failure.at_unix_ns - view.start_unix_ns);
    if (!failure.until_unix_ns) {
        return "at least " + from;
    }
    const std::string until = format_duration(*failure.until_unix_ns - view.start_unix_ns);
    return from == until ? from : fmt::format("{} to {}", from, until);
}

std::string failure_lines(const Job& job,
                          const JobView& view,
                          const FirstFailure& failure,
                          const Terminal& terminal) {
    const ProcessSummary& process = job.processes[failure.process];
    std::string text = first_failure_text(job, failure) + on_host(job, process);
    if (process.start_unix_ns != 0) {
        text += fmt::format(", {} after the job began", failure_time(failure, view));
    }
    const FailureSummary* why = failure.out_of_memory ? process.named_failure() : nullptr;
    if (why != nullptr && !why->at.empty()) {
        text += ", at " + printable(why->at);
    }
    text = terminal.styled(Style::kRed, text) + "\n";
    if (!failure.out_of_memory) {
        return text;
    }
    if (why == nullptr) {
        return text + view_row("verdict", why_not_explained(process));
    }
    // "unexplained": other processes may have held more than the trace shows.
    const bool by_others = why->verdict == "outside_pool" || why->verdict == "unexplained";
    return text + view_row("verdict", printable(why->why)) +
           view_row("line", printable(why->culprit)) +
           view_row("holders", by_others ? other_holders(job, view, failure) : "") +
           view_row("remedy", printable(why->remedy));
}

std::string ends_text(const GenerationEnd& generation) {
    std::string text;
    for (const auto& [end, count] : generation.failed_otherwise) {
        text +=
            fmt::format("{}{} {}", text.empty() ? "" : ", ", format_count(count), ending_text(end));
    }
    return text;
}

// What became of the other processes of a generation.
std::string others_text(const Job& job, const GenerationEnd& generation) {
    if (!generation.first || generation.processes < 2) {
        return "";
    }
    const ProcessSummary& first = job.processes[generation.first->process];
    const bool survived = generation.first->out_of_memory && survived_oom(first);
    std::vector<std::string> parts;
    std::size_t failed_too = 0;
    for (const auto& [end, count] : generation.failed_otherwise) {
        failed_too += count;
    }
    if (failed_too != 0) {
        parts.push_back(fmt::format(
            "{} of the others failed{}{}: {}",
            format_count(failed_too),
            generation.first->out_of_memory ? " without an out-of-memory" : " too",
            generation.first->out_of_memory && !survived ? ", most likely because of it" : "",
            ends_text(generation)));
        if (survived) {
            parts.back() +=
                fmt::format(" ({} got past its out-of-memory and ended normally)", name_of(first));
        }
    }
    if (generation.also_out_of_memory != 0) {
        parts.push_back(
            fmt::format("{} also ran out of memory", format_count(generation.also_out_of_memory)));
    }
    if (generation.did_not_fail != 0) {
        parts.push_back(
            fmt::format("{} without a known failure", format_count(generation.did_not_fail)));
    }
    std::string text;
    for (const std::string& part : parts) {
        text += (text.empty() ? "" : "; ") + part;
    }
    if (generation.as_early) {
        const ProcessSummary& other = job.processes[*generation.as_early];
        text += fmt::format(
            "{}{} on {} ran out of memory within a second of it: if the hosts' clocks differ, it "
            "may have been the first",
            text.empty() ? "" : "; ",
            name_of(other),
            printable(other.place.host));
    }
    if (generation.maybe_earlier) {
        text += fmt::format("{}when {} ended is not known exactly: {} may have failed before it",
                            text.empty() ? "" : "; ",
                            name_of(job.processes[generation.first->process]),
                            name_of(job.processes[*generation.maybe_earlier]));
    }
    return text;
}

}  // namespace

std::string first_failure_text(const Job& job, const FirstFailure& failure) {
    const ProcessSummary& process = job.processes[failure.process];
    const std::string what = failure.out_of_memory
                                 ? "ran out of memory first"
                                 : fmt::format("failed first: {}", ending_text(process.end));
    return fmt::format(
        "{}{} of {}{} {}",
        has_generations(job) ? fmt::format("generation {}: ", generation_of(process)) : "",
        name_of(process),
        std::max(failure.of, failure.world_size),
        process.place.rank >= 0 ? ""
        : failure.of == 1       ? " process"
                                : " processes",
        what);
}

std::string generation_lines(const Job& job, const JobView& view, const Terminal& terminal) {
    const auto first = first_failure(job);
    std::string text;
    for (const GenerationEnd& generation : view.generations) {
        if (!generation.first) {
            continue;
        }
        const std::string others = view_row("others", others_text(job, generation));
        const std::string lines = failure_lines(job, view, *generation.first, terminal) + others;
        text = generation.first->process == first->process ? lines + text : text + lines;
    }
    return text;
}

std::string missing_text(const Job& job, const JobView& view) {
    std::string text;
    std::size_t shown = 0;
    for (const GenerationEnd& generation : view.generations) {
        if (generation.ranks_missing == 0 || shown++ >= kMostMissing) {
            continue;
        }
        std::string names;
        std::size_t named = 0;
        for (const auto& [first, last] : generation.missing) {
            names += fmt::format("{}{}", names.empty() ? "" : ", ", first);
            names += first == last ? "" : fmt::format("-{}", last);
            named += static_cast<std::size_t>(last - first) + 1;
        }
        if (named < generation.ranks_missing) {
            names += fmt::format(" and {} more", format_count(generation.ranks_missing - named));
        }
        const bool one = generation.ranks_missing == 1;
        text += fmt::format(
            "{}{}{} of {} ranks {} no readable trace here: {} {}",
            text.empty() ? "" : "; ",
            has_generations(job) ? fmt::format("generation {}: ", generation.generation) : "",
            format_count(generation.ranks_missing),
            format_count(generation.world_size),
            one ? "has" : "have",
            one ? "rank" : "ranks",
            names);
    }
    return shown <= kMostMissing ? text
                                 : text + fmt::format("; {}",
                                                      format_counted(shown - kMostMissing,
                                                                     "more generation",
                                                                     "more generations"));
}

}  // namespace fragtrace::analyzer
