#include "analyzer/analysis/whatif/forecast.h"

#include "analyzer/analysis/whatif/rest_of_iteration.h"
#include "analyzer/analysis/whatif/sweep.h"
#include "analyzer/replay/script_plan.h"
#include "analyzer/support/threads.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kCapacities = 8;  // tried between peak allocated and peak reserved
constexpr std::uint64_t kParts = 8;       // sizes tried per pass; the second pass is finer
constexpr std::size_t kRows = 8;          // rows per list that get a forecast
// A size between basis and failed step must leave 1 / this of the capacity free.
constexpr std::uint64_t kSparePart = 50;
constexpr double kOtherSize = 0.005;  // two steps differ in size from this relative difference on

// True if all requests are served that the recorded run served or that were added.
Result<bool> fits(const ReplayScript& script,
                  const SweepContext& context,
                  const Candidate& candidate) {
    auto pool = make_pool_for(
        script,
        candidate.pool,
        candidate.config,
        std::make_unique<FixedDevice>(
            candidate.total_bytes, candidate.capacity_bytes, context.driver_page_bytes));
    if (!pool) {
        return pool.error();
    }
    bool failed = false;
    ReplayHooks hooks;
    hooks.before_step = [&failed](std::size_t, Pool&) { return !failed; };
    hooks.after_request = [&](std::size_t step, const AllocateResult& served, Pool&) {
        const bool served_it =
            served.outcome != Outcome::kOutOfMemory && served.outcome != Outcome::kRejected;
        failed = failed || (!served_it && !script.steps[step].recorded_oom);
    };
    const ReplayResult result = replay(script, **pool, nullptr, hooks);
    return !failed && result.libraries_failed == 0;
}

// Runs fits() for several candidates on all cores. An error, such as a setting that cannot be
// replayed, counts as a failure.
std::vector<bool> all_fit(std::size_t count, const std::function<Result<bool>(std::size_t)>& one) {
    std::vector<char> found(count, 0);
    std::atomic<std::size_t> next{0};
    on_threads(std::min(count, processors()), [&] {
        for (std::size_t at = next++; at < count; at = next++) {
            const Result<bool> fit = one(at);
            found[at] = fit && *fit ? 1 : 0;
        }
    });
    return {found.begin(), found.end()};
}

class Forecaster {
  public:
    Forecaster(const RestOfIteration& rest, const SweepContext& context, const ForecastCard& card)
        : rest_(rest), context_(context), card_(card) {}

    Result<Forecast> make() {
        forecast_.failed = rest_.failed;
        forecast_.iteration = rest_.iteration;
        forecast_.basis = rest_.basis;
        forecast_.scale = rest_.scale();
        forecast_.requests = rest_.requests;
        forecast_.reason = fmt::format(
            "the rest of step {} is taken from step {}, scaled to the sizes of this step so far "
            "(x {:.2f}){}",
            rest_.iteration,
            rest_.basis,
            rest_.scale(),
            rest_.basis == 1 ? "; lasting allocations of the first step are assumed to happen once"
                             : "");
        if (const Status done = find_needs(); !done) {
            return done.error();
        }
        find_fitting_part();
        return std::move(forecast_);
    }

    // Whether the step's requested memory is more than the row's card has. No pool and no order of
    // the requests helps then.
    void judge_cards(std::vector<WhatIfRow>* rows) const {
        for (WhatIfRow& row : *rows) {
            if (row.gets_past() && row.ooms() == 0 && row.candidate.remedy != Remedy::kOthersGone &&
                peak_requested_bytes_ > row.candidate.capacity_bytes) {
                row.rest_fits = false;
            }
        }
    }

    void judge_rows(std::vector<WhatIfRow>* rows) const {
        judge_cards(rows);
        std::vector<WhatIfRow*> judged;
        for (WhatIfRow& row : *rows) {
            if (row.gets_past() && row.usable && row.ooms() == 0 && !row.rest_fits &&
                row.candidate.remedy != Remedy::kOthersGone && row.candidate.change == nullptr &&
                judged.size() < kRows) {
                judged.push_back(&row);
            }
        }
        const std::vector<bool> fit = all_fit(judged.size(), [&](std::size_t at) {
            return fits(rest_.script, context_, judged[at]->candidate);
        });
        for (std::size_t i = 0; i < judged.size(); ++i) {
            judged[i]->rest_fits = fit[i];
        }
    }

  private:
    [[nodiscard]] Candidate on_card(std::uint64_t capacity) const {
        Candidate candidate;
        candidate.config = context_.recorded_config;
        candidate.capacity_bytes = capacity;
        candidate.total_bytes = capacity + card_.others_bytes;
        candidate.until_failure = true;
        return candidate;
    }

    // The capacity of the card on which the process may use `bytes`, if it is limited to a part.
    [[nodiscard]] std::uint64_t capacity_for(std::uint64_t bytes) const {
        if (card_.limit_bytes == 0) {
            return bytes;
        }
        const double part = static_cast<double>(card_.limit_bytes) /
                            static_cast<double>(card_.capacity_bytes + card_.others_bytes);
        const double total = std::ceil(static_cast<double>(bytes) / part);
        const auto card = static_cast<std::uint64_t>(std::min(total, 0x1p62));
        return std::max(bytes, card - std::min(card, card_.others_bytes));
    }

    Status find_needs() {
        const auto rows = sweep(rest_.script, {on_card(capacity_for(kUnlimitedBytes))}, context_);
        if (!rows) {
            return rows.error();
        }
        const PoolStatistics& statistics = rows->front().result.statistics;
        forecast_.peak_allocated_bytes = statistics.allocated.peak;
        forecast_.peak_reserved_bytes = statistics.reserved.peak;
        peak_requested_bytes_ = statistics.requested.peak;
        forecast_.in_use_fits =
            peak_requested_bytes_ <= card_.capacity_bytes &&
            (card_.limit_bytes == 0 || peak_requested_bytes_ <= card_.limit_bytes);
        const std::uint64_t enough = capacity_for(statistics.reserved.peak);
        const std::uint64_t least = capacity_for(statistics.allocated.peak);
        std::vector<std::uint64_t> capacities;
        for (std::uint64_t i = 0; i < kCapacities; ++i) {
            capacities.push_back(least + (enough - least) / kCapacities * i);
        }
        const std::vector<bool> fit = all_fit(capacities.size(), [&](std::size_t at) {
            return fits(rest_.script, context_, on_card(capacities[at]));
        });
        forecast_.least_capacity_bytes = enough;
        for (std::size_t i = capacities.size(); i-- > 0 && fit[i];) {
            forecast_.least_capacity_bytes = capacities[i];
        }
        // A smaller capacity may fit by chance, but the recorded one is known to fail.
        forecast_.least_capacity_bytes =
            std::max(forecast_.least_capacity_bytes, card_.capacity_bytes);
        forecast_.least_card_bytes = forecast_.least_capacity_bytes + card_.others_bytes;
        forecast_.shortfall_bytes =
            card_.limit_bytes == 0
                ? forecast_.least_capacity_bytes - card_.capacity_bytes
                : statistics.reserved.peak - std::min(statistics.reserved.peak, card_.limit_bytes);
        return Ok{};
    }

    // Tries sizes between those of the basis and those of the failed step, if the failed step is
    // larger.
    void find_fitting_part() {
        if (rest_.scale() < 1 + kOtherSize) {
            return;
        }
        // The basis is known to fit the card. Sizes in between are not, so they must leave some
        // memory free.
        const std::uint64_t spare = card_.capacity_bytes / kSparePart;
        const auto fits_at = [&](const std::vector<double>& shares) {
            return all_fit(shares.size(), [&](std::size_t at) {
                return fits(resized(rest_, shares[at]),
                            context_,
                            on_card(card_.capacity_bytes - (shares[at] > 0 ? spare : 0)));
            });
        };
        const auto spread = [](double from, double to) {
            std::vector<double> shares;
            for (std::uint64_t i = 0; i < kParts; ++i) {
                shares.push_back(from + (to - from) * static_cast<double>(i) /
                                            static_cast<double>(kParts));
            }
            return shares;
        };
        // Stop at the first size that fails. If a larger one fits, it does so by chance.
        double from = 0;
        double to = 1;
        for (int pass = 0; pass < 2; ++pass) {
            const std::vector<double> shares = spread(from, to);
            const std::vector<bool> fit = fits_at(shares);
            std::size_t fitting = 0;
            while (fitting < fit.size() && fit[fitting]) {
                ++fitting;
            }
            if (fitting == 0) {
                return;
            }
            from = shares[fitting - 1];
            to = fitting < shares.size() ? shares[fitting] : to;
        }
        const double scale = rest_.scale();
        forecast_.fitting_part = (1 + from * (scale - 1)) / scale;
    }

    const RestOfIteration& rest_;
    const SweepContext& context_;
    const ForecastCard& card_;
    Forecast forecast_;
    std::uint64_t peak_requested_bytes_ = 0;  // of the whole step, on a card with enough memory
};

}  // namespace

Result<Forecast> make_forecast(const Timeline& timeline,
                               const ReplayScript& script,
                               const Iterations& iterations,
                               const SweepContext& context,
                               EventIndex failed,
                               const ForecastCard& card,
                               const std::vector<std::vector<WhatIfRow>*>& rows,
                               const std::vector<std::vector<WhatIfRow>*>& other_pools) {
    const RestOfIteration rest = rest_of_iteration(timeline, script, iterations, failed);
    if (!rest.known()) {
        Forecast none;
        none.why_not = rest.why_not;
        return none;
    }
    Forecaster forecaster(rest, context, card);
    auto forecast = forecaster.make();
    if (forecast) {
        for (std::vector<WhatIfRow>* list : rows) {
            forecaster.judge_rows(list);
        }
        for (std::vector<WhatIfRow>* list : other_pools) {
            forecaster.judge_cards(list);
        }
    }
    return forecast;
}

}  // namespace fragtrace::analyzer
