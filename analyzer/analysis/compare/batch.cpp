#include "analyzer/analysis/compare/batch.h"

#include "analyzer/support/units.h"
#include "analyzer/trace/user_frame.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kMostItems = 1 << 20;  // largest batch
constexpr std::uint64_t kMostReplays = 96;
constexpr std::uint64_t kMostSteps = 200'000'000;  // steps that the search replays in all

bool asks(const Step& step) {
    return step.kind == Step::Kind::kAllocate;
}

// The requests of a run, keyed by the text of their stacks. Addresses would differ between
// processes.
class RequestsByStack {
  public:
    using Sequence = std::vector<std::uint32_t>;  // indices of steps, ascending

    explicit RequestsByStack(const BatchRun& run) {
        std::unordered_map<OriginId, Sequence*> by_origin;
        const StepTable& steps = run.script->steps;
        for (std::size_t i = 0; i < steps.size(); ++i) {
            const Step step = steps[i];
            if (!asks(step) || step.event >= run.timeline->events.size()) {
                continue;
            }
            const OriginId origin = run.timeline->events[step.event].origin;
            Sequence*& sequence = by_origin[origin];
            if (sequence == nullptr) {
                sequence = &by_text_[text_of(origin, run.symbols)];
            }
            sequence->push_back(static_cast<std::uint32_t>(i));
        }
    }

    [[nodiscard]] const std::map<std::string, Sequence>& by_text() const { return by_text_; }

  private:
    static std::string text_of(OriginId origin, Symbolizer* symbols) {
        std::string text;
        for (const Frame& frame : symbols->frames(origin)) {
            text += describe_frame(frame);
            text += '\n';
        }
        return text;
    }

    std::map<std::string, Sequence> by_text_;
};

// A run whose request sizes change with the batch. At its own batch it equals the recorded run.
class FittedRun {
  public:
    explicit FittedRun(const BatchRun& run)
        : run_(run), per_item_(run.script->steps.size(), 0), fitted_(per_item_.size(), false) {}

    void fit(std::size_t step, double bytes_per_item) {
        per_item_[step] = static_cast<float>(bytes_per_item);
        fitted_[step] = true;
    }

    [[nodiscard]] std::uint64_t size(const Step& step, std::size_t at, std::uint64_t batch) const {
        const double difference = static_cast<double>(batch) - static_cast<double>(run_.batch);
        const double bytes = static_cast<double>(step.value) + per_item_[at] * difference;
        return static_cast<std::uint64_t>(std::clamp(std::round(bytes), 1.0, 0x1p48));
    }

    [[nodiscard]] ReplayScript script(std::uint64_t batch) const {
        ReplayScript script = *run_.script;
        for (std::size_t i = 0; i < script.steps.size(); ++i) {
            Step step = script.steps[i];
            if (asks(step) && per_item_[i] != 0) {
                step.value = size(step, i, batch);
                script.steps.set(i, step);
            }
        }
        return script;
    }

    // The peak of requested live bytes, and the step that reaches it.
    [[nodiscard]] std::pair<std::uint64_t, std::size_t> peak_requested(std::uint64_t batch) const {
        std::pair<std::uint64_t, std::size_t> peak = {0, 0};
        std::uint64_t live = 0;
        walk(batch, [&](std::size_t at, std::uint64_t added, std::uint64_t removed) {
            live += added;
            live -= removed;
            if (live > peak.first) {
                peak = {live, at};
            }
        });
        return peak;
    }

    // The blocks that are live after step `last`, by line.
    [[nodiscard]] std::vector<BatchLine> lines_at(std::size_t last) const {
        std::map<std::string, BatchLine> by_label;
        for (const std::size_t at : live_at(last)) {
            const Step step = run_.script->steps[at];
            const std::string label =
                step.event < run_.timeline->events.size()
                    ? run_.symbols->describe(run_.timeline->events[step.event].origin)
                    : "unknown";
            BatchLine& line = by_label[label];
            line.label = label;
            line.bytes_per_item += per_item_[at];
            line.fixed_bytes +=
                static_cast<double>(step.value) - static_cast<double>(run_.batch) * per_item_[at];
        }
        std::vector<BatchLine> lines;
        for (auto& [label, line] : by_label) {
            lines.push_back(std::move(line));
        }
        std::stable_sort(lines.begin(), lines.end(), [](const BatchLine& x, const BatchLine& y) {
            return x.bytes_per_item > y.bytes_per_item;
        });
        return lines;
    }

    [[nodiscard]] const BatchRun& run() const { return run_; }

    [[nodiscard]] std::uint64_t count_requests() const {
        std::uint64_t count = 0;
        for (std::size_t i = 0; i < per_item_.size(); ++i) {
            count += asks(run_.script->steps[i]) ? 1 : 0;
        }
        return count;
    }

    [[nodiscard]] std::uint64_t count_fitted() const {
        return static_cast<std::uint64_t>(std::count(fitted_.begin(), fitted_.end(), true));
    }

  private:
    // Calls `visit` for each step with the live bytes that it adds and removes.
    template <typename Visit>
    void walk(std::uint64_t batch, const Visit& visit) const {
        std::vector<std::uint64_t> live(run_.timeline->events.size(), 0);  // live bytes per block
        for (std::size_t i = 0; i < per_item_.size(); ++i) {
            const Step step = run_.script->steps[i];
            std::uint64_t added = 0;
            std::uint64_t removed = 0;
            if (step.block >= live.size()) {
                continue;
            }
            if (asks(step) && !step.recorded_oom) {
                added = size(step, i, batch);
                live[step.block] = added;
            } else if (step.kind == Step::Kind::kRelease) {
                removed = std::exchange(live[step.block], 0);
            }
            visit(i, added, removed);
        }
    }

    // The steps that allocated the blocks which are live after step `last`.
    [[nodiscard]] std::vector<std::size_t> live_at(std::size_t last) const {
        std::unordered_map<BlockId, std::size_t> live;
        for (std::size_t i = 0; i <= last && i < per_item_.size(); ++i) {
            const Step step = run_.script->steps[i];
            if (asks(step) && !step.recorded_oom) {
                live[step.block] = i;
            } else if (step.kind == Step::Kind::kRelease) {
                live.erase(step.block);
            }
        }
        std::vector<std::size_t> steps;
        for (const auto& [block, at] : live) {
            steps.push_back(at);
        }
        std::sort(steps.begin(), steps.end());
        return steps;
    }

    BatchRun run_;
    std::vector<float> per_item_;  // bytes per item of the batch, by step
    std::vector<bool> fitted_;
};

// Matches the n-th request of a stack in one run with the n-th in the other. Both runs must have
// equally many requests from that stack. Other requests keep their size.
void fit(FittedRun* a, FittedRun* b) {
    const RequestsByStack of_a(a->run());
    const RequestsByStack of_b(b->run());
    const double items = static_cast<double>(b->run().batch) - static_cast<double>(a->run().batch);
    for (const auto& [text, a_steps] : of_a.by_text()) {
        const auto found = of_b.by_text().find(text);
        if (found == of_b.by_text().end() || found->second.size() != a_steps.size()) {
            continue;
        }
        for (std::size_t i = 0; i < a_steps.size(); ++i) {
            const double before = static_cast<double>(a->run().script->steps[a_steps[i]].value);
            const double after =
                static_cast<double>(b->run().script->steps[found->second[i]].value);
            a->fit(a_steps[i], (after - before) / items);
            b->fit(found->second[i], (after - before) / items);
        }
    }
}

class Predictor {
  public:
    Predictor(const BatchRun& a,
              const BatchRun& b,
              std::uint64_t capacity_bytes,
              const MakePool& make_pool)
        : small_(a.batch < b.batch ? a : b),
          large_(a.batch < b.batch ? b : a),
          capacity_(capacity_bytes),
          make_pool_(make_pool) {
        fit(&small_, &large_);
    }

    // The run whose batch is closer.
    [[nodiscard]] const FittedRun& nearer(std::uint64_t batch) const {
        return 2 * batch > small_.run().batch + large_.run().batch ? large_ : small_;
    }

    [[nodiscard]] const FittedRun& large() const { return large_; }

    Result<ReplayResult> replayed(std::uint64_t batch, std::uint64_t capacity_bytes) const {
        auto pool = make_pool_(capacity_bytes);
        if (!pool) {
            return pool.error();
        }
        return replay(nearer(batch).script(batch), **pool);
    }

    Result<BatchRow> row(std::uint64_t batch) const {
        const auto unlimited = replayed(batch, 0);
        if (!unlimited) {
            return unlimited.error();
        }
        const auto limited = replayed(batch, capacity_);
        if (!limited) {
            return limited.error();
        }
        BatchRow row;
        row.batch = batch;
        row.unlimited = summarize(*unlimited);
        row.on_card = summarize(*limited);
        for (const FittedRun* run : {&small_, &large_}) {
            if (run->run().batch == batch) {
                row.recorded_reserved = run->run().peak_reserved;
            }
        }
        return row;
    }

    // Searches downwards from the first batch that cannot fit, to the largest batch known to fit.
    // Fitting is not monotone in the batch, so bisection is not possible. If there are more batches
    // than replays allowed, every k-th is tried first, then the batches between the first fit and
    // the failure above it.
    Status find_largest(BatchPrediction* prediction) const {
        // The first batch whose live bytes exceed the card, or kMostItems.
        std::uint64_t above = small_.run().batch;
        std::uint64_t step = 1;
        while (above < kMostItems && live_fits(above)) {
            above += step;
            step *= 2;
        }
        std::uint64_t below = above - std::min(above, step);
        while (below + 1 < above) {
            const std::uint64_t middle = below + (above - below) / 2;
            (live_fits(middle) ? below : above) = middle;
        }
        const std::uint64_t steps = std::max<std::uint64_t>(1, large_.run().script->steps.size());
        const std::uint64_t most = std::clamp<std::uint64_t>(kMostSteps / steps, 8, kMostReplays);
        std::map<std::uint64_t, bool> tried;  // batch: true if it fits
        for (const BatchRow& row : prediction->rows) {
            tried[row.batch] = row.on_card.ooms == 0;
        }
        const auto fits = [&](std::uint64_t batch) -> Result<bool> {
            if (const auto known = tried.find(batch); known != tried.end()) {
                return known->second;
            }
            const auto result = replayed(batch, capacity_);
            if (!result) {
                return result.error();
            }
            ++prediction->replays;
            return tried[batch] = result->ooms() == 0;
        };
        std::uint64_t largest = 0;  // 0 = none
        for (const auto& [batch, fit] : tried) {
            largest = fit ? batch : largest;
        }
        std::uint64_t failing = std::max(above, largest + 1);
        while (largest + 1 < failing) {
            const std::uint64_t stride = 1 + (failing - largest - 1) / most;
            while (largest + stride < failing) {
                const std::uint64_t batch = failing - stride;
                const auto result = fits(batch);
                if (!result) {
                    return result.error();
                }
                (*result ? largest : failing) = batch;
                if (*result) {
                    break;
                }
            }
        }
        const auto known = tried.find(failing);
        if (known != tried.end() ? !known->second : !live_fits(failing)) {
            prediction->least_failing = failing;
        }
        if (largest == 0) {
            return Ok{};
        }
        prediction->largest = largest;
        // Also try the next smaller batch. If it fails, smaller ones may fail too.
        if (largest > 1) {
            if (const auto result = fits(largest - 1); !result) {
                return result.error();
            }
        }
        for (const auto& [batch, fit] : tried) {
            if (!fit && batch < largest) {
                prediction->fails_below = batch;
            }
        }
        return Ok{};
    }

  private:
    [[nodiscard]] bool live_fits(std::uint64_t batch) const {
        return batch == 0 || nearer(batch).peak_requested(batch).first <= capacity_;
    }

    FittedRun small_;
    FittedRun large_;
    std::uint64_t capacity_;
    const MakePool& make_pool_;
};

}  // namespace

Result<BatchPrediction> predict_batches(const BatchRun& a,
                                        const BatchRun& b,
                                        const std::vector<std::uint64_t>& asked,
                                        std::uint64_t capacity_bytes,
                                        const MakePool& make_pool) {
    std::set<std::uint64_t> batches(asked.begin(), asked.end());
    batches.insert({a.batch, b.batch});
    if (a.batch == b.batch || *batches.begin() == 0 || *batches.rbegin() > kMostItems) {
        return Error{
            ErrorCode::kUsage,
            fmt::format("batches: the two recorded ones must differ, and all must be from 1 to {}",
                        format_count(kMostItems))};
    }
    const Predictor predictor(a, b, capacity_bytes, make_pool);
    BatchPrediction prediction;
    prediction.device = a.script->device;
    prediction.capacity_bytes = capacity_bytes;
    prediction.requests = predictor.large().count_requests();
    prediction.fitted_requests = predictor.large().count_fitted();
    const std::uint64_t largest_recorded = predictor.large().run().batch;
    prediction.lines =
        predictor.large().lines_at(predictor.large().peak_requested(largest_recorded).second);
    prediction.sum.label = "all";
    for (const BatchLine& line : prediction.lines) {
        prediction.sum.fixed_bytes += line.fixed_bytes;
        prediction.sum.bytes_per_item += line.bytes_per_item;
    }
    for (const std::uint64_t batch : batches) {
        const auto row = predictor.row(batch);
        if (!row) {
            return row.error();
        }
        prediction.rows.push_back(*row);
    }
    const Status found = predictor.find_largest(&prediction);
    return found ? Result<BatchPrediction>(std::move(prediction)) : found.error();
}

}  // namespace fragtrace::analyzer
