#include "analyzer/analysis/replay_setups.h"

#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/replay/script_plan.h"

#include <memory>
#include <utility>

namespace fragtrace::analyzer {

Result<ReplaySetup> recorded_setup(const DeviceAnalysis& device) {
    auto beneath = std::make_unique<RecordedDevice>(device.total_bytes, device.capacity_bytes);
    RecordedDevice* recorded = beneath.get();
    auto pool = make_pool(
        device.pool, device.config, std::move(beneath), device.script.streams, device.script.rules);
    if (!pool) {
        return Error{ErrorCode::kInput,
                     "the recorded settings cannot be replayed: " + pool.error().message};
    }
    return ReplaySetup{std::move(pool).value(), recorded};
}

Result<ReplaySetup> candidate_setup(const DeviceAnalysis& device, const Candidate& candidate) {
    auto pool = make_pool_for(
        device.script,
        candidate.pool,
        candidate.config,
        std::make_unique<FixedDevice>(
            candidate.total_bytes, candidate.capacity_bytes, device.assumptions.driver_page_bytes));
    if (!pool) {
        return pool.error();
    }
    return ReplaySetup{std::move(pool).value(), nullptr};
}

}  // namespace fragtrace::analyzer
