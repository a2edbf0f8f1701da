#include "analyzer/report/json/json_holders.h"

#include "analyzer/report/json/json_figures.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>

namespace fragtrace::analyzer {
namespace {

using Json = nlohmann::ordered_json;

std::string key_of(Category category) {
    std::string name(category_name(category));
    std::replace(name.begin(), name.end(), ' ', '_');
    return name;
}

Json user_category_json(const std::string& name) {
    return name.empty() ? Json() : Json(name);
}

Json place_json(const HoldingLine& place) {
    return {{"label", place.held.label},
            {"category", key_of(place.category)},
            {"user_category", user_category_json(place.user_category)},
            {"bytes", place.held.bytes},
            {"blocks", place.held.blocks}};
}

Json places_json(const std::vector<HoldingLine>& places) {
    Json rows = Json::array();
    for (const HoldingLine& place : places) {
        rows.push_back(place_json(place));
    }
    return rows;
}

Json private_pools_json(const std::vector<PrivatePool>& pools) {
    Json rows = Json::array();
    for (const PrivatePool& pool : pools) {
        rows.push_back({{"pool", pool.number},
                        {"name", pool.name.empty() ? Json() : Json(pool.name)},
                        {"of_graph", pool.of_graph},
                        {"reserved_bytes", pool.reserved_bytes},
                        {"allocated_bytes", pool.allocated_bytes},
                        {"unmapped_bytes", pool.unmapped_bytes},
                        {"line", pool.line.empty() ? Json() : Json(pool.line)}});
    }
    return rows;
}

Json difference_json(const IterationDifference& difference) {
    if (difference.iteration == 0) {
        return nullptr;
    }
    return {{"iteration", difference.iteration},
            {"against", difference.against},
            {"place_event", difference.place},
            {"bytes", difference.bytes},
            {"asked_bytes", difference.asked_bytes},
            {"asked_bytes_then", difference.asked_bytes_then},
            {"places", places_json(difference.places)}};
}

const char* survived_name(Survivors::Of of) {
    switch (of) {
        case Survivors::Of::kOutOfMemory:
            return "out_of_memory";
        case Survivors::Of::kModel:
            return "model";
        case Survivors::Of::kPhase:
            return "phase";
    }
    return "";
}

}  // namespace

Json holes_json(const Analysis& analysis, const DeviceAnalysis& device) {
    Json rows = Json::array();
    for (const Hole& hole : device.holes) {
        rows.push_back({{"address", hole.address},
                        {"bytes", hole.size_bytes},
                        {"largest_request_bytes", hole.largest_request_bytes},
                        {"stream",
                         hole.stream < analysis.timeline.streams.size()
                             ? Json(analysis.timeline.streams[hole.stream])
                             : Json()},
                        {"private_pool", hole.private_pool},
                        {"size_class", hole.size_class == SizeClass::kSmall ? "small" : "large"},
                        {"whole_segment", hole.whole_segment}});
    }
    return rows;
}

Json category_rules_json(const Analysis& analysis) {
    if (!analysis.categories) {
        return nullptr;
    }
    Json rows = Json::array();
    for (std::size_t i = 0; i < analysis.categories->rules.size(); ++i) {
        const CategoryRule& rule = analysis.categories->rules[i];
        const RuleUse use = use_of_rule(analysis, i);
        rows.push_back({{"line", rule.line},
                        {"category", rule.name},
                        {"matched", use.matched},
                        {"requests", use.requests}});
    }
    return {{"file", analysis.categories->file}, {"rules", rows}};
}

Json held_lines_json(const DeviceHolders& held) {
    Json rows = Json::array();
    for (const HeldBy& line : held.at_peak) {
        rows.push_back({{"label", line.label}, {"bytes", line.bytes}, {"blocks", line.blocks}});
    }
    return rows;
}

Json holders_json(const DeviceHolders& held, EventIndex event, bool at_peak) {
    for (std::size_t i = 0; i < held.holders.size(); ++i) {
        const Holders& holders = held.holders[i];
        if (holders.event != event || holders.at_peak != at_peak) {
            continue;
        }
        Json categories = Json::array();
        for (const Holding& holding : holders.categories) {
            categories.push_back({{"category", key_of(holding.category)},
                                  {"user_category", user_category_json(holding.user_category)},
                                  {"bytes", holding.bytes},
                                  {"blocks", holding.blocks},
                                  {"earlier_bytes", holding.earlier_bytes},
                                  {"old_bytes", holding.old_bytes}});
        }
        const OutsideMemory& outside = holders.outside;
        return {{"class", "estimate"},
                {"event", holders.event},
                {"allocated_bytes", holders.allocated_bytes},
                {"categories", categories},
                {"places", places_json(holders.places)},
                {"places_left_out", holders.places_left_out},
                {"private_pools", private_pools_json(holders.private_pools)},
                {"outside",
                 {{"libraries_bytes", outside.libraries},
                  {"past_pool_bytes", outside.past_pool},
                  {"other_bytes", outside.other},
                  {"context_bytes", outside.context},
                  {"processes_bytes", outside.processes},
                  {"not_known_bytes", outside.not_known}}},
                {"difference", difference_json(held.differences[i])}};
    }
    return nullptr;
}

Json iterations_json(const Analysis& analysis, const DeviceAnalysis& device) {
    const DeviceHolders& held = device.held;
    const Iterations& iterations = held.iterations;
    const bool recurring = iterations.source == Iterations::Source::kRecurrence;
    Json growing = Json::array();
    for (const GrowingLine& place : held.growth.places) {
        growing.push_back(place_json(place.place));
        growing.back()["bytes_at_last"] = place.bytes_at_last;
        growing.back()["times_grown"] = place.times_grown;
        growing.back()["slows"] = place.slows;
        growing.back()["freed_before_failure"] = place.freed_before_failure;
    }
    Json parts = Json::array();
    for (const PartGrowth& part : held.parts) {
        parts.push_back({{"part", part.part},
                         {"first", part.first},
                         {"last", part.last},
                         {"bytes_at_first", part.bytes_at_first},
                         {"bytes_at_last", part.bytes_at_last},
                         {"times_grown", part.times_grown},
                         {"grows", part.grows()}});
    }
    Json survivors = Json::array();
    for (const Survivors& one : held.survivors) {
        survivors.push_back({{"of", survived_name(one.of)},
                             {"event", one.event},
                             {"phase", one.phase},
                             {"until_event", one.until},
                             {"iteration", one.iteration},
                             {"bytes", one.bytes},
                             {"cached_bytes", one.cached_bytes},
                             {"places", places_json(one.places)}});
    }
    Json peaks = nullptr;
    if (held.peaks.known) {
        peaks = {{"warmup_allocated", held.peaks.warmup_allocated},
                 {"warmup_reserved", if_reserved(device.recorded, held.peaks.warmup_reserved)},
                 {"steady_allocated", held.peaks.steady_allocated},
                 {"steady_reserved", if_reserved(device.recorded, held.peaks.steady_reserved)}};
    }
    return {{"source", source_name(iterations.source)},
            {"phase", iterations.phase},
            {"begins_with", recurring ? analysis.symbols->describe(iterations.anchor) : ""},
            {"count", iterations.begins.size()},
            {"match_rate", iterations.match_rate},
            {"size_match_rate", iterations.size_match_rate},
            {"peaks", peaks},
            {"growth",
             {{"first", held.growth.first},
              {"last", held.growth.last},
              {"bytes", held.growth.bytes},
              {"places", growing},
              {"parts", parts}}},
            {"survivors", survivors},
            {"stacks_left_out", held.stacks_left_out}};
}

Json growth_forecast_json(const std::optional<GrowthForecast>& forecast) {
    if (!forecast) {
        return nullptr;
    }
    const bool known = forecast->capacity_known;
    return {{"class", "estimate"},
            {"bytes_per_iteration", forecast->bytes_per_iteration},
            {"grown_bytes", forecast->grown_bytes},
            {"recorded_iterations", forecast->recorded_iterations},
            {"left_bytes", known ? Json(forecast->left_bytes) : Json()},
            {"at_iteration", known ? Json(forecast->at_iteration) : Json()},
            {"matters", forecast->matters}};
}

}  // namespace fragtrace::analyzer
