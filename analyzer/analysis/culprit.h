// The part of the program to look at first: the culprit of a failed request, of a retry, or of a
// run without either. It follows from measured figures; report/text/conclusion_text.h puts it into
// words.
#pragma once

#include "analyzer/analysis/analysis.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace fragtrace::analyzer {

// Waste, and memory of an earlier model, is reported only if it is at least 1 / kSmallPart of peak
// reserved memory.
inline constexpr std::uint64_t kSmallPart = 50;

// Live blocks of one line prevent free memory from being reused.
struct BlocksFreeMemory {
    CulpritGroup group;
};

// One line holds most of the memory in use. Of a step that needs more than there is
// (step_needs_more()): the line that grew most since the last good step, if that is known.
struct HoldsMost {
    HoldingLine place;
    std::uint64_t in_use_bytes = 0;   // with memory that waits for streams
    std::uint64_t pending_bytes = 0;  // that part of it; known for a state only
    std::uint64_t grown_bytes = 0;    // more than at the same point of step `since`; 0 = not known
    std::size_t since = 0;
    std::uint64_t larger_request_bytes = 0;  // of the failed request; 0 = at most in_use_bytes
};

// The kind of holder with most memory of the card outside the pool. The CUDA context does not
// count.
struct HeldOutside {
    enum class By : std::uint8_t { kProcesses, kLibraries, kPastPool, kOther, kNotKnown };

    By by = By::kProcesses;
    std::uint64_t bytes = 0;
    std::optional<OtherProcess> process;  // kProcesses: the one with most memory, if known
    // How long before the failure the processes were listed. 0 = at the failure.
    std::uint64_t listed_before_ns = 0;
    std::optional<HoldsMost> inside;  // the line that holds most memory inside the pool
};

// One line holds more memory with each iteration from `first` to `last`.
struct GrowsEachIteration {
    HoldingLine place;
    std::size_t first = 0;
    std::size_t last = 0;
};

// The line whose requests caused most of the pool's cudaMallocs or maps.
struct MadePoolGrow {
    std::string line;
    std::uint64_t bytes = 0;
    std::uint64_t segments = 0;
    std::uint64_t all_bytes = 0;
    // all_bytes is more than peak reserved memory, so some segments were returned.
    bool some_freed = false;
};

// Free memory that the request could not use: it belongs to another stream or another pool.
struct FreeElsewhere {
    FreePlace place;
    bool of_stream = false;  // true: another stream; false: another pool
    // Blocks that keep this memory from being returned to the driver.
    std::optional<CulpritGroup> keeper;
};

// Memory cached by the pool in wholly free segments.
struct CachedByPool {
    std::uint64_t bytes = 0;
};

// Memory that is still allocated for a model which another model replaced.
struct EarlierModel {
    HoldingLine place;
};

using Culprit = std::variant<std::monostate,  // nothing stands out
                             BlocksFreeMemory,
                             HoldsMost,
                             HeldOutside,
                             GrowsEachIteration,
                             MadePoolGrow,
                             FreeElsewhere,
                             CachedByPool,
                             EarlierModel>;

Culprit culprit_of_failure(const Analysis& analysis,
                           const DeviceAnalysis& device,
                           const Diagnosis& oom);
Culprit culprit_of_retry(const Analysis& analysis,
                         const DeviceAnalysis& device,
                         const Diagnosis& retry);
// The culprit of growth that fills the card soon; else an earlier model; else the first retry; else
// the peaks.
Culprit culprit_without_failure(const Analysis& analysis, const DeviceAnalysis& device);

// True if growth is why the request failed (docs/metrics.md, Culprits).
bool failed_by_growth(const Analysis& analysis, const DeviceAnalysis& device, const Diagnosis& oom);

// True if the failed step is forecast to use more memory than there is, however free memory lies. A
// line that blocks free memory is then not why the run failed. False if the step fits without the
// memory that others hold outside the pool: then they are why it failed.
bool step_needs_more(const DeviceAnalysis& device, const Diagnosis& oom);

// Known at each diagnosed failed request and retry, and at the peak of runs without an
// out-of-memory; else nullptr.
const Holders* holders_at(const DeviceAnalysis& device, EventIndex event);

// The memory that an earlier model still holds, if it is large enough to report; nullptr: none.
const Survivors* kept_model(const DeviceAnalysis& device);

}  // namespace fragtrace::analyzer
