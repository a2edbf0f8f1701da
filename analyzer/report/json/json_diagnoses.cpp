#include "analyzer/report/json/json_diagnoses.h"

#include "analyzer/report/json/json_run.h"

#include <nlohmann/json.hpp>

namespace fragtrace::analyzer {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxCulprits = 20;

Json culprits_json(const Analysis& analysis,
                   const Diagnosis& diagnosis,
                   const Iterations& iterations) {
    Json culprits = Json::array();
    for (const CulpritGroup& group : group_culprits(analysis, diagnosis, false)) {
        if (culprits.size() == kMaxCulprits) {
            break;
        }
        const Outlived outlived = outlived_of(analysis, group, diagnosis);
        const std::size_t born = group.oldest == kNoEvent ? 0 : iterations.of(group.oldest);
        culprits.push_back({{"label", group.held.label},
                            {"stack", stack_json(analysis, group.held.origin)},
                            {"held_open_bytes", group.held_open_bytes},
                            {"live_bytes", group.held.bytes},
                            {"blocks", group.held.blocks},
                            {"phase", phase_name(analysis, group.oldest)},
                            {"phase_over", outlived.over},
                            {"phase_again", outlived.again},
                            {"phases_since", outlived.phases_since},
                            {"iteration", born},
                            {"iterations_since", iterations.of(diagnosis.trouble.event) - born}});
    }
    return culprits;
}

// The same blocks, grouped by the phase of their allocation or by age.
Json culprit_sums_json(const Analysis& analysis, const Diagnosis& diagnosis, CulpritKey key) {
    Json rows = Json::array();
    for (const CulpritGroup& group : group_culprits(analysis, diagnosis, false, key)) {
        if (rows.size() == kMaxCulprits) {
            break;
        }
        rows.push_back({{key == CulpritKey::kPhase ? "phase" : "age", group.held.label},
                        {"held_open_bytes", group.held_open_bytes},
                        {"live_bytes", group.held.bytes},
                        {"blocks", group.held.blocks}});
    }
    return rows;
}

const char* set_kind(CheapestSet::Kind kind) {
    switch (kind) {
        case CheapestSet::Kind::kNone:
            return "none";
        case CheapestSet::Kind::kWindow:
            return "window";
        case CheapestSet::Kind::kSegments:
            return "segments";
        case CheapestSet::Kind::kPages:
            return "pages";
    }
    return "none";
}

Json place_json(const FreePlace& place) {
    const char* const size_class = place.size_class == SizeClass::kSmall   ? "small"
                                   : place.size_class == SizeClass::kLarge ? "large"
                                                                           : "";
    return {
        {"stream", place.stream_handle == kUnknown64 ? Json(nullptr) : Json(place.stream_handle)},
        {"private_pool", place.private_pool},
        {"size_class", size_class},
        {"free_bytes", place.free_bytes},
        {"largest_free_bytes", place.largest_bytes}};
}

Json places_json(const Verdict& verdict) {
    if (!verdict.places) {
        return nullptr;
    }
    Json elsewhere = Json::array();
    for (const FreePlace& place : verdict.places->elsewhere) {
        elsewhere.push_back(place_json(place));
    }
    return {{"own", place_json(verdict.places->own)},
            {"elsewhere", elsewhere},
            {"elsewhere_free_bytes", verdict.places->elsewhere_bytes},
            {"elsewhere_largest_free_bytes", verdict.places->elsewhere_largest_bytes},
            {"places_left_out", verdict.places->places_left_out}};
}

Json diagnosis_json(const Analysis& analysis,
                    const DeviceAnalysis& device,
                    const Diagnosis& diagnosis) {
    const Verdict& verdict = diagnosis.verdict;
    Json steps = Json::array();
    for (const VerdictStep& step : verdict.steps) {
        steps.push_back({{"id", step.id},
                         {"frees_bytes", step.frees_bytes},
                         {"page_bytes", step.page_bytes},
                         {"serves", step.serves}});
    }
    const EventIndex event = diagnosis.trouble.event;
    return {{"time_ns", analysis.timeline.events[event].time_ns},
            {"event", event},
            {"device", device.device},
            {"requested_bytes", verdict.requested_bytes},
            {"rounded_bytes", verdict.rounded_bytes},
            {"verdict", verdict.id},
            {"requester", verdict.requester},
            {"phase", phase_name(analysis, event)},
            {"despite_free_memory", verdict.despite_free_memory()},
            {"page_bytes", verdict.page_bytes},
            {"steps", steps},
            {"also_served_by", verdict.also_served_by},
            {"free_places", places_json(verdict)},
            {"largest_free_bytes", verdict.largest_hole_bytes},
            {"largest_usable_bytes", verdict.largest_free_bytes},
            {"free_bytes", verdict.free_bytes},
            {"device_free_bytes",
             verdict.device_free_known() ? Json(verdict.device_free_bytes) : Json()},
            {"allocated_bytes", verdict.allocated_bytes},
            {"reserved_bytes", verdict.reserved_bytes},
            {"stack", stack_json(analysis, analysis.timeline.events[event].origin)},
            {"cheapest_set",
             {{"kind", set_kind(diagnosis.cheapest.kind)},
              {"bytes_to_free", diagnosis.cheapest.bytes_to_free},
              {"segments", diagnosis.cheapest.segments},
              {"pages", diagnosis.cheapest.pages},
              {"blocks", diagnosis.cheapest.blocks.size()},
              {"equally_cheap_sets", diagnosis.cheapest.equally_cheap_sets},
              {"approximate", diagnosis.cheapest.approximate}}},
            {"culprits", culprits_json(analysis, diagnosis, device.held.iterations)},
            {"culprits_by_phase", culprit_sums_json(analysis, diagnosis, CulpritKey::kPhase)},
            {"culprits_by_age", culprit_sums_json(analysis, diagnosis, CulpritKey::kAge)}};
}

}  // namespace

nlohmann::ordered_json troubles_json(const Analysis& analysis,
                                     const DeviceAnalysis& device,
                                     const std::vector<Diagnosis>& diagnoses,
                                     bool retries) {
    Json rows = Json::array();
    for (const Diagnosis& diagnosis : diagnoses) {
        if ((diagnosis.trouble.outcome == Outcome::kRetryOk) == retries) {
            rows.push_back(diagnosis_json(analysis, device, diagnosis));
            if (retries) {
                rows.back()["released_bytes"] = diagnosis.released_bytes;
                rows.back()["driver_ns"] = retry_ns(analysis, diagnosis.trouble.event);
            }
        }
    }
    return rows;
}

}  // namespace fragtrace::analyzer
