// What another batch would need, from the traces of two: an estimate. docs/metrics.md, "Another
// batch", says what is assumed.
#pragma once

#include "analyzer/analysis/metrics/run_figures.h"
#include "analyzer/replay/replayer.h"
#include "analyzer/support/result.h"
#include "analyzer/trace/symbols.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// One recorded run of the program.
struct BatchRun {
    std::uint64_t batch = 0;
    const Timeline* timeline = nullptr;
    Symbolizer* symbols = nullptr;
    const ReplayScript* script = nullptr;
    std::uint64_t peak_reserved = 0;  // as recorded
};

// The recorded pool on a card with so much for it; 0 = as much as it likes.
using MakePool = std::function<Result<std::unique_ptr<Pool>>(std::uint64_t capacity_bytes)>;

// Live blocks of one line at the peak: fixed + per_item * batch bytes.
struct BatchLine {
    std::string label;
    double fixed_bytes = 0;
    double bytes_per_item = 0;
};

struct BatchRow {
    std::uint64_t batch = 0;
    RunFigures unlimited;  // on a card without limit
    RunFigures on_card;
    std::optional<std::uint64_t> recorded_reserved;  // where it was recorded
};

struct BatchPrediction {
    DeviceId device = 0;
    std::uint64_t capacity_bytes = 0;
    std::uint64_t requests = 0;            // of the run with the larger batch
    std::uint64_t fitted_requests = 0;     // of these, matched with one of the other run
    BatchLine sum;                         // of all lines
    std::vector<BatchLine> lines;          // most bytes per item first
    std::vector<BatchRow> rows;            // the two recorded ones, those asked for; ascending
    std::optional<std::uint64_t> largest;  // batch that fits, of those tried
    std::uint64_t least_failing = 0;       // of those tried that are larger
    // Set where fitting is not monotone: a batch below `largest` that was tried and does not fit.
    std::optional<std::uint64_t> fails_below;
    std::uint64_t replays = 0;  // that the search took
};

// Errors (kUsage): batches that are equal or 0, or so many that no size could be told.
Result<BatchPrediction> predict_batches(const BatchRun& a,
                                        const BatchRun& b,
                                        const std::vector<std::uint64_t>& asked,
                                        std::uint64_t capacity_bytes,
                                        const MakePool& make_pool);

}  // namespace fragtrace::analyzer
