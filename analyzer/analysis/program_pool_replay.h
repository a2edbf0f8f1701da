// The requests of a pool of the program's own, served by simulated pools: how well the simulation
// of its kind agrees with the recording, and what it and other pools would reserve.
#pragma once

#include "analyzer/analysis/program_pool_walk.h"
#include "analyzer/analysis/program_pools.h"
#include "analyzer/model/timeline.h"
#include "analyzer/replay/compare_replay.h"
#include "analyzer/replay/script.h"

#include <cstdint>
#include <string>

namespace fragtrace::analyzer {

// The requests of one pool, its failed ones included. Its segments are chosen by the simulated
// pool. A segment that the recorded pool returned to the driver becomes an empty_cache call.
ReplayScript script_of(const Timeline& timeline,
                       const ProgramPoolWalk::Key& key,
                       const ProgramPoolWalk& walk);

// The recorded places of the pool's blocks, for calls in ascending order of events. All arguments
// must outlive the result.
RecordedPlace places_of(const Timeline& timeline,
                        const ProgramPoolWalk::Key& key,
                        const ProgramPoolWalk& walk);

// The settings of a simulated pool: those that were recorded. Without them, as far as the recording
// shows them: the limit, and the first segment as initial size. `total_bytes` is the card's memory
// for pools that reserve a share of it.
struct SimulatedSettings {
    std::string config;
    std::uint64_t total_bytes = 0;
};

SimulatedSettings settings_of(const std::string& simulated,
                              std::uint64_t first_segment_bytes,
                              std::uint64_t limit_bytes);

// The settings of the same pool with this limit; 0 or unknown: without one.
SimulatedSettings own_settings(const ProgramPool& pool,
                               std::uint64_t first_segment_bytes,
                               std::uint64_t limit_bytes);

// Size of the pool's first segment in bytes; 0 if its memory is unknown.
std::uint64_t first_segment_bytes(const ProgramPoolWalk::Key& key, const ProgramPoolWalk& walk);

// Whether the pool's kind names a simulated pool with which it can be compared.
bool is_simulated(const ProgramPool& pool);

// Fills `fidelity` and `replays`. If no settings are recorded, but a request names an end of the
// pool, also `settings`: the pool is partitioned then.
void replay_program_pool(const Timeline& timeline,
                         const ProgramPoolWalk::Key& key,
                         const ProgramPoolWalk& walk,
                         const ReplayScript& script,
                         ProgramPool* pool);

}  // namespace fragtrace::analyzer
