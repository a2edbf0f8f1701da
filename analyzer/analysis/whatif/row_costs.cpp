#include "analyzer/analysis/whatif/row_costs.h"

#include <cmath>

namespace fragtrace::analyzer {
namespace {

std::int64_t difference(std::uint64_t now, std::uint64_t before) {
    return static_cast<std::int64_t>(now) - static_cast<std::int64_t>(before);
}

bool maps_pages(const WhatIfRow& row) {
    return row.candidate.config.find("expandable_segments:True") != std::string::npos;
}

// Nanoseconds in the driver. nullopt if a mean that is needed was not measured.
std::optional<double> driver_time(const WhatIfRow& row, const DriverTimes& times) {
    const PoolStatistics& statistics = row.result.statistics;
    const double alloc = maps_pages(row) ? times.map_ns : times.alloc_ns;
    const double free = maps_pages(row) ? times.unmap_ns : times.free_ns;
    if ((statistics.segments_allocated != 0 && alloc == 0) ||
        (statistics.segments_freed != 0 && free == 0)) {
        return std::nullopt;
    }
    return alloc * static_cast<double>(statistics.segments_allocated) +
           free * static_cast<double>(statistics.segments_freed);
}

}  // namespace

std::uint64_t synchronisations(const WhatIfRow& row) {
    const PoolStatistics& statistics = row.result.statistics;
    const ScriptChange* change = row.candidate.change.get();
    const bool empties = change != nullptr && change->kind == ScriptChange::Kind::kEmptyCache;
    return statistics.segments_freed + statistics.retries + (empties ? change->events.size() : 0);
}

RowCost cost_of(const WhatIfRow& row, const WhatIfRow& recorded, const DriverTimes& times) {
    const PoolStatistics& now = row.result.statistics;
    const PoolStatistics& before = recorded.result.statistics;
    RowCost cost{.driver_allocs = difference(now.segments_allocated, before.segments_allocated),
                 .driver_frees = difference(now.segments_freed, before.segments_freed),
                 .retries = difference(row.retries(), recorded.retries()),
                 .synchronisations = difference(synchronisations(row), synchronisations(recorded)),
                 .time_ns = {}};
    const auto now_ns = driver_time(row, times);
    const auto before_ns = driver_time(recorded, times);
    if (now_ns && before_ns) {
        cost.time_ns = std::llround(*now_ns - *before_ns);
    }
    return cost;
}

}  // namespace fragtrace::analyzer
