// What would have helped a pool of the program's own whose request failed: other pools, settings
// and limits, each tried by a replay.
#pragma once

#include "analyzer/analysis/program_pool_walk.h"
#include "analyzer/analysis/program_pools.h"
#include "analyzer/model/timeline.h"
#include "analyzer/replay/script.h"

namespace fragtrace::analyzer {

// Fills `remedies` and `remedy_bytes`, for the first failed request.
void try_remedies(const Timeline& timeline,
                  const ProgramPoolWalk::Key& key,
                  const ProgramPoolWalk& walk,
                  const ReplayScript& script,
                  ProgramPool* pool);

}  // namespace fragtrace::analyzer
