#include "analyzer/report/json/json.h"

#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/model/unknown_segments.h"
#include "analyzer/report/json/json_diagnoses.h"
#include "analyzer/report/json/json_figures.h"
#include "analyzer/report/json/json_holders.h"
#include "analyzer/report/json/json_program_pools.h"
#include "analyzer/report/json/json_remedies.h"
#include "analyzer/report/json/json_run.h"
#include "analyzer/report/text/conclusion_text.h"
#include "analyzer/report/text/text_source.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace fragtrace::analyzer {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchema = 1;

// The format of an imported recording, and sentences about what it lacks; null for others.
Json import_json(const Timeline& timeline) {
    if (!timeline.facts.contains("import")) {
        return nullptr;
    }
    return {{"format", timeline.fact("import")}, {"lacks", missing_in_import(timeline)}};
}

Json source_json(const Analysis& analysis) {
    const Timeline& timeline = analysis.timeline;
    Json names = Json::array();
    bool is_virtual = timeline.fact("virtual") == "1";
    for (const DeviceAnalysis& device : analysis.devices) {
        names.push_back(device.name);
        is_virtual |= device.virtual_gpu;
    }
    return {{"path", timeline.path},
            {"process", timeline.pid},
            {"command_line", timeline.fact("command_line")},
            {"device_names", names},
            {"virtual", is_virtual},
            {"import", import_json(timeline)},
            {"ended", ending_name(process_end(timeline).ending)},
            {"ending", ending_json(process_end(timeline))},
            {"start_unix_ns", timeline.start_unix_ns},
            {"events", timeline.recorded_events()},
            {"events_read", timeline.events_read()},
            {"events_lost", timeline.damage.events_lost},
            {"events_unfinished", timeline.damage.events_unfinished},
            {"bytes_unreadable", timeline.damage.bytes_unreadable}};
}

Json fidelity_json(const DeviceAnalysis& device) {
    if (!segments_known(device.recorded)) {
        return {{"placements", nullptr},
                {"placements_equal", nullptr},
                {"segments", nullptr},
                {"segments_equal", nullptr},
                {"reason", "not checked: the input shows no placements"}};
    }
    if (!device.fidelity) {
        return {{"placements", 0},
                {"placements_equal", 0},
                {"segments", 0},
                {"segments_equal", 0},
                {"reason", "no caching pool was recorded: there is nothing to compare with"}};
    }
    return {{"placements", device.fidelity->placements},
            {"placements_equal", device.fidelity->placements_equal},
            {"segments", device.fidelity->segments},
            {"segments_equal", device.fidelity->segments_equal},
            {"reason",
             device.fidelity->not_judged.empty() ? device.fidelity->reason
                                                 : "not judged: " + device.fidelity->not_judged}};
}

Json device_json(const DeviceAnalysis& device, const RunFigures& summary) {
    Json others = Json::array();
    for (const OtherProcesses& one : device.other_processes) {
        others.push_back({{"event", one.sequence},
                          {"used_bytes", one.used_bytes},
                          {"free_bytes", one.free_bytes},
                          {"other_bytes", one.other_bytes},
                          {"processes", one.processes},
                          {"largest_pid", one.largest_pid},
                          {"largest_bytes", one.largest_bytes},
                          {"largest_program", one.largest_program}});
    }
    return {{"index", device.device},
            {"name", device.name},
            {"total_bytes", card_bytes_json(device.total_bytes)},
            {"others_bytes", device.others_bytes},
            {"capacity_bytes", card_bytes_json(device.capacity_bytes)},
            {"peak_unmapped_bytes", device.peak_unmapped_bytes},
            {"peak", peaks_json(summary)},
            {"past_pool",
             {{"peak", if_reserved(device.recorded, device.recorded.peak_past_pool)},
              {"peak_with_reserved",
               if_reserved(device.recorded, device.recorded.peak_with_past_pool)}}},
            {"waste_at_peak", waste_json(summary)},
            {"segments_allocated", if_reserved(summary, summary.segments_allocated)},
            {"segments_freed", if_reserved(summary, summary.segments_freed)},
            {"retries", if_reserved(summary, summary.retries)},
            {"ooms", summary.ooms},
            {"violations", device.violations},
            {"state_only", device.state_only},
            {"violations_after_gaps", device.after_gap},
            {"context", {{"bytes", device.context.bytes}, {"measured", device.context.measured}}},
            {"other_processes", others}};
}

Json row_json(const WhatIfRow& row) {
    return {{"name", row.candidate.name},
            {"config", row.candidate.config},
            {"pool", row.candidate.pool},
            {"capacity_bytes", card_bytes_json(row.candidate.capacity_bytes)},
            {"ooms", row.ooms()},
            {"peak_reserved_bytes", row.result.statistics.reserved.peak},
            {"least_peak_reserved_bytes", row.least_reserved_bytes()},
            {"peak_allocated_bytes", row.result.statistics.allocated.peak},
            {"segments_allocated", row.result.statistics.segments_allocated},
            {"segments_freed", row.result.statistics.segments_freed},
            {"retries", row.retries()},
            {"waste_at_peak", waste_json(row.result.waste_at_peak)},
            {"class", row_class_name(row.row_class)},
            {"bound_kind", kind_or_null(row.bound_kind)},
            {"class_text", row.class_text()},
            {"class_reason", row.class_reason},
            {"gets_past", row.gets_past()},
            {"rest_fits", row.rest_fits ? Json(*row.rest_fits) : Json(nullptr)},
            {"usable", row.usable},
            {"usable_reason", row.usable_reason},
            {"recorded", row.is_recorded}};
}

Json whatif_rows(const Analysis& analysis) {
    Json rows = Json::array();
    for (const DeviceAnalysis& device : analysis.devices) {
        const std::vector<const WhatIfRow*> ranked = ranked_rows(device);
        for (const auto& [list, table] : {std::pair(&device.settings, "settings"),
                                          std::pair(&device.remedies, "remedies"),
                                          std::pair(&device.pools, "pools"),
                                          std::pair(&device.bounds, "bounds"),
                                          std::pair(&device.capacities, "cards")}) {
            for (const WhatIfRow& row : *list) {
                rows.push_back(row_json(row));
                add_row_details(row, device, &rows.back());
                rows.back()["table"] = table;
                const auto at = std::find(ranked.begin(), ranked.end(), &row);
                rows.back()["rank"] = at == ranked.end() ? Json() : Json(at - ranked.begin() + 1);
            }
        }
    }
    return rows;
}

const char* divergence_name(Divergence::Kind kind) {
    switch (kind) {
        case Divergence::Kind::kFails:
            return "fails";
        case Divergence::Kind::kIsServed:
            return "is_served";
        case Divergence::Kind::kGoesOn:
            return "goes_on";
        case Divergence::Kind::kPoolLost:
            return "pool_lost";
        case Divergence::Kind::kFreeMemory:
            return "free_memory";
    }
    return "";
}

Json divergence_json(const Analysis& analysis, const ReplayResult& result) {
    if (!result.divergence) {
        return nullptr;
    }
    const PoolStatistics& statistics = result.divergence->statistics;
    const auto failed =
        std::count_if(result.troubles.begin(), result.troubles.end(), [&](const Trouble& trouble) {
            return trouble.outcome != Outcome::kRetryOk &&
                   trouble.event <= result.divergence->event;
        });
    const bool past_pool =
        result.divergence->kind == Divergence::Kind::kFails &&
        std::none_of(result.troubles.begin(), result.troubles.end(), [&](const Trouble& trouble) {
            return trouble.event == result.divergence->event;
        });
    return {{"kind", divergence_name(result.divergence->kind)},
            {"event", result.divergence->event},
            {"time_ns", analysis.timeline.events[result.divergence->event].time_ns},
            {"peak",
             {{"requested", statistics.requested.peak},
              {"allocated", statistics.allocated.peak},
              {"active", statistics.active.peak},
              {"reserved", statistics.reserved.peak}}},
            {"segments_allocated", statistics.segments_allocated},
            {"segments_freed", statistics.segments_freed},
            {"retries", result.divergence->retries},
            {"ooms", result.divergence->ooms},
            {"num_alloc_retries", statistics.retries},
            {"failed_requests", failed + (past_pool ? 1 : 0)}};
}

Json append(Json first, const Json& second) {
    for (const Json& element : second) {
        first.push_back(element);
    }
    return first;
}

std::string finish(Json* document, const Analysis& analysis) {
    (*document)["assumptions"] = analysis.assumptions;
    (*document)["warnings"] = warnings_with_stacks(analysis);
    // Names from the traced program may be invalid UTF-8.
    return document->dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string report_json(const Analysis& analysis) {
    Json document = {{"schema", kSchema}, {"source", source_json(analysis)}};
    Json devices = Json::array();
    Json ooms = Json::array();
    Json retries = Json::array();
    for (const DeviceAnalysis& device : analysis.devices) {
        devices.push_back(device_json(device, device.recorded));
        if (device.recorded.ooms == 0 && !shows_failures(analysis.timeline.facts)) {
            devices.back()["ooms"] = nullptr;
        }
        devices.back()["fidelity"] = fidelity_json(device);
        devices.back()["limit_bytes"] =
            device.limit_bytes == 0 ? Json(nullptr) : Json(device.limit_bytes);
        const Conclusion conclusion = conclusion_of(analysis, device);
        const Diagnosis* const reported = reported_oom(device);
        devices.back()["conclusion"] = {
            {"event", reported == nullptr ? Json() : Json(reported->trouble.event)},
            {"culprit", culprit_text(conclusion.culprit)},
            {"remedy", remedy_text(device, conclusion.remedy)},
            {"row",
             conclusion.remedy.row == nullptr ? std::string()
                                              : conclusion.remedy.row->candidate.name}};
        devices.back()["tried"] = Json::array();
        for (const Trial& trial : device.trials) {
            devices.back()["tried"].push_back({{"change", trial.change},
                                               {"outcome", trial.outcome},
                                               {"held", trial.held ? Json(*trial.held) : Json()}});
        }
        devices.back()["forecast"] = forecast_json(device);
        devices.back()["holes"] = holes_json(analysis, device);
        devices.back()["whatif_left_out"] = device.no_whatif;
        devices.back()["iterations"] = iterations_json(analysis, device);
        devices.back()["iterations"]["growth"]["forecast"] =
            growth_forecast_json(device.growth_forecast);
        devices.back()["holders_at_peak"] = held_lines_json(device.held);
        devices.back()["holders"] = holders_json(device.held, device.at_peak_allocated.event, true);
        for (const bool repeated : {false, true}) {
            Json troubles = troubles_json(analysis, device, device.diagnoses, repeated);
            for (Json& one : troubles) {
                one["holders"] = holders_json(device.held, one["event"].get<EventIndex>(), false);
            }
            Json& all = repeated ? retries : ooms;
            all = append(std::move(all), troubles);
        }
        if (!segments_known(device.recorded)) {
            ooms = append(std::move(ooms), failed_requests_json(analysis, device));
        }
    }
    if (!analysis.devices.empty()) {
        const DeviceAnalysis& first = analysis.devices.front();
        document["fidelity"] = fidelity_json(first);
        document["config"] = segments_known(first.recorded) ? Json(first.config) : Json(nullptr);
        document["pool"] = segments_known(first.recorded) ? Json(first.pool) : Json(nullptr);
        document["capacity_bytes"] = card_bytes_json(first.capacity_bytes);
    }
    for (const CallOutOfMemory& call : analysis.run.call_ooms) {
        ooms.push_back(failed_call_json(analysis, call));
    }
    document["devices"] = devices;
    document["ooms"] = ooms;
    document["retries"] = retries;
    document["whatif"] = whatif_rows(analysis);
    document["advice"] = advice_json(analysis);
    document["near_misses"] = near_misses_json(analysis);
    document["category_rules"] = category_rules_json(analysis);
    document["program_pools"] = program_pools_json(analysis);
    document["phases"] = phases_json(analysis);
    const bool shows_driver = shows_reserved(analysis.timeline.facts);
    document["driver_calls"] = shows_driver ? calls_json(analysis) : Json(nullptr);
    document["memory"] = shows_driver ? memory_json(analysis) : Json(nullptr);
    document["recording"] = recording_json(analysis);
    document["facts"] = facts_json(analysis);
    document["symbols"] = symbols_json(analysis);  // last, because it covers all stacks above
    return finish(&document, analysis);
}

std::string replay_json(const Analysis& analysis,
                        const DeviceAnalysis& device,
                        const WhatIfRow& row,
                        const std::vector<Diagnosis>& diagnoses) {
    const Candidate& candidate = row.candidate;
    Json replayed_device = device_json(device, summarize(row.result));
    replayed_device["num_alloc_retries"] = row.result.statistics.retries;
    Json document = {{"schema", kSchema},
                     {"source", source_json(analysis)},
                     {"fidelity", fidelity_json(device)},
                     {"config", candidate.config},
                     {"pool", candidate.pool},
                     {"capacity_bytes", card_bytes_json(candidate.capacity_bytes)},
                     {"least_peak_reserved_bytes", row.least_reserved_bytes()},
                     {"class", row_class_name(row.row_class)},
                     {"bound_kind", kind_or_null(row.bound_kind)},
                     {"class_text", row.class_text()},
                     {"class_reason", row.class_reason},
                     {"parting", divergence_json(analysis, row.result)},
                     {"devices", Json::array({replayed_device})},
                     {"ooms", troubles_json(analysis, device, diagnoses, false)},
                     {"retries", troubles_json(analysis, device, diagnoses, true)}};
    return finish(&document, analysis);
}

std::string whatif_json(const Analysis& analysis) {
    Json document = {{"schema", kSchema},
                     {"source", source_json(analysis)},
                     {"whatif", whatif_rows(analysis)},
                     {"advice", advice_json(analysis)},
                     {"capacity_scans", scans_json(analysis)},
                     {"near_misses", near_misses_json(analysis)}};
    return finish(&document, analysis);
}

}  // namespace fragtrace::analyzer
