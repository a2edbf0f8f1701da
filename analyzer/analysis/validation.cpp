#include "analyzer/analysis/validation.h"

#include "analyzer/analysis/replay_setups.h"
#include "analyzer/pools/registry/pool_registry.h"

#include <fmt/format.h>

namespace fragtrace::analyzer {

Result<ReplayValidation> validate_replay(const DeviceAnalysis& device, const Candidate& candidate) {
    auto setup = candidate_setup(device, candidate);
    if (!setup) {
        return setup.error();
    }
    const PoolDescription& pool = *find_pool(candidate.pool);
    if (pool.moves) {
        return Error{ErrorCode::kUsage,
                     fmt::format("'{}' is a bound: its blocks may move, there are no placements to "
                                 "check",
                                 pool.name)};
    }
    return ReplayValidation{
        check_replay(device.script, *setup->pool, pool.streams, candidate.capacity_bytes),
        pool.streams == StreamRule::kSegments};
}

}  // namespace fragtrace::analyzer
