// Estimates the memory of another batch size from the traces of two runs. docs/metrics.md, "Another
// batch", lists the assumptions.
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

// Makes the recorded pool on a card with this many bytes for the pool; 0 = no limit.
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
    std::optional<std::uint64_t> recorded_reserved;  // set if this batch was recorded
};

struct BatchPrediction {
    DeviceId device = 0;
    std::uint64_t capacity_bytes = 0;
    std::uint64_t requests = 0;         // of the run with the larger batch
    std::uint64_t fitted_requests = 0;  // how many of these have a match in the other run
    BatchLine sum;                      // all lines together
    std::vector<BatchLine> lines;       // most bytes per item first
    std::vector<BatchRow> rows;  // the two recorded batches and the requested ones, ascending
    std::optional<std::uint64_t> largest;  // largest tried batch that fits
    // The smallest tried batch above `largest` that fails; nullopt: the largest batch that can be
    // tried fits.
    std::optional<std::uint64_t> least_failing;
    // Set if a tried batch below `largest` does not fit. A larger batch may fit where a smaller one
    // does not.
    std::optional<std::uint64_t> fails_below;
    std::uint64_t replays = 0;  // replays that the search needed
};

// Errors (kUsage): the two batches are equal, or a batch is 0 or too large.
Result<BatchPrediction> predict_batches(const BatchRun& a,
                                        const BatchRun& b,
                                        const std::vector<std::uint64_t>& asked,
                                        std::uint64_t capacity_bytes,
                                        const MakePool& make_pool);

}  // namespace fragtrace::analyzer
