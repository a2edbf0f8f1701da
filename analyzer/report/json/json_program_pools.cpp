#include "analyzer/report/json/json_program_pools.h"

#include <nlohmann/json.hpp>

#include <optional>

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

const char* key_of(PoolFailure failure) {
    switch (failure) {
        case PoolFailure::kUnknown:
        case PoolFailure::kNoBlockYet:
        case PoolFailure::kShared:
            return "unknown";
        case PoolFailure::kTooLittle:
            return "too_little";
        case PoolFailure::kFragmented:
            return "fragmentation";
        case PoolFailure::kRefused:
            return "rules";
    }
    return "";
}

Json culprit_json(const ProgramPoolMoment& moment) {
    if (moment.without_culprit_bytes == 0) {
        return nullptr;
    }
    return {{"label", moment.culprit.label},
            {"bytes", moment.culprit.bytes},
            {"blocks", moment.culprit.blocks},
            {"largest_free_bytes", moment.without_culprit_bytes}};
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
            {"failure", moment.requested_bytes == 0 ? Json(nullptr) : Json(key_of(moment.failure))},
            {"culprit", culprit_json(moment)},
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

Json fidelity_json(const std::optional<Fidelity>& fidelity) {
    if (!fidelity) {
        return nullptr;
    }
    return {
        {"placements", fidelity->placements},
        {"placements_equal", fidelity->placements_equal},
        {"placements_chosen", fidelity->placements_chosen},
        {"segments", fidelity->segments},
        {"segments_equal", fidelity->segments_equal},
        {"reason",
         fidelity->not_judged.empty() ? fidelity->reason : "not judged: " + fidelity->not_judged}};
}

Json serves_json(ProgramPoolRemedy::Serves serves) {
    return serves == ProgramPoolRemedy::Serves::kPerhaps
               ? Json(nullptr)
               : Json(serves == ProgramPoolRemedy::Serves::kYes);
}

}  // namespace

Json program_pools_json(const Analysis& analysis) {
    Json rows = Json::array();
    for (const ProgramPool& pool : analysis.program_pools) {
        Json replays = Json::array();
        for (const ProgramPoolReplay& replay : pool.replays) {
            replays.push_back({{"pool", replay.pool},
                               {"config", replay.config},
                               {"class", replay.exact ? "exact" : "estimate"},
                               {"peak_reserved_bytes", replay.peak_reserved_bytes}});
        }
        Json remedies = Json::array();
        for (const ProgramPoolRemedy& remedy : pool.remedies) {
            remedies.push_back(
                {{"change", remedy.change},
                 {"pool", remedy.pool},
                 {"config", remedy.config},
                 {"limit_bytes",
                  remedy.limit_bytes == 0 ? Json(nullptr) : Json(remedy.limit_bytes)},
                 {"class", "estimate"},
                 {"serves", serves_json(remedy.serves)},
                 {"failed_requests", remedy.failed},
                 {"peak_reserved_bytes", remedy.peak_reserved_bytes}});
        }
        const bool known = pool.memory != PoolMemory::kUnknown;
        rows.push_back(
            {{"pool", pool.number},
             {"name", pool.name},
             {"kind", pool.kind},
             {"memory", key_of(pool.memory)},
             {"device", pool.device == kUnknownDevice ? Json(nullptr) : Json(pool.device)},
             {"limit_bytes", pool.is_limited() ? Json(pool.limit_bytes) : Json(nullptr)},
             {"settings", pool.settings.empty() ? Json(nullptr) : Json(pool.settings)},
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
             {"fidelity", fidelity_json(pool.fidelity)},
             {"replays", replays},
             {"remedy_bytes", pool.remedies.empty() ? Json(nullptr) : Json(pool.remedy_bytes)},
             {"remedies", remedies}});
    }
    return rows;
}

}  // namespace fragtrace::analyzer
