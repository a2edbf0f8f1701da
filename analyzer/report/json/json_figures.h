// The figures of a run as JSON. Figures that the input does not show are null.
#pragma once

#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/analysis/metrics/run_figures.h"

#include <nlohmann/json.hpp>

#include <cstdint>

namespace fragtrace::analyzer {

// A figure that follows from reserved memory; null if the input does not show it.
inline nlohmann::ordered_json if_reserved(const RunFigures& run, std::uint64_t value) {
    return segments_known(run) ? nlohmann::ordered_json(value) : nullptr;
}

// Memory of a card, or of its pool; null if the size of the card is not known.
nlohmann::ordered_json card_bytes_json(std::uint64_t bytes);

// {requested, allocated, active, reserved}
nlohmann::ordered_json peaks_json(const RunFigures& run);
// {rounding, slack, pending, releasable, inactive_split}
nlohmann::ordered_json waste_json(const WasteSplit& waste);
nlohmann::ordered_json waste_json(const RunFigures& run);

}  // namespace fragtrace::analyzer
