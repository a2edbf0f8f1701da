#include "analyzer/analysis/holders/growth_forecast.h"

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

// If no capacity is known, growth matters from 1 / this of the peak on.
constexpr std::uint64_t kShareOfPeak = 10;
// Growth below 1 / this of a request that needed a retry did not cause that retry.
constexpr std::uint64_t kShareOfRetry = 10;

}  // namespace

std::optional<GrowthForecast> forecast_growth(const Growth& growth, const GrowthRoom& room) {
    GrowthForecast forecast;
    std::int64_t grown = 0;
    bool steady = false;
    for (const GrowingLine& place : growth.places) {
        grown += place.slows ? 0 : place.place.held.bytes;
        steady = steady || !place.slows;
    }
    if (!steady) {
        return std::nullopt;
    }
    forecast.grown_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(grown, 0));
    forecast.bytes_per_iteration = std::max<std::uint64_t>(
        1, forecast.grown_bytes / std::max<std::size_t>(1, growth.last - growth.first));
    forecast.recorded_iterations = growth.last;
    forecast.capacity_known = room.capacity_known;
    const bool may_matter =
        growth.repeats && forecast.grown_bytes >= room.retried_bytes / kShareOfRetry;
    if (!room.capacity_known) {
        forecast.matters =
            may_matter && forecast.grown_bytes >= room.peak_reserved_bytes / kShareOfPeak;
        return forecast;
    }
    forecast.left_bytes = room.capacity_bytes - std::min(room.capacity_bytes, room.needed_bytes);
    forecast.at_iteration =
        forecast.recorded_iterations + forecast.left_bytes / forecast.bytes_per_iteration + 1;
    forecast.matters =
        may_matter && forecast.at_iteration <= kForecastTimes * forecast.recorded_iterations;
    return forecast;
}

}  // namespace fragtrace::analyzer
