// The part of the program to look at first: the culprit of a failed request, of a retry, or of a
// run without any. Chosen from what was measured; report/text/conclusion_text.h has the words.
#pragma once

#include "analyzer/analysis/analysis.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace fragtrace::analyzer {

// A share of the reserved bytes below which waste is not worth a sentence: one in so many.
inline constexpr std::uint64_t kSmallPart = 50;

// Live blocks of one line prevent free memory from being reused.
struct BlocksFreeMemory {
    CulpritGroup group;
};

// One line holds most of the memory in use.
struct HoldsMost {
    HoldingPlace place;
    std::uint64_t in_use_bytes = 0;
};

// Memory of the card outside the pool: most of it.
struct HeldOutside {
    enum class By : std::uint8_t { kProcesses, kLibraries, kPastPool, kOther, kNotKnown };

    By by = By::kProcesses;
    std::uint64_t bytes = 0;
    std::optional<HoldsMost> inside;  // beside it
};

// One line holds more with each iteration from `first` to `last`.
struct GrowsEachIteration {
    HoldingPlace place;
    std::size_t first = 0;
    std::size_t last = 0;
};

// The line whose requests caused most of the pool's own requests to the driver.
struct MadePoolGrow {
    std::string line;
    std::uint64_t bytes = 0;
    std::uint64_t segments = 0;
    std::uint64_t all_bytes = 0;
    bool some_freed = false;  // all_bytes is more than was ever reserved at once
};

// Free memory that the request could not take: of another stream or another pool.
struct FreeElsewhere {
    FreePlace place;
    bool of_stream = false;              // else of a pool
    std::optional<CulpritGroup> keeper;  // whose blocks keep it from the driver
};

// The pool's own cache, in wholly free segments.
struct CachedByPool {
    std::uint64_t bytes = 0;
};

// What is still allocated of a model that another one replaced.
struct EarlierModel {
    HoldingPlace place;
};

using Culprit = std::variant<std::monostate,  // nobody in particular
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
// Of the growth that fills the card soon, else of the first retry, else of the peaks.
Culprit culprit_without_failure(const Analysis& analysis, const DeviceAnalysis& device);

// Growth is why the request failed (docs/metrics.md, Culprits).
bool failed_by_growth(const Analysis& analysis, const DeviceAnalysis& device, const Diagnosis& oom);

// Known at each failed request that was looked into, and at the peak of runs without any; else
// nullptr.
const Holders* holders_at(const DeviceAnalysis& device, EventIndex event);

// What an earlier model still holds, where that matters; nullptr: nothing.
const Survivors* kept_model(const DeviceAnalysis& device);

}  // namespace fragtrace::analyzer
