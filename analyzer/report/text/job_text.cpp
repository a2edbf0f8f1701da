#include "analyzer/report/text/job_text.h"

#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/report/text/conclusion_text.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/report/text/text_source.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <string_view>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMostRows = 64;
constexpr std::size_t kMostDifferences = 6;
constexpr std::size_t kMostGroups = 6;
constexpr std::size_t kMostCards = 4;
constexpr std::size_t kMostUsers = 4;
constexpr std::size_t kMostHolders = 3;
constexpr std::size_t kMostMissing = 4;   // generations
constexpr std::uint64_t kLargePart = 10;  // 1/10
constexpr std::uint64_t kLongIdle_ns = 1'000'000'000;

std::string name_of(const ProcessSummary& process) {
    return process.place.rank >= 0 ? fmt::format("rank {}", process.place.rank)
           : process.pid != 0      ? fmt::format("pid {}", process.pid)
                                   : printable(process.file);
}

// " of generation 1" if the job has several.
std::string of_generation(const Job& job, const ProcessSummary& process) {
    return has_generations(job) ? fmt::format(" of generation {}", generation_of(process)) : "";
}

std::string name_of(const Job& job, const ProcessSummary& process) {
    return name_of(process) + of_generation(job, process);
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

// The names of processes of one generation.
std::string names_in_generation(const Job& job, const std::vector<std::size_t>& members) {
    std::vector<int> ranks;
    for (const std::size_t i : members) {
        if (job.processes[i].place.rank >= 0) {
            ranks.push_back(job.processes[i].place.rank);
        }
    }
    std::sort(ranks.begin(), ranks.end());
    if (ranks.size() != members.size()) {
        return members.size() == 1
                   ? name_of(job.processes[members.front()])
                   : format_counted(members.size(), "process", "processes without a rank");
    }
    return (ranks.size() == 1 ? "rank " : "ranks ") + ranges(ranks);
}

// "ranks 0-2, 4", "rank 3 of generation 1", "3 processes without a rank".
std::string names_of(const Job& job, const std::vector<std::size_t>& members) {
    std::map<int, std::vector<std::size_t>> generations;
    for (const std::size_t i : members) {
        generations[generation_of(job.processes[i])].push_back(i);
    }
    std::string text;
    for (const auto& [generation, of_it] : generations) {
        text += (text.empty() ? "" : ", ") + names_in_generation(job, of_it) +
                of_generation(job, job.processes[of_it.front()]);
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

std::string row(const char* title, const std::string& text) {
    return text.empty() ? "" : fmt::format("  {:<10} {}\n", title, text);
}

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

std::string line_text(const LineHolds& line) {
    return fmt::format("{} ({} in {})",
                       printable(line.line),
                       format_bytes(line.bytes),
                       format_counted(line.blocks, "block", "blocks"));
}

// The name of a process, with its program if it has no rank.
std::string called(const Job& job, const ProcessSummary& process) {
    return name_of(job, process) +
           (process.place.rank < 0 && !process.program.empty()
                ? fmt::format(" ({})", printable(shorten(command_text(process.program), 40)))
                : "");
}

std::string silence_text(std::uint64_t after_last_event_ns) {
    return after_last_event_ns == 0
               ? ""
               : fmt::format(", its last event {} before: it may have ended since",
                             format_duration(after_last_event_ns));
}

// What a process held on a shared card at the moment of the view.
std::string user_text(const Job& job, const CardUser& user) {
    const ProcessSummary& process = job.processes[user.process];
    const ProcessDevice& device = process.devices[user.device];
    std::string text = called(job, process);
    text += fmt::format(" {}{}",
                        user.moment                ? ""
                        : process.events_lost == 0 ? "at most "
                                                   : "about ",
                        format_bytes(user.bytes));
    if (!user.moment) {
        text += device.holders.empty() ? ""
                                       : fmt::format(" (at its own peak most in {})",
                                                     printable(device.holders.front().line));
    } else {
        const UserMoment& moment = *user.moment;
        const std::uint64_t unused = moment.bytes - std::min(moment.bytes, moment.allocated_bytes);
        if (unused >= moment.bytes / kLargePart) {
            text += fmt::format(", {} of it not in use", format_bytes(unused));
        }
        text += moment.lines.empty() ? "" : ", most in " + line_text(moment.lines.front());
        text += !moment.phase.empty() ? ", in phase " + printable(moment.phase)
                : moment.has_phases   ? ", in no phase"
                                      : "";
        text += moment.recording_stopped ? ", recording was stopped" : "";
        text += moment.complete ? "" : ", events of its trace are missing";
    }
    text += silence_text(user.after_last_event_ns);
    if (user.after_last_event_ns == 0 && user.moment && user.moment->idle_ns >= kLongIdle_ns) {
        text += fmt::format(", idle for {}", format_duration(user.moment->idle_ns));
    }
    return text;
}

// A process that is known to have only its context on a shared card.
std::string context_text(const Job& job, const CardContext& user) {
    const ProcessSummary& process = job.processes[user.process];
    const ProcessContext& context = process.contexts[user.context];
    const bool is_virtual = !process.card_set.empty();
    const bool at_most = context.measured.starts_with("total less free");
    std::string text =
        called(job, process) +
        (user.nothing_else ? " only its context" : " its context, and nothing in its pool");
    if (context.bytes == 0) {
        text += " (size unknown)";
    } else {
        text +=
            fmt::format(", {}{} ({})",
                        at_most ? "at most " : "",
                        format_bytes(context.bytes),
                        is_virtual                 ? "assumption: the context of a virtual card"
                        : context.measured.empty() ? "measured"
                                                   : "measured: " + printable(context.measured));
    }
    return text + silence_text(user.after_last_event_ns);
}

// The other processes on the card at a failure to which they contributed.
std::string other_holders(const Job& job, const JobView& view, const FirstFailure& failure) {
    const auto oom = job.processes[failure.process].named_oom();
    std::string text;
    std::size_t shown = 0;
    const auto add = [&](std::size_t process, const auto& user, auto* in_words) {
        if (process != failure.process && shown++ < kMostHolders) {
            text += (text.empty() ? "" : "; ") + in_words(job, user);
        }
    };
    for (const SharedCard& card : view.shared) {
        if (!card.at_failure || card.failed.process != failure.process || card.at_unix_ns != oom) {
            continue;
        }
        for (const CardUser& user : card.users) {
            add(user.process, user, user_text);
        }
        for (const CardContext& context : card.only_contexts()) {
            add(context.process, context, context_text);
        }
    }
    return shown <= kMostHolders
               ? text
               : text + fmt::format(
                            "; {}",
                            format_counted(shown - kMostHolders, "more process", "more processes"));
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
        return text + row("verdict", why_not_explained(process));
    }
    // "unexplained": other processes may have held more than the trace shows.
    const bool by_others = why->verdict == "outside_pool" || why->verdict == "unexplained";
    return text + row("verdict", printable(why->why)) + row("line", printable(why->culprit)) +
           row("holders", by_others ? other_holders(job, view, failure) : "") +
           row("remedy", printable(why->remedy));
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

std::string generation_lines(const Job& job, const JobView& view, const Terminal& terminal) {
    const auto first = first_failure(job);
    std::string text;
    for (const GenerationEnd& generation : view.generations) {
        if (!generation.first) {
            continue;
        }
        const std::string others = row("others", others_text(job, generation));
        const std::string lines = failure_lines(job, view, *generation.first, terminal) + others;
        text = generation.first->process == first->process ? lines + text : text + lines;
    }
    return text;
}

// The ranks without a trace.
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

std::string peaks_text(const ProcessGroup& group) {
    return group.least_reserved == group.most_reserved
               ? format_bytes(group.most_reserved)
               : fmt::format("{} to {}",
                             format_bytes(group.least_reserved),
                             format_bytes(group.most_reserved));
}

// Why processes are not in the group with which they are compared, beside the peak and the lines.
std::string reasons_text(const Job& job, const JobView& view, const GroupDifference& difference) {
    const ProcessSummary& a = job.processes[view.groups[difference.group].front()];
    const ProcessSummary& b = job.processes[view.groups[difference.from].front()];
    const bool by_peak =
        std::find(difference.reasons.begin(), difference.reasons.end(), GroupReason::kPeak) !=
        difference.reasons.end();
    std::vector<std::string> parts;
    for (const GroupReason reason : difference.reasons) {
        switch (reason) {
            case GroupReason::kDevices:
                parts.push_back(fmt::format("{} instead of {}",
                                            format_counted(a.devices.size(), "device", "devices"),
                                            format_count(b.devices.size())));
                break;
            case GroupReason::kRank:
                parts.emplace_back(a.place.rank < 0 ? "without a rank" : "with a rank");
                break;
            case GroupReason::kOutOfMemory:
                parts.emplace_back(a.first_oom() ? "ran out of memory"
                                                 : "did not run out of memory");
                break;
            case GroupReason::kPeak:
                if (a.devices.size() > 1) {
                    parts.emplace_back("another peak on at least one device");
                }
                break;
            case GroupReason::kAllocated:
                if (!by_peak) {
                    parts.push_back(fmt::format(
                        "allocated {} instead of {}{}",
                        format_bytes(a.sum(&RunFigures::peak_allocated)),
                        format_bytes(b.sum(&RunFigures::peak_allocated)),
                        a.devices.size() > 1 ? ", unequal on at least one device" : ""));
                }
                break;
            case GroupReason::kLines:
                break;
        }
    }
    std::string text;
    for (const std::string& part : parts) {
        text += (text.empty() ? "; " : ", ") + part;
    }
    return text;
}

std::string difference_text(const Job& job,
                            const JobView& view,
                            const GroupDifference& difference) {
    const ProcessGroup& group = view.groups[difference.group];
    const std::string others = names_of(job, view.groups[difference.from].members);
    const std::string peak =
        fmt::format("{}: peak {}", names_of(job, group.members), peaks_text(group));
    const auto size = static_cast<std::uint64_t>(difference.reserved < 0 ? -difference.reserved
                                                                         : difference.reserved);
    const std::string than =
        size != 0 ? fmt::format(", {} {} than {}",
                                format_bytes(size),
                                difference.reserved < 0 ? "less" : "more",
                                others)
                  : fmt::format(" as {}{}",
                                others,
                                difference.lines.empty() ? "" : ", but not in the same lines");
    return peak + than + reasons_text(job, view, difference);
}

std::string group_lines(const Job& job, const JobView& view) {
    if (view.groups.empty() || (view.groups.size() == 1 && view.groups[0].members.size() == 1)) {
        return "";
    }
    std::string text;
    for (std::size_t i = 0; i < std::min(view.groups.size(), kMostGroups); ++i) {
        const ProcessGroup& group = view.groups[i];
        if (group.members.size() > 1) {
            text += row("equal",
                        fmt::format("{} ({}): peak {}",
                                    names_of(job, group.members),
                                    format_count(group.members.size()),
                                    peaks_text(group)));
        }
    }
    for (std::size_t i = 0; i < std::min(view.differences.size(), kMostDifferences); ++i) {
        const GroupDifference& difference = view.differences[i];
        std::string line = difference_text(job, view, difference);
        for (std::size_t at = 0; at < difference.lines.size(); ++at) {
            const LineDifference& of_line = difference.lines[at];
            line += fmt::format("{}{}{} {}",
                                at == 0 ? ": " : "; ",
                                of_line.at_least ? "at least " : "",
                                format_bytes_difference(of_line.bytes),
                                printable(of_line.line));
        }
        if (difference.unused != 0) {
            line += fmt::format("{}{} cached, in holes or lost to rounding",
                                difference.lines.empty() ? ": " : "; ",
                                format_bytes_difference(difference.unused));
        }
        text += row("differs", line);
    }
    if (view.differences.size() > kMostDifferences) {
        text += row("",
                    fmt::format("{} with other peaks or lines: --json has them",
                                format_counted(view.differences.size() - kMostDifferences,
                                               "more group",
                                               "more groups")));
    }
    if (!view.not_compared.empty()) {
        text += row("",
                    fmt::format("{} like none of these groups, not compared: --json has them",
                                format_counted(
                                    view.not_compared.size(), "more process", "more processes")));
    }
    return text;
}

std::string shares_text(const Job& job, const UnequalShares& shares) {
    return fmt::format(
        "{} needed at least {}, the {} {}: in equal shares each would need {} of {} (estimate; not "
        "all memory can be moved)",
        name_of(job, job.processes[shares.process]),
        format_bytes(shares.needed_bytes),
        shares.others == 1 ? "other" : format_count(shares.others) + " others",
        shares.least_bytes == shares.most_bytes
            ? format_bytes(shares.most_bytes)
            : fmt::format(
                  "{} to {}", format_bytes(shares.least_bytes), format_bytes(shares.most_bytes)),
        format_bytes(shares.equal_bytes),
        format_bytes(shares.capacity_bytes));
}

std::string replayed_text(const Job& job,
                          const std::vector<std::size_t>& replayed,
                          std::size_t stand_for) {
    return replayed.size() == stand_for
               ? "replayed on " + names_of(job, replayed)
               : fmt::format("replayed on {}, which {} for {}",
                             names_of(job, replayed),
                             replayed.size() == 1 ? "stands" : "stand",
                             format_counted(stand_for, "process", "processes"));
}

bool has_pool(const ProcessSummary& process) {
    return std::any_of(process.devices.begin(),
                       process.devices.end(),
                       [](const ProcessDevice& device) { return device.blocks_are_pool_blocks; });
}

// Why a process with a pool was not replayed, although replays were asked for; empty = not known.
const char* why_not_replayed(const JobView& view, const ProcessSummary& process) {
    return process.path.empty()          ? "only a summary without such a replay: give the trace"
           : process.events > kLongTrace ? "a long trace: give it alone"
           : view.settings_replayed      ? "at most four groups are replayed"
                                         : "";
}

// Why a question that needs replays has no answer; empty if nothing can be replayed, or if nobody
// asked for replays.
std::string not_replayed_text(const Job& job, const JobView& view) {
    std::vector<std::pair<std::string_view, std::vector<std::size_t>>> reasons;
    for (const ProcessGroup& group : view.groups) {
        const ProcessSummary& process = job.processes[group.shown];
        const std::string_view why =
            process.replayed || !has_pool(process) ? "" : why_not_replayed(view, process);
        if (why.empty()) {
            continue;
        }
        auto at = std::find_if(reasons.begin(), reasons.end(), [why](const auto& reason) {
            return reason.first == why;
        });
        if (at == reasons.end()) {
            at = reasons.emplace(at, why, std::vector<std::size_t>());
        }
        at->second.insert(at->second.end(), group.members.begin(), group.members.end());
    }
    std::string text;
    for (const auto& [why, members] : reasons) {
        text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", names_of(job, members), why);
    }
    return text.empty() ? "" : "not known without replays of " + text;
}

// The smaller size comes first. A size that is enough without a replay makes a larger card
// superfluous.
std::string card_text(const Job& job, const JobView& view) {
    if (!view.card && has_shared_card(job)) {
        return "not known: processes share a card, and each replay is of one process";
    }
    if (!view.card) {
        const std::string why = not_replayed_text(job, view);
        const bool pool = std::any_of(job.processes.begin(), job.processes.end(), has_pool);
        return view.groups.empty()      ? ""
               : !why.empty()           ? why
               : view.settings_replayed ? "none that was replayed is known to be enough for all: "
                                          "`fraganalyze whatif TRACE` scans more sizes"
               : pool                   ? ""
                                        : "not known: no process has a pool that can be replayed";
    }
    const CommonCard& card = *view.card;
    std::string text;
    if (card.replayed_bytes != 0 &&
        (card.enough_bytes == 0 || card.replayed_bytes < card.enough_bytes)) {
        text = fmt::format("on {} all {} ({}; {})",
                           printable(card.name),
                           card.only_past_failure
                               ? "get past the out-of-memory, later requests are unknown"
                               : "fit",
                           printable(card.class_words),
                           replayed_text(job, card.replayed, card.stand_for));
    }
    if (card.enough_bytes != 0) {
        text += fmt::format(
            "{}a card of {} is enough for the recorded runs, without a replay (at "
            "most: less may do)",
            text.empty() ? "" : "; ",
            format_bytes(card.enough_bytes));
    }
    return text;
}

std::string setting_text(const Job& job, const JobView& view) {
    if (!view.setting) {
        return view.settings_replayed ? "no setting that was replayed helps all"
                                      : not_replayed_text(job, view);
    }
    const CommonSetting& setting = *view.setting;
    std::string effect =
        setting.recorded_ooms != 0
            ? (setting.ooms == 0
                   ? std::string("no out-of-memory")
                   : fmt::format(
                         "{} instead of {}",
                         format_count(setting.ooms),
                         format_counted(setting.recorded_ooms, "out-of-memory", "out-of-memories")))
            : fmt::format("largest peak {} instead of {}",
                          format_bytes(setting.peak_reserved),
                          format_bytes(setting.recorded_peak_reserved));
    if (setting.recorded_retries != setting.retries) {
        effect += fmt::format(", {} instead of {}",
                              format_counted(setting.retries, "retry", "retries"),
                              format_count(setting.recorded_retries));
    }
    return fmt::format("{}: {} ({}; {}){}",
                       printable(setting.name),
                       effect,
                       printable(setting.class_words),
                       replayed_text(job, setting.replayed, setting.stand_for),
                       setting.only_past_failure ? "; " + rest_text(setting.rest_fits) : "");
}

std::string moment_text(const SharedCard& card) {
    return card.at_failure      ? "at its first out-of-memory"
           : card.users.empty() ? "when its last context began"
                                : "when most was reserved";
}

std::string card_lines(const Job& job, const JobView& view) {
    std::string text;
    for (std::size_t i = 0; i < std::min(view.shared.size(), kMostCards); ++i) {
        const SharedCard& card = view.shared[i];
        std::string line =
            fmt::format("{}{}: {} {} after the job began, {}{}{}{}",
                        printable(card.uuid),
                        card.host.empty() ? "" : " on " + printable(card.host),
                        moment_text(card),
                        format_duration(card.at_unix_ns - view.start_unix_ns),
                        card.exact ? "its processes had allocated (without contexts) "
                                   : "its processes' pools had reserved (without contexts) ",
                        card.exact || !card.at_most ? "" : "at most ",
                        format_bytes(card.sum_bytes),
                        card.total_bytes == 0 ? "" : " of " + format_bytes(card.total_bytes));
        line += card.exact || card.at_most ? "" : " (estimate: events of some traces are missing)";
        std::size_t shown = 0;
        const auto add = [&](const auto& user, auto* in_words) {
            if (shown++ < kMostUsers) {
                line += (shown == 1 ? ": " : "; ") + in_words(job, user);
            }
        };
        for (const CardUser& user : card.users) {
            add(user, user_text);
        }
        for (const CardContext& context : card.only_contexts()) {
            add(context, context_text);
        }
        if (shown > kMostUsers) {
            line += fmt::format(
                "; {}", format_counted(shown - kMostUsers, "more process", "more processes"));
        }
        text += row("same card", line);
    }
    if (view.shared.size() > kMostCards) {
        text += row("",
                    format_counted(view.shared.size() - kMostCards,
                                   "more card that several processes used: --json has it",
                                   "more cards that several processes used: --json has them"));
    }
    return text;
}

// The rows of the table: all, or the first failures and the highest and lowest peaks.
std::vector<std::size_t> shown_rows(const Job& job) {
    std::vector<std::size_t> rows;
    if (job.processes.size() <= kMostRows) {
        for (std::size_t i = 0; i < job.processes.size(); ++i) {
            rows.push_back(i);
        }
        return rows;
    }
    rows = by_interest(job);
    rows.resize(std::min(rows.size(), kMostRows / 2));
    std::sort(rows.begin(), rows.end());
    return rows;
}

// "1.3" for rank 3 of generation 1.
std::string rank_text(const ProcessSummary& process, bool generations) {
    const std::string rank = process.place.rank < 0 ? "-" : std::to_string(process.place.rank);
    return generations ? fmt::format("{}.{}", generation_of(process), rank) : rank;
}

// What the table says about a process before its program.
std::string note_of(const ProcessSummary& process, bool hosts) {
    std::string note;
    if (hosts) {
        note += printable(process.place.host) + ": ";
    }
    if (process.place.inherited_rank >= 0) {
        note += fmt::format("(helper of rank {}) ", process.place.inherited_rank);
    }
    return note;
}

std::string table(const Job& job, const Terminal& terminal) {
    const bool generations = has_generations(job);
    const bool hosts =
        std::any_of(job.processes.begin(), job.processes.end(), [&](const ProcessSummary& other) {
            return other.place.host != job.processes.front().place.host;
        });
    const std::size_t width = generations ? std::string_view("gen.rank").size() : 5;
    std::string text = fmt::format("{:>{}} {:>8} {:>10} {:>10} {:>7} {:>7}  {:<20} {}\n",
                                   generations ? "gen.rank" : "rank",
                                   width,
                                   "pid",
                                   "allocated",
                                   "reserved",
                                   "retries",
                                   "OOMs",
                                   "ended",
                                   "program");
    const std::vector<std::size_t> rows = shown_rows(job);
    for (const std::size_t i : rows) {
        const ProcessSummary& process = job.processes[i];
        const std::uint64_t reserved = process.sum(&RunFigures::peak_reserved);
        const std::string line = fmt::format(
            "{:>{}} {:>8} {:>10} {:>10} {:>7} {:>7}  {:<20} {}\n",
            rank_text(process, generations),
            width,
            process.pid == 0 ? std::string("-") : std::to_string(process.pid),
            format_bytes(process.sum(&RunFigures::peak_allocated)),
            reserved == kUnknown64 ? "unknown" : format_bytes(reserved),
            process.all_segments_known() ? format_count(process.sum(&RunFigures::retries))
                                         : "unknown",
            count_or_unknown(process.sum(&RunFigures::ooms)),
            !process.import.empty() ? printable(process.import)
            : process.pid == 0      ? "snapshot"
                                    : ending_text(process.end),
            note_of(process, hosts) + printable(shorten(command_text(process.program), 60)));
        text += process.first_oom() ? terminal.styled(Style::kRed, line) : line;
    }
    if (rows.size() < job.processes.size()) {
        text += fmt::format(
            "  and {}: --json has all\n",
            format_counted(job.processes.size() - rows.size(), "more process", "more processes"));
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

std::string job_text(const Job& job, const JobView& view, const Terminal& terminal) {
    std::string text = generation_lines(job, view, terminal) +
                       row("missing", missing_text(job, view)) + group_lines(job, view);
    if (view.shares) {
        text += row("balance", shares_text(job, *view.shares));
    }
    text += row("card", card_text(job, view)) + row("setting", setting_text(job, view)) +
            card_lines(job, view) + (job.processes.empty() ? "" : table(job, terminal));
    return text + unreadable_text(job, terminal);
}

std::string unreadable_text(const Job& job, const Terminal& terminal) {
    std::string text;
    // The reason contains the name of the trace.
    for (const UnreadableTrace& trace : job.unreadable) {
        text += terminal.styled(Style::kRed, "unreadable  " + printable(trace.reason)) + "\n";
    }
    return text;
}

std::string job_heading(const OneJob& one) {
    return fmt::format("{} ({})",
                       one.id.empty() ? "no job id" : "job " + printable(one.id),
                       format_counted(one.members.size(), "trace", "traces"));
}

std::string jobs_table(const std::vector<OneJob>& jobs, const std::string& folder) {
    constexpr std::size_t kMostJobs = 64;
    std::string text = fmt::format(
        "The traces are of {} jobs, whose ranks have the same numbers. One job:\n"
        "  fraganalyze {} --job-id {}\n",
        format_count(jobs.size()),
        folder.empty() ? "TRACES" : shell_quoted(folder),
        jobs.front().id.empty() ? "-" : shell_quoted(jobs.front().id));
    for (std::size_t i = 0; i < std::min(jobs.size(), kMostJobs); ++i) {
        const auto first = first_failure(jobs[i].job);
        text += fmt::format("  {}: {}\n",
                            job_heading(jobs[i]),
                            first ? first_failure_text(jobs[i].job, *first) : "no known failure");
    }
    if (jobs.size() > kMostJobs) {
        text += fmt::format("  and {} more jobs: --json has them\n",
                            format_count(jobs.size() - kMostJobs));
    }
    return text;
}

}  // namespace fragtrace::analyzer
