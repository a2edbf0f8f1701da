// Everything that a report, the JSON and the page show of one trace: plain data, computed
// by analyze.h; a report computes nothing.
#pragma once

#include "analyzer/analysis/holders/device_holders.h"
#include "analyzer/analysis/holders/growth_forecast.h"
#include "analyzer/analysis/metrics/device_metrics.h"
#include "analyzer/analysis/metrics/other_processes.h"
#include "analyzer/analysis/metrics/run_figures.h"
#include "analyzer/analysis/metrics/run_metrics.h"
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
// What limits the class of any what-if row of this device.
SweepContext sweep_context(const DeviceAnalysis& device);

// An address map right after a request.
struct MapAtEvent {
    EventIndex event = kNoEvent;  // kNoEvent = none
    HeapSnapshot heap;
};

struct DeviceAnalysis {
    DeviceId device = 0;
    std::string name;
    bool virtual_gpu = false;
    std::uint64_t total_bytes = 0;     // as the card reports
    std::uint64_t others_bytes = 0;    // context, libraries, other processes
    BesidePool beside_pool;            // how this process's part of them changed
    std::uint64_t capacity_bytes = 0;  // budget of the pool: total - others
    // Of the least memory fraction that was in force; 0 = none, or as much as the card has.
    std::uint64_t limit_bytes = 0;
    bool capacity_known = false;  // false: nothing in the trace says how large the card is
    std::string pool;             // simulated pool the record is compared with
    std::string config;           // recorded settings, as the allocator prints them

    ReplayScript script;
    ReplayAssumptions assumptions;  // of replays other than the one that fidelity measures
    RunFigures recorded;
    std::uint64_t violations = 0;  // of the invariants of docs/metrics.md, in the record
    std::uint64_t after_gap = 0;   // what would be, but follows from gaps in recording
    ContextMemory context;
    MemorySample last_sample;                     // the driver's last report
    std::vector<OtherProcesses> other_processes;  // when memory ran out
    std::optional<Fidelity> fidelity;             // none: there is no caching pool to compare with
    // What a checkpoint tells is all that is known: no request was recorded, and none is replayed.
    bool state_only = false;
    std::vector<Hole> holes;  // where `state_only`
    bool plan_left_out = false;  // of the bound `offline`: the trace is too long for it
    std::string no_whatif;    // why other settings were not replayed; empty where they could be
    std::vector<Diagnosis> diagnoses;  // of the recorded settings, in time order
    std::uint64_t troubles = 0;        // OOMs and retries in all; diagnoses may be fewer
    std::vector<RecordedTrouble> recorded_troubles;  // the first ones; `recorded` counts all
    std::optional<Diagnosis> peak;  // the address map at peak reserved; its verdict is empty
    MapAtEvent most_allocated;      // the same at the peak of allocated memory
    DeviceHolders held;             // at each diagnosed OOM, else at the peak of allocated memory
    std::optional<GrowthForecast> growth_forecast;  // none: nothing grows, or memory ran out
    std::vector<WhatIfRow> settings;                // ranked
    std::vector<WhatIfRow> capacities;
    std::vector<WhatIfRow> pools;   // other pools
    std::vector<WhatIfRow> bounds;  // as known_pools() lists them
    // Of the first out-of-memory, where that was a request of the pool.
    std::optional<Forecast> forecast;

    // Where remedies were asked for.
    IterationEnds iteration_ends;
    // Other than single settings, ranked; among them combinations that beat all that was known.
    std::vector<WhatIfRow> remedies;
    std::uint64_t combinations_tried = 0;
    std::vector<Advice> advice;
    std::vector<CapacityScan> scans;
    Adaptation adaptation;
    std::optional<NearMiss> near_miss;
};

struct Analysis {
    Timeline timeline;
    std::unique_ptr<Symbolizer> symbols;  // over `timeline`
    std::optional<PhaseIndex> phases;     // over `timeline`
    RunMetrics run;
    std::vector<DeviceAnalysis> devices;
    std::vector<std::string> assumptions;
    std::vector<std::string> warnings;
};

// The first of the diagnoses that is an out-of-memory; nullptr = none.
const Diagnosis* first_oom(const DeviceAnalysis& device);

// Settings and remedies in one order (whatif/ranking.h), best first; as listed where the recorded
// settings were not replayed.
std::vector<const WhatIfRow*> ranked_rows(const DeviceAnalysis& device);

// The warnings, and what became known of stacks while the report named them: to be asked last.
std::vector<std::string> warnings_with_stacks(const Analysis& analysis);

// The blocks in use that came from the same line: one row of "who pins the holes".
struct CulpritGroup {
    HeldBy held;
    std::uint64_t held_open_bytes = 0;
    std::uint64_t oldest_ns = 0;   // birth of the oldest block
    EventIndex oldest = kNoEvent;  // its allocation
    // Allocating events of the blocks that keep a mostly empty segment.
    std::vector<EventIndex> pinning;
    bool too_little = false;  // most_pinning(): without these blocks the request would not fit
};

// Of the group's oldest block, up to the diagnosis.
Outlived outlived_of(const Analysis& analysis,
                     const CulpritGroup& group,
                     const Diagnosis& diagnosis);

// What the rows join: the line, the phase in which a block was born, its age.
enum class CulpritKey : std::uint8_t { kLine, kPhase, kAge };

// Blocks in use, pending ones included, in segments with free memory, grouped; most bytes held open
// first. With `only_cheapest` just the blocks of the diagnosis's cheapest set, with `stream` those
// of one.
std::vector<CulpritGroup> group_culprits(const Analysis& analysis,
                                         const Diagnosis& diagnosis,
                                         bool only_cheapest,
                                         CulpritKey key = CulpritKey::kLine,
                                         StreamId stream = kNoStream);

// The line whom reports name and remedies try to move: of those without whose blocks the request
// fits the one that holds most open; else the one that leaves most room (absent_lines.h); at a peak
// the one that holds most open. nullopt: nobody holds anything open.
std::optional<CulpritGroup> most_pinning(const Analysis& analysis, const Diagnosis& diagnosis);

// Who held pinned or managed memory at its peak: by line, most bytes first, the first few.
std::vector<std::pair<std::string, std::uint64_t>> side_holders(const Analysis& analysis,
                                                                const SideMemory& memory);

}  // namespace fragtrace::analyzer
