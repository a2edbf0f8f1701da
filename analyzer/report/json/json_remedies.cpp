#include "analyzer/report/json/json_remedies.h"

#include "analyzer/analysis/metrics/known_figures.h"

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

using Json = nlohmann::ordered_json;

const char* remedy_name(Remedy remedy) {
    switch (remedy) {
        case Remedy::kSettings:
            return "settings";
        case Remedy::kEmptyCache:
            return "empty_cache";
        case Remedy::kCachingOff:
            return "caching_off";
        case Remedy::kMoveFirst:
            return "move_first";
        case Remedy::kOwnPool:
            return "own_pool";
        case Remedy::kOthersGone:
            return "others_gone";
    }
    return "";
}

// Maximum number of events that are written for a list of events.
constexpr std::size_t kListedEvents = 1000;

Json emptied_json(const ScriptChange& change) {
    Json listed = Json::array();
    for (std::size_t i = 0; i < std::min(change.events.size(), kListedEvents); ++i) {
        listed.push_back(change.events[i]);
    }
    return {{"calls", change.events.size()}, {"after_events", std::move(listed)}};
}

Json event_or_null(EventIndex event) {
    return event == kNoEvent ? Json(nullptr) : Json(event);
}

}  // namespace

Json kind_or_null(BoundKind kind) {
    return kind == BoundKind::kNone ? Json(nullptr) : Json(bound_kind_name(kind));
}

Json forecast_json(const DeviceAnalysis& device) {
    if (!device.forecast) {
        return nullptr;
    }
    const Forecast& forecast = *device.forecast;
    if (!forecast.known()) {
        return {{"known", false}, {"why_not", forecast.why_not}};
    }
    return {{"known", true},
            {"class", row_class_name(RowClass::kEstimate)},
            {"class_text", class_words(RowClass::kEstimate, BoundKind::kNone)},
            {"class_reason", forecast.reason},
            {"event", forecast.failed},
            {"iteration", forecast.iteration},
            {"basis_iteration", forecast.basis},
            {"scale", forecast.scale},
            {"requests", forecast.requests},
            {"peak_allocated_bytes", forecast.peak_allocated_bytes},
            {"peak_reserved_bytes", forecast.peak_reserved_bytes},
            {"in_use_fits", forecast.in_use_fits},
            {"least_capacity_bytes", forecast.least_capacity_bytes},
            {"least_card_bytes", forecast.least_card_bytes},
            {"shortfall_bytes", forecast.shortfall_bytes},
            {"fitting_part", forecast.fitting_part ? Json(*forecast.fitting_part) : Json(nullptr)}};
}

void add_row_details(const WhatIfRow& row, const DeviceAnalysis& device, Json* json) {
    (*json)["device"] = device.device;
    (*json)["remedy"] = remedy_name(row.candidate.remedy);
    (*json)["saves_bytes"] =
        reserved_known(device.recorded)
            ? Json(static_cast<std::int64_t>(device.recorded.peak_reserved) -
                   static_cast<std::int64_t>(row.result.statistics.reserved.peak))
            : Json(nullptr);
    (*json)["valid_until_event"] =
        row.result.divergence ? Json(row.result.divergence->event) : Json(nullptr);
    const ScriptChange* change = row.candidate.change.get();
    if (change != nullptr && change->kind == ScriptChange::Kind::kEmptyCache) {
        (*json)["empties_cache"] = emptied_json(*change);
    }
    if (row.cost) {
        (*json)["cost"] = {
            {"driver_allocs", row.cost->driver_allocs},
            {"driver_frees", row.cost->driver_frees},
            {"retries", row.cost->retries},
            {"synchronisations", row.cost->synchronisations},
            {"time_ns", row.cost->time_ns ? Json(*row.cost->time_ns) : Json(nullptr)}};
    }
}

Json advice_json(const Analysis& analysis) {
    Json rows = Json::array();
    for (const DeviceAnalysis& device : analysis.devices) {
        for (const Advice& advice : device.advice) {
            rows.push_back({{"device", device.device},
                            {"name", advice.name},
                            {"key", advice.key},
                            {"effect", effect_name(advice.effect)},
                            {"row", advice.row},
                            {"saved_bytes", advice.saved_bytes},
                            {"can_be_enough",
                             advice.can_be_enough ? Json(*advice.can_be_enough) : Json(nullptr)},
                            {"ooms", advice.ooms},
                            {"retries", advice.retries},
                            {"ooms_left", advice.ooms_left},
                            {"helped", advice.helped},
                            {"nothing", advice.nothing},
                            {"worse", advice.worse},
                            {"class", row_class_name(advice.row_class)},
                            {"bound_kind", kind_or_null(advice.bound_kind)},
                            {"class_text", advice.class_text},
                            {"reason", advice.reason}});
        }
    }
    return rows;
}

Json scans_json(const Analysis& analysis) {
    Json rows = Json::array();
    for (const DeviceAnalysis& device : analysis.devices) {
        for (const CapacityScan& scan : device.scans) {
            rows.push_back({{"device", device.device},
                            {"name", scan.candidate.name},
                            {"config", scan.candidate.config},
                            {"remedy", remedy_name(scan.candidate.remedy)},
                            {"enough_bytes", scan.enough_bytes},
                            {"least_fits_bytes", scan.least_fits},
                            {"largest_fails_bytes", scan.largest_fails},
                            {"step_bytes", scan.step_bytes},
                            {"tried", scan.tried},
                            {"least_card_bytes", scan.least_card_bytes},
                            {"failing_cards", scan.failing_cards},
                            {"class", row_class_name(scan.row_class)},
                            {"bound_kind", kind_or_null(scan.bound_kind)},
                            {"class_text", class_words(scan.row_class, scan.bound_kind)},
                            {"class_reason", scan.class_reason},
                            {"asks_for_free_memory_event", event_or_null(device.adaptation.asks)},
                            {"goes_on_after_oom_event", event_or_null(device.adaptation.goes_on)}});
        }
    }
    return rows;
}

Json near_misses_json(const Analysis& analysis) {
    Json rows = Json::array();
    for (const DeviceAnalysis& device : analysis.devices) {
        if (!device.near_miss) {
            continue;
        }
        const NearMiss& near = *device.near_miss;
        Json curve = Json::array();
        for (const FittingRequest& point : near.over_time) {
            curve.push_back({{"event", point.event}, {"bytes", point.bytes}});
        }
        Json row = {{"device", device.device},
                    {"headroom_bytes",
                     static_cast<std::int64_t>(device.capacity_bytes) -
                         static_cast<std::int64_t>(device.recorded.peak_reserved)},
                    {"true_headroom_bytes", nullptr},
                    {"least_fitting_request",
                     {{"event", event_or_null(near.least.event)}, {"bytes", near.least.bytes}}},
                    {"looked_at", near.looked_at},
                    {"requests", near.requests},
                    {"over_time", std::move(curve)},
                    {"steps", device.iteration_ends.ends.size()},
                    {"step_phase", device.iteration_ends.phase}};
        for (const WhatIfRow& bound : device.bounds) {
            if (bound.candidate.name == "offline" && bound.ooms() == 0) {
                row["true_headroom_bytes"] =
                    static_cast<std::int64_t>(device.capacity_bytes) -
                    static_cast<std::int64_t>(bound.result.statistics.reserved.peak);
            }
        }
        rows.push_back(std::move(row));
    }
    return rows;
}

}  // namespace fragtrace::analyzer
