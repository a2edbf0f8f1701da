// The parts of a run that can be compared with another run. Plain data, from a trace, a snapshot of
// PyTorch, or the JSON that summarize or report wrote for either.
#pragma once

#include "analyzer/analysis/compare/iteration_profile.h"
#include "analyzer/analysis/metrics/device_metrics.h"
#include "analyzer/analysis/metrics/trace_summary.h"
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
    std::vector<std::string> frames;  // innermost first, as describe_frame() prints them
    HeldBy held;                      // has no label
};

struct HeldByLine {
    HeldBy held;
    std::vector<HeldByStack> stacks;  // empty if the source has only labels
};

struct DeviceProfile {
    DeviceId device = 0;
    std::string name;  // empty = not known
    RunFigures run;
    bool state_only = false;  // the state of one moment: its peaks are what is allocated then
    // When the request of `holders` completed, since the start of the trace; nullopt = not known.
    std::optional<std::uint64_t> peak_ns;
    // Memory in use once the request completed at which reserved first reached its maximum.
    std::vector<HeldByLine> holders;
};

// One range of a phase; bytes of all devices together.
struct PhaseStretch {
    StretchFigures figures;
    std::uint64_t ended = 0;  // number of ranges of the run that ended before this one
    TimeSpan time = {};       // until the end of the trace if the range did not end
};

struct PhaseProfile {
    std::string name;
    RangeKind kind = RangeKind::kApi;
    std::uint64_t count = 0;
    StretchFigures figures;  // of all stretches together
    // In the order in which they began; empty if the source has only sums.
    std::vector<PhaseStretch> stretches;
};

struct RunProfile {
    enum class Source : std::uint8_t { kTrace, kJson };
    Source source = Source::kTrace;
    std::string path;
    std::string command_line;
    std::uint64_t events = 0;
    std::uint64_t events_read = 0;  // fewer than `events`: only a part of the run was read
    std::uint64_t events_lost = 0;
    bool has_holders = false;
    // False: the source lists only the largest holders, as JSON does. The others are unknown.
    bool all_holders = false;
    bool has_phases = false;  // the source can have phases, and shows all of them
    bool has_facts = false;
    std::vector<DeviceProfile> devices;        // ascending
    std::vector<IterationProfile> iterations;  // of devices with iterations
    std::vector<PhaseProfile> phases;          // in the order in which they first began
    std::map<std::string, std::string> facts;  // without the texts that events refer to

    // Phases, iterations and requests of a part cannot be compared with those of another run.
    [[nodiscard]] bool is_part() const { return events_read < events; }
};

// Linear in the number of events, with a few passes per device. `whole` is the summary of the whole
// run if the timeline is only a part of it (windows.h); nullptr: the timeline has all events.
RunProfile profile_of(const Timeline& timeline,
                      Symbolizer* symbols,
                      const TraceSummary* whole = nullptr);

}  // namespace fragtrace::analyzer
