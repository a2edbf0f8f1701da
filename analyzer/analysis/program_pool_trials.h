// Replays that try a change for a pool of the program's own whose request failed.
#pragma once

#include "analyzer/analysis/program_pool_replay.h"
#include "analyzer/analysis/program_pools.h"
#include "analyzer/model/timeline.h"
#include "analyzer/replay/replayer.h"
#include "analyzer/replay/script.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fragtrace::analyzer {

// Whether the trace has blocks of this framework: its fact says "recorded".
bool is_recorded(const Timeline& timeline, std::string_view framework);

// The number of steps if no request failed.
std::size_t first_failed_step(const ReplayScript& script);

// Replays the script, and fills the outcome of the request `failed_event` and of the others.
void replay_into(const ReplayScript& script,
                 EventIndex failed_event,
                 Pool& pool,
                 ReplayHooks hooks,
                 ProgramPoolRemedy* remedy);

// Replays the script in the pool that the remedy names, with these settings. Returns false if the
// pool does not take them.
bool try_settings(const ReplayScript& script,
                  const SimulatedSettings& settings,
                  ProgramPoolRemedy* remedy);

}  // namespace fragtrace::analyzer
