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
#include <utility>

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

// The verdict, the line to look at, and the remedy of an out-of-memory.
JobRows cause_rows(const Job& job, const JobView& view, const FirstFailure& failure) {
    const ProcessSummary& process = job.processes[failure.process];
    const FailureSummary* why = process.named_failure();
    if (why == nullptr) {
        return view_row("verdict", why_not_explained(process));
    }
    // "unexplained": other processes may have held more than the trace shows.
    const bool by_others = why->verdict == "outside_pool" || why->verdict == "unexplained";
    JobRows rows = view_row("verdict", printable(why->why), JobRowKind::kOfReport);
    append(view_row("holders", by_others ? other_holders(job, view, failure) : ""), &rows);
    append(view_row("line", printable(why->culprit), JobRowKind::kOfReport), &rows);
    append(view_row("remedy", printable(why->remedy), JobRowKind::kOfReport), &rows);
    return rows;
}

// ", at train.py:19 step"; empty if the line is not known.
std::string at_text(const Job& job, const FirstFailure& failure) {
    const FailureSummary* why =
        failure.out_of_memory ? job.processes[failure.process].named_failure() : nullptr;
    return why == nullptr || why->at.empty() ? "" : ", at " + printable(why->at);
}

JobRows failure_rows(const Job& job, const JobView& view, const FirstFailure& failure) {
    const ProcessSummary& process = job.processes[failure.process];
    std::string text = first_failure_text(job, failure) + on_host(job, process);
    if (process.start_unix_ns != 0) {
        text += fmt::format(", {} after the job began", failure_time(failure, view));
    }
    JobRows rows = view_row("", text + at_text(job, failure), JobRowKind::kFailure);
    if (failure.out_of_memory) {
        append(cause_rows(job, view, failure), &rows);
    }
    return rows;
}

// The first out-of-memory after a failure of another kind.
JobRows later_oom_rows(const Job& job, const JobView& view, const FirstFailure& first) {
    if (!first.later_oom) {
        return {};
    }
    const FirstFailure later = failure_of(job, *first.later_oom);
    const ProcessSummary& process = job.processes[later.process];
    JobRows rows = view_row("",
                            fmt::format("{}{} ran out of memory {} after the job began{}",
                                        name_of(job, process),
                                        on_host(job, process),
                                        format_duration(later.at_unix_ns - view.start_unix_ns),
                                        at_text(job, later)),
                            JobRowKind::kFailure);
    append(cause_rows(job, view, later), &rows);
    return rows;
}

std::string ends_text(const std::vector<std::pair<ProcessEnd, std::size_t>>& ends) {
    std::string text;
    for (const auto& [end, count] : ends) {
        text +=
            fmt::format("{}{} {}", text.empty() ? "" : ", ", format_count(count), ending_text(end));
    }
    return text;
}

std::size_t sum_of(const std::vector<std::pair<ProcessEnd, std::size_t>>& ends) {
    std::size_t sum = 0;
    for (const auto& [end, count] : ends) {
        sum += count;
    }
    return sum;
}

// "600 ms before it".
std::string before_or_after(std::uint64_t at_ns, std::uint64_t event_ns) {
    return at_ns <= event_ns ? format_duration(event_ns - at_ns) + " before it"
                             : format_duration(at_ns - event_ns) + " after it";
}

std::string maybe_earlier_text(const Job& job,
                               const ProcessSummary& first,
                               const FirstFailure& failure,
                               std::size_t earlier) {
    const ProcessSummary& other = job.processes[earlier];
    if (failure.until_unix_ns != failure.at_unix_ns) {
        return fmt::format("; when {} ended is not known exactly: {} may have failed before it",
                           name_of(job, first),
                           name_of(job, other));
    }
    const auto ended_by = other.ended_by();
    if (!first.place.same_machine(other.place) && ended_by == other.ended_at()) {
        return fmt::format("; by the clock of {}, {} failed first: clocks of hosts may differ",
                           printable(other.place.host),
                           name_of(job, other));
    }
    const bool seen_earlier = ended_by && *ended_by < failure.at_unix_ns;
    return fmt::format(
        "; {} may have failed first: it was last known to run {}{}{}",
        name_of(job, other),
        before_or_after(other.ended_at(), failure.at_unix_ns),
        ended_by ? ", and its end was seen " + before_or_after(*ended_by, failure.at_unix_ns) : "",
        seen_earlier ? ", but clocks of hosts may differ" : "");
}

// Which process may have failed before the first one.
std::string uncertain_text(const Job& job, const GenerationEnd& generation) {
    std::string text;
    const ProcessSummary& first = job.processes[generation.first->process];
    if (generation.as_early) {
        const ProcessSummary& other = job.processes[*generation.as_early];
        text += fmt::format(
            "; {} on {} {} within a second of it: if the hosts' clocks differ, it may have been "
            "the first",
            name_of(job, other),
            printable(other.place.host),
            other.fatal_oom() ? "ran out of memory" : "failed");
    }
    if (generation.maybe_earlier) {
        text += maybe_earlier_text(job, first, *generation.first, *generation.maybe_earlier);
    }
    return text;
}

// Parts of a row, with semicolons between them.
class Parts {
  public:
    void add(const std::string& part) {
        text_ += text_.empty() ? "" : "; ";
        text_ += part;
    }

    [[nodiscard]] const std::string& text() const { return text_; }

  private:
    std::string text_;
};

// How the processes beside the first failure ended.
void add_ends(const Job& job, const GenerationEnd& generation, Parts* parts) {
    const bool first_is_oom = generation.first->out_of_memory;
    // A process that ends normally is a weak reason for others to fail.
    const bool first_ended_normally =
        job.processes[generation.first->process].end.code == 0 && first_is_oom;
    if (const std::size_t before = sum_of(generation.failed_before); before != 0) {
        parts->add(fmt::format("{} of the others failed before it: {}",
                               format_count(before),
                               ends_text(generation.failed_before)));
    }
    if (const std::size_t perhaps = sum_of(generation.perhaps_before); perhaps != 0) {
        parts->add(fmt::format("{} of the others failed before it or because of it: {}",
                               format_count(perhaps),
                               ends_text(generation.perhaps_before)));
    }
    if (const std::size_t otherwise = sum_of(generation.failed_otherwise); otherwise != 0) {
        parts->add(fmt::format("{} of the others failed{}: {}",
                               format_count(otherwise),
                               !first_is_oom          ? " too"
                               : first_ended_normally ? " otherwise"
                                                      : " otherwise, most likely because of it",
                               ends_text(generation.failed_otherwise)));
    }
    if (generation.also_out_of_memory != 0) {
        parts->add(fmt::format("{} {}ran out of memory",
                               format_count(generation.also_out_of_memory),
                               first_is_oom ? "also " : ""));
    }
    if (generation.helpers_out_of_memory != 0) {
        parts->add(format_counted(generation.helpers_out_of_memory,
                                  "helper of a rank that ended normally ran out of memory",
                                  "helpers of ranks that ended normally ran out of memory"));
    }
    if (generation.did_not_fail != 0) {
        parts->add(
            fmt::format("{} without a known failure", format_count(generation.did_not_fail)));
    }
}

// What became of the other processes of a generation.
std::string others_text(const Job& job, const GenerationEnd& generation) {
    Parts parts;
    const bool others = generation.first && generation.processes > 1;
    if (others) {
        add_ends(job, generation, &parts);
    }
    std::vector<std::size_t> not_recorded = generation.end_unknown;
    std::erase_if(not_recorded, [&job](std::size_t i) { return job.processes[i].damaged; });
    if (!not_recorded.empty()) {
        parts.add(
            fmt::format("how {} ended is not recorded ({} may still run), and last events may be "
                        "missing: `fraganalyze list --absorb` on the same host, in the same "
                        "container, adds them if the ring is still there",
                        names_of(job, not_recorded),
                        not_recorded.size() == 1 ? "it" : "they"));
    }
    if (generation.got_past_oom != 0) {
        parts.add(
            fmt::format("{} {}ran out of memory{} and got past it",
                        format_count(generation.got_past_oom),
                        generation.first ? "of the others " : "",
                        generation.got_past_before == generation.got_past_oom ? " earlier" : ""));
    }
    if (generation.earlier_program_got_past) {
        parts.add("the same process ran out of memory as an earlier program, and got past it");
    }
    return others ? parts.text() + uncertain_text(job, generation) : parts.text();
}

}  // namespace

std::string first_failure_text(const Job& job, const FirstFailure& failure) {
    const ProcessSummary& process = job.processes[failure.process];
    const bool got_past = process.first_oom() && !process.fatal_oom();
    const std::string what =
        !failure.out_of_memory
            ? fmt::format("failed first: {}{}",
                          ending_text(process.end),
                          got_past ? " (it had run out of memory before, and got past it)" : "")
        : got_past                ? "ran out of memory first, and got past it"
        : process.end.code == 0   ? "ran out of memory first, and then ended normally"
        : failure.others_got_past ? "failed first: out of memory"
                                  : "ran out of memory first";
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

std::string no_failure_text(const Job& job) {
    const bool of_pool =
        std::any_of(job.processes.begin(), job.processes.end(), [](const ProcessSummary& process) {
            return process.pool_failures != 0;
        });
    return of_pool ? "no device is known to have run out of memory" : "no known failure";
}

namespace {

JobRows no_failure_row(const Job& job, const std::string& of, std::size_t processes) {
    return view_row("",
                    fmt::format("{}{} in {}",
                                of,
                                no_failure_text(job),
                                format_counted(processes, "process", "processes")),
                    JobRowKind::kHeading);
}

}  // namespace

JobRows generation_rows(const Job& job, const JobView& view) {
    const auto first = first_failure(job);
    JobRows of_first;
    JobRows of_others;
    if (!first && !job.processes.empty()) {
        std::size_t processes = 0;
        for (const GenerationEnd& generation : view.generations) {
            processes += generation.processes;
        }
        of_first = no_failure_row(job, "", processes);
    }
    for (const GenerationEnd& generation : view.generations) {
        const bool is_first =
            first && generation.first && generation.first->process == first->process;
        JobRows& rows = is_first ? of_first : of_others;
        if (generation.first) {
            append(failure_rows(job, view, *generation.first), &rows);
        } else if (first) {
            append(no_failure_row(job,
                                  fmt::format("generation {}: ", generation.generation),
                                  generation.processes),
                   &rows);
        }
        append(view_row("others", others_text(job, generation)), &rows);
        if (generation.first) {
            append(later_oom_rows(job, view, *generation.first), &rows);
        }
    }
    append(std::move(of_others), &of_first);
    return of_first;
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
