// Replays the requests of a pool of the program's own: with its own kind, and with others.
#pragma once

#include "analyzer/analysis/program_pool_walk.h"
#include "analyzer/analysis/program_pools.h"
#include "analyzer/model/timeline.h"

namespace fragtrace::analyzer {

// Fills replays, fidelity and remedies of `pool`. `walk` has seen the whole timeline.
void add_program_pool_replays(const Timeline& timeline,
                              const ProgramPoolWalk::Key& key,
                              const ProgramPoolWalk& walk,
                              ProgramPool* pool);

}  // namespace fragtrace::analyzer
