#include "analyzer/report/json/json_figures.h"

#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/analysis/verdict/verdict.h"

namespace fragtrace::analyzer {

using Json = nlohmann::ordered_json;

Json card_bytes_json(std::uint64_t bytes) {
    return is_of_known_card(bytes) ? Json(bytes) : Json(nullptr);
}

Json peaks_json(const RunFigures& run) {
    return {{"requested", requested_known(run) ? Json(run.peak_requested) : Json(nullptr)},
            {"allocated", run.peak_allocated},
            {"active", if_reserved(run, run.peak_active)},
            {"reserved", reserved_known(run) ? Json(run.peak_reserved) : Json(nullptr)}};
}

Json waste_json(const WasteSplit& waste) {
    return {{"rounding", waste.rounding},
            {"slack", waste.slack},
            {"pending", waste.pending},
            {"releasable", waste.releasable},
            {"inactive_split", waste.inactive_split}};
}

Json waste_json(const RunFigures& run) {
    Json parts = waste_json(run.waste_at_peak);
    for (Json& part : parts) {
        part = segments_known(run) ? part : Json(nullptr);
    }
    return parts;
}

}  // namespace fragtrace::analyzer
