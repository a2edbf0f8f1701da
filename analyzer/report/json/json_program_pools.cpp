#include "analyzer/report/json/json_program_pools.h"

#include <nlohmann/json.hpp>

namespace fragtrace::analyzer {
namespace {

using Json = nlohmann::ordered_json;

const char* key_of(PoolMemory memory) {
    switch (memory) {
        case PoolMemory::kDevice:
            return "device";
        case PoolMemory::kManaged:
            return "managed";
        case PoolMemory::kHost:
            return "host";
        case PoolMemory::kUnknown:
            return "unknown";
    }
    return "";
}

Json moment_json(const Analysis& analysis,
                 const ProgramPool& pool,
                 const ProgramPoolMoment& moment) {
    if (moment.event == kNoEvent) {
        return nullptr;
    }
    const auto if_known = [&pool](std::uint64_t bytes) {
        return pool.memory == PoolMemory::kUnknown ? Json(nullptr) : Json(bytes);
    };
    const bool asked = moment.requested_bytes != 0 && moment.requested_bytes != kUnknown64;
    Json lines = Json::array();
    for (const HeldBy& line : moment.lines) {
        lines.push_back({{"label", line.label}, {"bytes", line.bytes}, {"blocks", line.blocks}});
    }
    return {{"event", moment.event},
            {"time_ns", analysis.timeline.events[moment.event].time_ns},
            {"requested_bytes", asked ? Json(moment.requested_bytes) : Json(nullptr)},
            {"allocated_bytes", moment.allocated_bytes},
            {"blocks", moment.blocks},
            {"reserved_bytes", if_known(moment.reserved_bytes)},
            {"free_bytes", if_known(moment.free_bytes())},
            {"largest_free_bytes", if_known(moment.largest_free_bytes)},
            {"lines", lines}};
}

Json moments_json(const Analysis& analysis,
                  const ProgramPool& pool,
                  const std::vector<ProgramPoolMoment>& moments) {
    Json rows = Json::array();
    for (const ProgramPoolMoment& moment : moments) {
        rows.push_back(moment_json(analysis, pool, moment));
    }
    return rows;
}

Json fidelity_json(const ProgramPool& pool) {
    if (!pool.fidelity) {
        return nullptr;
    }
    const ProgramPoolFidelity& fidelity = *pool.fidelity;
    return {{"settings", pool.settings},
            {"exact", fidelity.exact()},
            {"placements", fidelity.placements},
            {"placements_equal", fidelity.placements_equal},
            {"segments", fidelity.segments},
            {"segments_equal", fidelity.segments_equal},
            {"first_difference", fidelity.reason},
            {"not_judged", fidelity.not_judged}};
}

Json remedies_json(const ProgramPool& pool) {
    Json rows = Json::array();
    for (const ProgramPoolRemedy& remedy : pool.remedies) {
        rows.push_back({{"setting", remedy.setting},
                        {"class", "estimate"},
                        {"best_case", remedy.at_least},
                        {"failed_requests", remedy.failed},
                        {"served_failures", remedy.served}});
    }
    return rows;
}

}  // namespace

Json program_pools_json(const Analysis& analysis) {
    Json rows = Json::array();
    for (const ProgramPool& pool : analysis.program_pools) {
        Json replays = Json::array();
        for (const ProgramPoolReplay& replay : pool.replays) {
            replays.push_back({{"pool", replay.pool},
                               {"class", "estimate"},
                               {"peak_reserved_bytes", replay.peak_reserved_bytes}});
        }
        const bool limited = pool.limit_bytes != 0 && pool.limit_bytes != kUnknown64;
        const bool known = pool.memory != PoolMemory::kUnknown;
        rows.push_back(
            {{"pool", pool.number},
             {"name", pool.name},
             {"kind", pool.kind},
             {"memory", key_of(pool.memory)},
             {"device", pool.device == kUnknownDevice ? Json(nullptr) : Json(pool.device)},
             {"limit_bytes", limited ? Json(pool.limit_bytes) : Json(nullptr)},
             {"allocations", pool.allocations},
             {"peak_allocated_bytes", pool.peak_allocated_bytes},
             {"peak_reserved_bytes", known ? Json(pool.peak_reserved_bytes) : Json(nullptr)},
             {"shares_memory", pool.shares_memory},
             {"at_peak", moment_json(analysis, pool, pool.at_peak)},
             {"failed_requests", pool.failed},
             {"failures", moments_json(analysis, pool, pool.failures)},
             {"at_out_of_memory", moments_json(analysis, pool, pool.at_out_of_memory)},
             {"live_bytes", pool.live_bytes},
             {"live_blocks", pool.live_blocks},
             {"replays", replays},
             {"fidelity", fidelity_json(pool)},
             {"remedies", remedies_json(pool)}});
    }
    return rows;
}

}  // namespace fragtrace::analyzer
