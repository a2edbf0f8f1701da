#include "analyzer/report/text/job_cards_text.h"

#include "analyzer/analysis/job/first_failure.h"
#include "analyzer/report/text/job_names.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMostCardsInTerminal = 4;
constexpr std::size_t kMostCardsOnPage = 100;
constexpr std::size_t kMostUsers = 4;
constexpr std::size_t kMostHolders = 3;
constexpr std::uint64_t kLargePart = 10;  // 1/10
constexpr std::uint64_t kLongIdle_ns = 1'000'000'000;

std::string line_text(const LineHolds& line) {
    return fmt::format("{} ({} in {})",
                       printable(line.line),
                       format_bytes(line.bytes),
                       format_counted(line.blocks, "block", "blocks"));
}

std::string silence_text(std::uint64_t after_last_event_ns) {
    return after_last_event_ns == 0
               ? ""
               : fmt::format(", its last event {} before: it may have ended since",
                             format_duration(after_last_event_ns));
}

// What a process held on a shared card at the moment of the view.
std::string user_text(const Job& job, const CardUser& user) {
    const ProcessSummary& process = job.at(user.process);
    const ProcessDevice& device = process.devices[user.device];
    std::string text = called(job, process);
    text += fmt::format(" {}{}",
                        user.moment                                    ? ""
                        : process.events_lost == 0 && !process.damaged ? "at most "
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
    const ProcessSummary& process = job.at(user.process);
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

std::string moment_text(const SharedCard& card) {
    return card.at_failure      ? "at its out-of-memory"
           : card.users.empty() ? "when its last context began,"
                                : "when most was reserved, about";
}

// The card, the moment, and what its processes held then.
std::string sum_text(const SharedCard& card, const JobView& view) {
    const std::string text = fmt::format(
        "{}{} had several processes: {} {}, {}{}{}{}",
        printable(card.uuid),
        card.host.empty() ? "" : " on " + printable(card.host),
        moment_text(card),
        card.at_unix_ns == view.start_unix_ns
            ? "when the job began"
            : format_duration(card.at_unix_ns - view.start_unix_ns) + " after the job began",
        card.exact ? "its processes had allocated (without contexts) "
                   : "its processes' pools had reserved (without contexts) ",
        card.exact || !card.at_most ? "" : "at most ",
        format_bytes(card.sum_bytes),
        card.total_bytes == 0 ? "" : " of " + format_bytes(card.total_bytes));
    return card.exact || card.at_most ? text
                                      : text + " (estimate: events of some traces are missing)";
}

}  // namespace

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

JobRows card_rows(const Job& job, const JobView& view, JobReader reader) {
    const bool on_page = reader == JobReader::kPage;
    const std::size_t most = on_page ? kMostCardsOnPage : kMostCardsInTerminal;
    JobRows rows;
    for (std::size_t i = 0; i < std::min(view.shared.size(), most); ++i) {
        const SharedCard& card = view.shared[i];
        std::string line = sum_text(card, view);
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
        append(view_row("same card", line), &rows);
    }
    if (view.shared.size() > most) {
        append(view_row("",
                        format_counted(view.shared.size() - most, "more card", "more cards") +
                            " that several processes used: " +
                            (on_page ? "see `fraganalyze FOLDER --json`" : "see --json")),
               &rows);
    }
    return rows;
}

}  // namespace fragtrace::analyzer
