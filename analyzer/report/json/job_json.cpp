#include "analyzer/report/json/job_json.h"

#include "analyzer/analysis/job/first_failure.h"
#include "analyzer/analysis/job/several_jobs.h"
#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/report/text/job_names.h"
#include "analyzer/report/text/text_source.h"

#include <nlohmann/json.hpp>

#include <filesystem>

namespace fragtrace::analyzer {
namespace {

using Json = nlohmann::ordered_json;

Json place(int number) {
    return number >= 0 ? Json(number) : Json();
}

Json text_or_null(const std::string& text) {
    return text.empty() ? Json() : Json(text);
}

Json size_or_null(std::uint64_t bytes) {
    return bytes == 0 ? Json() : Json(bytes);
}

// Processes are named by their index in "processes".
Json indices(const std::vector<std::size_t>& processes) {
    return processes;
}

Json failure_json(const Job& job, const FirstFailure& failure) {
    const ProcessSummary& process = job.processes[failure.process];
    Json json = {{"file",
                  process.failure_path.empty()
                      ? process.file
                      : std::filesystem::path(process.failure_path).filename().string()},
                 {"process", process.pid},
                 {"rank", place(process.place.rank)},
                 {"host", text_or_null(process.place.host)},
                 {"generation", place(process.place.generation)},
                 {"of", failure.of},
                 {"out_of_memory", failure.out_of_memory},
                 {"survived", survived_oom(process)},
                 {"later_out_of_memory", failure.later_oom ? Json(*failure.later_oom) : Json()},
                 {"index", failure.process}};
    json["time_unix_ns"] = process.start_unix_ns != 0 ? Json(failure.at_unix_ns) : Json();
    json["time_at_least"] = !failure.until_unix_ns;
    json["time_until_unix_ns"] =
        process.start_unix_ns != 0 && failure.until_unix_ns ? Json(*failure.until_unix_ns) : Json();
    const FailureSummary* named = process.named_failure();
    json["cause"] = named == nullptr ? Json()
                                     : Json{{"requested_bytes", named->requested_bytes},
                                            {"verdict", text_or_null(named->verdict)},
                                            {"why", named->why},
                                            {"at", named->at},
                                            {"culprit", named->culprit},
                                            {"remedy", named->remedy}};
    return json;
}

Json ends_json(const std::vector<std::pair<ProcessEnd, std::size_t>>& ends) {
    Json rows = Json::array();
    for (const auto& [end, count] : ends) {
        rows.push_back({{"ending", ending_json(end)}, {"processes", count}});
    }
    return rows;
}

Json generations_json(const JobView& view) {
    Json rows = Json::array();
    for (const GenerationEnd& generation : view.generations) {
        rows.push_back(
            {{"generation", generation.generation},
             {"processes", generation.processes},
             {"world_size", size_or_null(generation.world_size)},
             {"ranks_missing", generation.ranks_missing},
             {"first_failure", generation.first ? Json(generation.first->process) : Json()},
             {"also_out_of_memory", generation.also_out_of_memory},
             {"failed_before", ends_json(generation.failed_before)},
             {"perhaps_before", ends_json(generation.perhaps_before)},
             {"helpers_out_of_memory", generation.helpers_out_of_memory},
             {"failed_otherwise", ends_json(generation.failed_otherwise)},
             {"did_not_fail", generation.did_not_fail},
             {"got_past_oom", generation.got_past_oom},
             {"end_unknown", indices(generation.end_unknown)},
             {"as_early", generation.as_early ? Json(*generation.as_early) : Json()},
             {"maybe_earlier",
              generation.maybe_earlier ? Json(*generation.maybe_earlier) : Json()}});
    }
    return rows;
}

const char* reason_name(GroupReason reason) {
    switch (reason) {
        case GroupReason::kDevices:
            return "devices";
        case GroupReason::kRank:
            return "rank";
        case GroupReason::kOutOfMemory:
            return "out_of_memory";
        case GroupReason::kPeak:
            return "peak";
        case GroupReason::kAllocated:
            return "allocated";
        case GroupReason::kLines:
            break;
    }
    return "lines";
}

Json difference_json(const GroupDifference& difference) {
    Json reasons = Json::array();
    for (const GroupReason reason : difference.reasons) {
        reasons.push_back(reason_name(reason));
    }
    Json lines = Json::array();
    for (const LineDifference& line : difference.lines) {
        lines.push_back({{"label", line.line}, {"bytes", line.bytes}, {"at_least", line.at_least}});
    }
    return {{"from", difference.from},
            {"reasons", reasons},
            {"peak_bytes", difference.reserved},
            {"allocated_bytes", difference.allocated},
            {"unused_bytes", difference.unused},
            {"lines", lines}};
}

Json groups_json(const JobView& view) {
    Json rows = Json::array();
    for (const ProcessGroup& group : view.groups) {
        rows.push_back({{"processes", indices(group.members)},
                        {"least_peak_bytes", group.least_reserved},
                        {"most_peak_bytes", group.most_reserved},
                        {"shown", group.shown},
                        {"difference", nullptr}});
    }
    for (const GroupDifference& difference : view.differences) {
        rows[difference.group]["difference"] = difference_json(difference);
    }
    return rows;
}

Json shares_json(const std::optional<UnequalShares>& shares) {
    if (!shares) {
        return nullptr;
    }
    return {{"process", shares->process},
            {"needed_bytes", shares->needed_bytes},
            {"others", shares->others},
            {"least_bytes", shares->least_bytes},
            {"most_bytes", shares->most_bytes},
            {"equal_bytes", shares->equal_bytes},
            {"capacity_bytes", shares->capacity_bytes}};
}

Json card_json(const std::optional<CommonCard>& card) {
    if (!card) {
        return nullptr;
    }
    return {{"enough_bytes", size_or_null(card->enough_bytes)},
            {"replayed_bytes", size_or_null(card->replayed_bytes)},
            {"name", text_or_null(card->name)},
            {"class", text_or_null(card->class_words)},
            {"only_past_failure", card->only_past_failure},
            {"replayed", indices(card->replayed)},
            {"stand_for", card->stand_for}};
}

Json needed_json(const std::optional<NeededMemory>& needed) {
    if (!needed) {
        return nullptr;
    }
    const bool forecast = needed->forecast_card_bytes != 0;
    return {{"pool_bytes", needed->pool_bytes},
            {"index", needed->process},
            {"at_failure", needed->at_failure},
            {"forecast_card_bytes", size_or_null(needed->forecast_card_bytes)},
            {"forecast_index", forecast ? Json(needed->forecast_process) : Json()}};
}

Json setting_json(const std::optional<CommonSetting>& setting) {
    if (!setting) {
        return nullptr;
    }
    return {{"name", setting->name},
            {"ooms", setting->ooms},
            {"recorded_ooms", setting->recorded_ooms},
            {"retries", setting->retries},
            {"recorded_retries", setting->recorded_retries},
            {"peak_reserved_bytes", setting->peak_reserved},
            {"recorded_peak_reserved_bytes", setting->recorded_peak_reserved},
            {"class", setting->class_words},
            {"only_past_failure", setting->only_past_failure},
            {"rest_fits", setting->rest_fits ? Json(*setting->rest_fits) : Json(nullptr)},
            {"replayed", indices(setting->replayed)},
            {"stand_for", setting->stand_for}};
}

Json moment_json(const std::optional<UserMoment>& moment) {
    if (!moment) {
        return nullptr;
    }
    Json lines = Json::array();
    for (const LineHolds& line : moment->lines) {
        lines.push_back({{"label", line.line}, {"bytes", line.bytes}, {"blocks", line.blocks}});
    }
    return {{"bytes", moment->bytes},
            {"allocated_bytes", moment->allocated_bytes},
            {"lines", lines},
            {"phase", text_or_null(moment->phase)},
            {"has_phases", moment->has_phases},
            {"idle_ns", moment->idle_ns},
            {"recording_stopped", moment->recording_stopped},
            {"complete", moment->complete}};
}

// A process of another job or run is not among the processes of the document.
Json index_of(const Job& job, std::size_t process) {
    return process < job.processes.size() ? Json(process) : Json();
}

Json outside_name(const Job& job, std::size_t process) {
    return process < job.processes.size() ? Json() : Json(name_of(job.at(process)));
}

Json shared_json(const Job& job, const JobView& view) {
    Json rows = Json::array();
    for (const SharedCard& card : view.shared) {
        Json users = Json::array();
        for (const CardUser& user : card.users) {
            const ProcessDevice& device = job.at(user.process).devices[user.device];
            users.push_back(
                {{"index", index_of(job, user.process)},
                 {"outside", outside_name(job, user.process)},
                 {"device", device.device},
                 {"bytes", user.bytes},
                 {"after_last_event_ns", user.after_last_event_ns},
                 {"label", device.holders.empty() ? Json() : Json(device.holders.front().line)},
                 {"moment", moment_json(user.moment)}});
        }
        Json contexts = Json::array();
        for (const CardContext& user : card.only_contexts()) {
            const ProcessContext& context = job.at(user.process).contexts[user.context];
            contexts.push_back({{"index", index_of(job, user.process)},
                                {"outside", outside_name(job, user.process)},
                                {"device", context.device},
                                {"bytes", size_or_null(context.bytes)},
                                {"measured", text_or_null(context.measured)},
                                {"virtual", !job.at(user.process).card_set.empty()},
                                {"nothing_else", user.nothing_else},
                                {"after_last_event_ns", user.after_last_event_ns}});
        }
        rows.push_back({{"host", text_or_null(card.host)},
                        {"uuid", card.uuid},
                        {"total_bytes", size_or_null(card.total_bytes)},
                        {"at_unix_ns", card.at_unix_ns},
                        {"at_failure", card.at_failure},
                        {"sum_bytes", card.sum_bytes},
                        {"exact", card.exact},
                        {"at_most", card.at_most},
                        {"users", users},
                        {"only_contexts", contexts}});
    }
    return rows;
}

Json process_json(const ProcessSummary& process) {
    const bool known = process.all_segments_known();
    const auto figure = [&process](std::uint64_t RunFigures::*part) {
        const std::uint64_t sum = process.sum(part);
        return sum == kUnknown64 ? Json() : Json(sum);
    };
    return {
        {"file", process.file},
        {"process", process.pid},
        {"rank", place(process.place.rank)},
        {"rank_source", process.place.rank >= 0 ? text_or_null(process.place.rank_source) : Json()},
        {"helper_of_rank", place(process.place.inherited_rank)},
        {"local_rank", place(process.place.local_rank)},
        {"world_size", place(process.place.world_size)},
        {"host", text_or_null(process.place.host)},
        {"generation", place(process.place.generation)},
        {"job_id", text_or_null(process.place.job_id)},
        {"job", text_or_null(process.job)},
        {"other_files", process.other_files},
        {"command_line", process.program},
        {"start_unix_ns", process.start_unix_ns},
        {"trace", !process.path.empty()},
        {"replayed", process.replayed},
        {"peak_allocated_bytes", figure(&RunFigures::peak_allocated)},
        {"peak_reserved_bytes", figure(&RunFigures::peak_reserved)},
        {"retries", known ? figure(&RunFigures::retries) : Json()},
        {"ooms", figure(&RunFigures::ooms)},
        {"pool_failures", process.pool_failures},
        {"complete", !process.is_partial()},
        {"damaged", process.damaged},
        {"ended", ending_name(process.end.ending)},
        {"ending", ending_json(process.end)}};
}

}  // namespace

std::string job_json(const std::string& folder, const Job& job, const JobView& view) {
    Json processes = Json::array();
    for (const ProcessSummary& process : job.processes) {
        processes.push_back(process_json(process));
    }
    const auto first = first_failure(job);
    Json failures = Json::array();
    for (const FirstFailure& failure : first_failures(job)) {
        failures.push_back(failure_json(job, failure));
    }
    Json mixed_jobs = Json::array();
    for (const OneJob& one : jobs_in(job)) {
        auto of_job = first_failure(one.job);
        if (of_job) {
            of_job->process = one.members[of_job->process];
        }
        mixed_jobs.push_back({{"job_id", text_or_null(one.id)},
                              {"processes", one.members.size()},
                              {"indices", indices(one.members)},
                              {"first_failure", of_job ? failure_json(job, *of_job) : Json()}});
    }
    Json unreadable = Json::array();
    for (const UnreadableTrace& trace : job.unreadable) {
        unreadable.push_back({{"file", trace.file}, {"reason", trace.reason}});
    }
    const Json document = {{"schema", 1},
                           {"folder", folder.empty() ? Json() : Json(folder)},
                           {"first_failure", first ? failure_json(job, *first) : Json()},
                           {"first_failures", failures},
                           {"start_unix_ns", view.start_unix_ns},
                           {"mixed_jobs", mixed_jobs},
                           {"ranks_again", indices(ranks_again(job))},
                           {"generations", generations_json(view)},
                           {"groups", groups_json(view)},
                           {"not_compared", indices(view.not_compared)},
                           {"unequal_shares", shares_json(view.shares)},
                           {"card", card_json(view.card)},
                           {"needed", needed_json(view.needed)},
                           {"setting", setting_json(view.setting)},
                           {"settings_replayed", view.settings_replayed},
                           {"shared_cards", shared_json(job, view)},
                           {"processes", processes},
                           {"unreadable", unreadable}};
    // Names from the traced programs may be invalid UTF-8.
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace fragtrace::analyzer
