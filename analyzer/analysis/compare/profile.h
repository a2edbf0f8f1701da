// What of a run can be held against another run: plain data, from a trace, a snapshot of PyTorch,
// or the JSON that summarize or report wrote of either.
#pragma once

#include "analyzer/analysis/compare/iteration_profile.h"
#include "analyzer/analysis/metrics/device_metrics.h"
#include "analyzer/model/held_by.h"
#include "analyzer/model/timeline.h"
#include "analyzer/trace/symbols.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// Bytes are those of live and pending blocks.
struct HeldByStack {
    std::vector<std::string> frames;  // innermost first, as describe_frame() has them
    HeldBy held;                      // without a label
};

struct HeldByLine {
    HeldBy held;
    std::vector<HeldByStack> stacks;  // empty where the source has only labels
};

struct DeviceProfile {
    DeviceId device = 0;
    std::string name;  // empty = not known
    RunFigures run;
    bool state_only = false;  // of one moment: its peaks are what it holds
    // Held after the request completed at which reserved first had its maximum.
    std::vector<HeldByLine> holders;
};

// One range of a phase; bytes of all devices together.
struct PhaseStretch {
    StretchFigures figures;
    std::uint64_t ended = 0;  // how many ranges of the run ended before this one
};

struct PhaseProfile {
    std::string name;
    RangeKind kind = RangeKind::kApi;
    std::uint64_t count = 0;
    StretchFigures figures;               // of all stretches
    std::vector<PhaseStretch> stretches;  // as they began; empty where the source has only sums
};

struct RunProfile {
    enum class Source : std::uint8_t { kTrace, kJson };
    Source source = Source::kTrace;
    std::string path;
    std::string command_line;
    std::uint64_t events = 0;
    std::uint64_t events_lost = 0;
    bool has_holders = false;
    // False: holders that are not listed are not known (JSON has the largest ones).
    bool all_holders = false;
    bool has_phases = false;  // the source would tell them
    bool has_facts = false;
    std::vector<DeviceProfile> devices;        // ascending
    std::vector<IterationProfile> iterations;  // of devices with iterations
    std::vector<PhaseProfile> phases;          // in the order in which they began first
    std::map<std::string, std::string> facts;  // without texts that events name
};

// Costs four passes over the events per device, and one where there are phases.
RunProfile profile_of(const Timeline& timeline, Symbolizer* symbols);

}  // namespace fragtrace::analyzer
