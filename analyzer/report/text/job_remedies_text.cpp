#include "analyzer/report/text/job_remedies_text.h"

#include "analyzer/analysis/job/card_needs.h"
#include "analyzer/analysis/job/read_job.h"
#include "analyzer/report/text/conclusion_text.h"
#include "analyzer/report/text/job_names.h"
#include "analyzer/support/terminal.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace fragtrace::analyzer {
namespace {

std::string shares_text(const Job& job, const UnequalShares& shares) {
    return fmt::format(
        "{} needed at least {}, the {} {}: in equal shares each would need {} of the {} that their "
        "pools can use (estimate; not all memory can be moved)",
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

// What is known where no card is known to be enough.
std::string needed_text(const Job& job, const JobView& view) {
    if (!view.needed) {
        return "";
    }
    const NeededMemory& needed = *view.needed;
    std::string text =
        fmt::format("; the pool of {} needs at least {} ({})",
                    name_of(job, job.processes[needed.process]),
                    format_bytes(needed.pool_bytes),
                    needed.at_failure ? "allocated at the failure, plus the request" : "its peak");
    if (needed.forecast_card_bytes != 0) {
        text += fmt::format(", the rest of the step of {} a card of about {} (estimate)",
                            name_of(job, job.processes[needed.forecast_process]),
                            format_bytes(needed.forecast_card_bytes));
    }
    return text;
}

// Which processes still run and may need more than their peaks so far; empty if none.
std::string more_text(const Job& job) {
    std::vector<std::size_t> running;
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        if (job.processes[i].end.ending == Ending::kRunning) {
            running.push_back(i);
        }
    }
    return running.empty() ? ""
                           : fmt::format("; so far: {} still {}, and may need more",
                                         names_of(job, running),
                                         running.size() == 1 ? "runs" : "run");
}

// Why no card is known to be enough.
std::string no_card_text(const Job& job, const JobView& view) {
    if (has_shared_card(job)) {
        return "not known: processes share a card, and each replay is of one process";
    }
    const bool pool = std::any_of(job.processes.begin(), job.processes.end(), has_pool);
    if (pool && !all_recorded(job)) {
        return "not known: traces are missing or not complete, or their ends are not recorded" +
               needed_text(job, view);
    }
    const std::string why = not_replayed_text(job, view);
    return view.groups.empty() ? ""
           : !why.empty()      ? why + needed_text(job, view)
           : view.settings_replayed
               ? "none that was replayed is known to be enough for all" + needed_text(job, view) +
                     ": `fraganalyze whatif TRACE` scans more sizes"
           : pool ? ""
                  : "not known: no process has a pool that can be replayed";
}

// The smaller size comes first. A size that is enough without a replay makes a larger card
// superfluous.
std::string card_text(const Job& job, const JobView& view) {
    if (!view.card) {
        return no_card_text(job, view);
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
        if (card.only_past_failure && view.needed && view.needed->forecast_card_bytes != 0) {
            text += fmt::format(
                "; the rest of the step of {} is forecast to need a card of about "
                "{} (estimate)",
                name_of(job, job.processes[view.needed->forecast_process]),
                format_bytes(view.needed->forecast_card_bytes));
        }
    }
    if (card.enough_bytes != 0) {
        text += fmt::format(
            "{}a card of {} is enough for the recorded runs, without a replay (at "
            "most: less may do)",
            text.empty() ? "" : "; ",
            format_bytes(card.enough_bytes));
    }
    return text + more_text(job);
}

std::string setting_text(const Job& job, const JobView& view) {
    if (!view.setting) {
        const bool nothing_wrong =
            std::none_of(job.processes.begin(), job.processes.end(), [](const auto& process) {
                return process.first_oom() ||
                       (process.all_segments_known() && process.sum(&RunFigures::retries) != 0);
            });
        return !view.settings_replayed ? not_replayed_text(job, view)
               : nothing_wrong         ? ""
                                       : "no setting that was replayed helps all";
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

}  // namespace

JobRows remedy_rows(const Job& job, const JobView& view) {
    JobRows rows;
    if (view.shares) {
        append(view_row("balance", shares_text(job, *view.shares) + more_text(job)), &rows);
    }
    append(view_row("card", card_text(job, view)), &rows);
    append(view_row("setting", setting_text(job, view)), &rows);
    return rows;
}

}  // namespace fragtrace::analyzer
