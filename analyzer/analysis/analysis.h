// All facts about one trace that a report, the JSON and the page show. Plain data, computed by
// analyze.h; a report computes nothing.
#pragma once

#include "analyzer/analysis/holders/device_holders.h"
#include "analyzer/analysis/holders/growth_forecast.h"
#include "analyzer/analysis/metrics/device_metrics.h"
#include "analyzer/analysis/metrics/other_processes.h"
#include "analyzer/analysis/metrics/run_figures.h"
#include "analyzer/analysis/metrics/run_metrics.h"
#include "analyzer/analysis/program_pools.h"
#include "analyzer/analysis/trials.h"
#include "analyzer/analysis/verdict/diagnosis.h"
#include "analyzer/analysis/verdict/holes.h"
#include "analyzer/analysis/verdict/outlived.h"
#include "analyzer/analysis/whatif/advice.h"
#include "analyzer/analysis/whatif/capacity_scan.h"
#include "analyzer/analysis/whatif/forecast.h"
#include "analyzer/analysis/whatif/iteration_ends.h"
#include "analyzer/analysis/whatif/near_miss.h"
#include "analyzer/analysis/whatif/whatif_row.h"
#include "analyzer/model/phase_index.h"
#include "analyzer/model/timeline.h"
#include "analyzer/replay/assumptions.h"
#include "analyzer/replay/fidelity.h"
#include "analyzer/replay/replayer.h"
#include "analyzer/trace/symbols.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct DeviceAnalysis;
// The facts that limit the class of every what-if row of this device.
SweepContext sweep_context(const DeviceAnalysis& device);

// An address map right after a request.
struct MapAtEvent {
    EventIndex event = kNoEvent;  // kNoEvent = no map
    HeapSnapshot heap;
};

struct DeviceAnalysis {
    DeviceId device = 0;
    std::string name;
    bool virtual_gpu = false;
    std::uint64_t total_bytes = 0;          // as the card reports
    std::uint64_t others_bytes = 0;         // context, libraries, other processes
    std::uint64_t peak_unmapped_bytes = 0;  // as in DeviceMetrics
    BesidePool beside_pool;                 // how this process's part of others_bytes changed
    std::uint64_t capacity_bytes = 0;       // bytes for the pool: total - others
    // PyTorch's own memory limit, from the smallest memory fraction that was in force. 0 = no
    // limit, or a limit as large as the card.
    std::uint64_t limit_bytes = 0;
    bool capacity_known = false;  // false: the trace does not say how large the card is
    std::string pool;             // simulated pool that the recording is compared with
    std::string config;           // recorded settings, as the allocator prints them

    ReplayScript script;
    ReplayAssumptions assumptions;  // of what-if replays, not of the replay that measures fidelity
    RunFigures recorded;
    std::uint64_t violations = 0;  // recorded events that break the invariants of docs/metrics.md
    std::uint64_t after_gap = 0;   // such events that follow from gaps in the recording
    ContextMemory context;
    MemorySample last_sample;                     // the driver's last report
    std::vector<OtherProcesses> other_processes;  // NVML's figures when memory ran out
    std::optional<Fidelity> fidelity;             // nullopt: no caching pool was recorded
    // Only the state of one moment is known, from a checkpoint. No request was recorded, so none is
    // replayed.
    bool state_only = false;
    std::vector<Hole> holes;           // filled if state_only
    bool plan_left_out = false;        // the trace is too long for the plan of the bound `offline`
    std::string no_whatif;             // why other settings were not replayed; empty = they can be
    std::vector<Diagnosis> diagnoses;  // of the recorded settings, in time order
    EventIndex final_oom = kNoEvent;   // see reported_oom(); kNoEvent = the program got past all
    std::uint64_t troubles = 0;        // all OOMs and retries; `diagnoses` may have fewer
    // The first ones; `recorded` counts all of them.
    std::vector<RecordedTrouble> recorded_troubles;
    std::optional<Diagnosis> peak;  // the address map at peak reserved; its verdict is empty
    MapAtEvent at_peak_allocated;   // the address map at the peak of allocated memory
    // At each diagnosed OOM, else at the peak of allocated memory; and at each diagnosed retry.
    DeviceHolders held;
    // Nullopt: nothing grows steadily, or memory ran out.
    std::optional<GrowthForecast> growth_forecast;
    std::vector<Trial> trials;        // of fragtrace try, newest first
    std::vector<WhatIfRow> settings;  // ranked, best first
    std::vector<WhatIfRow> capacities;
    std::vector<WhatIfRow> pools;   // pools other than PyTorch's
    std::vector<WhatIfRow> bounds;  // lower bounds and plans, as known_pools() lists them
    // For the reported out-of-memory, if the failed request went to the pool.
    std::optional<Forecast> forecast;

    // The remaining fields are filled only if remedies were requested.
    IterationEnds iteration_ends;
    // Changes other than a single setting, ranked. Combinations are listed only if they beat every
    // row before them.
    std::vector<WhatIfRow> remedies;
    std::uint64_t combinations_tried = 0;
    std::uint64_t combinations_better = 0;  // than every single change; they are in `remedies`
    std::vector<Advice> advice;
    std::vector<CapacityScan> scans;
    Adaptation adaptation;
    std::optional<NearMiss> near_miss;
};

struct Analysis {
    Timeline timeline;
    std::unique_ptr<Symbolizer> symbols;  // reads `timeline`
    std::optional<PhaseIndex> phases;     // reads `timeline`
    RunMetrics run;
    std::vector<DeviceAnalysis> devices;
    std::shared_ptr<const CategoryRules> categories;  // of the user; null = none
    std::vector<std::string> assumptions;
    std::vector<std::string> warnings;
    std::vector<ProgramPool> program_pools;
};

// The out-of-memory that the report is about: the first one after which the pool served no request.
// If the program got past all of them: the first one. nullptr = none was diagnosed.
const Diagnosis* reported_oom(const DeviceAnalysis& device);

// The use of a rule of Analysis::categories on all devices.
RuleUse use_of_rule(const Analysis& analysis, std::size_t rule);

// Settings and remedies in one order, best first (whatif/ranking.h). If the recorded settings were
// not replayed, the rows stay in their listed order.
std::vector<const WhatIfRow*> ranked_rows(const DeviceAnalysis& device);

// The peak of reserved memory with which replays are compared: the replay of the recorded settings.
// It differs from the recorded run's where the replay is not exact. If there is no such replay: the
// recorded run's.
std::uint64_t compared_reserved_bytes(const DeviceAnalysis& device);

// The warnings, and what was learned about stacks while the report named them. Call it after the
// rest of the report is written.
std::vector<std::string> warnings_with_stacks(const Analysis& analysis);

// Blocks in use that the same line allocated: one row of "which allocations block free memory".
struct CulpritGroup {
    HeldBy held;
    std::uint64_t held_open_bytes = 0;
    std::uint64_t oldest_ns = 0;   // time at which the oldest block was allocated
    EventIndex oldest = kNoEvent;  // the event that allocated the oldest block
    // Allocation events of blocks that keep a segment which is at least half empty; with
    // `only_cheapest`, of all blocks.
    std::vector<EventIndex> blocking;
    // Set by most_blocking(): without these blocks the request still would not fit.
    bool too_little = false;
    // Set by most_blocking(): other lines block more, but the request does not fit without the
    // blocks of one of them alone.
    bool others_block_more = false;
};

// Describes the phase of the group's oldest block, as of the diagnosis.
Outlived outlived_of(const Analysis& analysis,
                     const CulpritGroup& group,
                     const Diagnosis& diagnosis);

// How blocks are joined into rows: by line, by the phase in which they were allocated, or by age.
enum class CulpritKey : std::uint8_t { kLine, kPhase, kAge };

// Groups the blocks in use (pending ones included) that lie in segments with free memory. The group
// that blocks most bytes comes first. `only_cheapest` takes just the blocks of the diagnosis's
// cheapest set; `stream` takes just the blocks of one stream.
std::vector<CulpritGroup> group_culprits(const Analysis& analysis,
                                         const Diagnosis& diagnosis,
                                         bool only_cheapest,
                                         CulpritKey key = CulpritKey::kLine,
                                         StreamId stream = kNoStream);

// The line that reports name and that remedies try to move. For a request: the first line, by
// blocked bytes, without whose blocks the request fits. If no single line is enough: the line whose
// absence leaves the most room (absent_lines.h). At a peak: the line that blocks the most bytes.
// nullopt: no live block keeps free memory from being released.
std::optional<CulpritGroup> most_blocking(const Analysis& analysis, const Diagnosis& diagnosis);

// The lines that held pinned or managed memory at its peak: most bytes first, the first few.
std::vector<std::pair<std::string, std::uint64_t>> side_holders(const Analysis& analysis,
                                                                const SideMemory& memory);

}  // namespace fragtrace::analyzer
