// The least limit with which a pool of the program's own would have served its first failed
// request.
#pragma once

#include "analyzer/analysis/program_pool_walk.h"
#include "analyzer/analysis/program_pools.h"
#include "analyzer/model/timeline.h"
#include "analyzer/replay/script.h"

namespace fragtrace::analyzer {

// Adds a remedy if the pool has a limit, and if a larger one helps that the memory of the card
// allows: as much as was free by the last report of the driver. Needs a failed request.
void try_larger_limit(const Timeline& timeline,
                      const ProgramPoolWalk::Key& key,
                      const ProgramPoolWalk& walk,
                      const ReplayScript& script,
                      ProgramPool* pool);

}  // namespace fragtrace::analyzer
