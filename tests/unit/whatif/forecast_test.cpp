// The forecast of the rest of a failed step, compared with a run that had enough memory.
#include "analyzer/analysis/whatif/forecast.h"

#include "analyzer/analysis/whatif/rest_of_iteration.h"
#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/support/units.h"
#include "tests/unit/iterations/made_up_run.h"

#include <catch2/catch.hpp>

#include <optional>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::MadeUpRun;

namespace {

constexpr std::uint64_t kLayers = 4;
constexpr std::uint64_t kWeightBytes = 7 * kMiB;  // differs from the size of every activation

// A training: parameters, then steps with a batch, activations and gradients. The first step also
// allocates the optimizer's state. A step's size is MiB per activation.
class Training {
  public:
    MadeUpRun run;
    std::vector<EventIndex> kept;

    Training() {
        for (std::uint64_t i = 0; i < kLayers; ++i) {
            run.alloc(weights_, kWeightBytes);
        }
    }

    // `fails_at`: the number of the request at which the step fails, counted from 0. The run ends
    // there.
    void step(std::uint64_t size, std::optional<std::uint64_t> fails_at = {}, bool keeps = false) {
        run.begin_phase("step");
        std::uint64_t request = 0;
        const auto ask = [&](OriginId line, std::uint64_t bytes) -> std::optional<EventIndex> {
            if (fails_at && request++ == *fails_at) {
                run.fail(line, bytes);
                return std::nullopt;
            }
            return run.alloc(line, bytes);
        };
        const auto batch = ask(load_, size * kMiB);
        if (!batch) return;
        std::vector<EventIndex> activations;
        for (std::uint64_t i = 0; i < kLayers; ++i) {
            const auto activation = ask(forward_, 2 * size * kMiB);
            if (!activation) return;
            activations.push_back(*activation);
        }
        if (keeps) {
            const auto loss = ask(remember_, 16 * kMiB);
            if (!loss) return;
            kept.push_back(*loss);
        }
        std::vector<EventIndex> gradients;
        for (std::uint64_t i = kLayers; i-- > 0;) {
            const auto of_activation = ask(backward_, 2 * size * kMiB);
            if (!of_activation) return;
            const auto gradient = ask(gradient_, kWeightBytes);
            if (!gradient) return;
            gradients.push_back(*gradient);
            run.free(*of_activation);
            run.free(activations[i]);
        }
        if (steps_++ == 0) {
            for (std::uint64_t i = 0; i < kLayers; ++i) {
                run.alloc(state_, 2 * kWeightBytes);
            }
        }
        for (const EventIndex gradient : gradients) {
            run.free(gradient);
        }
        run.free(*batch);
        run.end_phase();
    }

    [[nodiscard]] ReplayScript script() const { return make_script(run.timeline, 0); }

    [[nodiscard]] Iterations iterations() const {
        return find_iterations(run.timeline, requests_of(run.timeline, 0, true));
    }

    // The last request that failed.
    [[nodiscard]] EventIndex failed() const {
        EventIndex found = kNoEvent;
        for (EventIndex i = 0; i < run.timeline.events.size(); ++i) {
            found = run.timeline.events.kind(i) == EventKind::kBlockOutOfMemory ? i : found;
        }
        return found;
    }

    [[nodiscard]] RestOfIteration rest() const {
        return rest_of_iteration(run.timeline, script(), iterations(), failed());
    }

  private:
    OriginId weights_ = run.line("weights");
    OriginId load_ = run.line("load");
    OriginId forward_ = run.line("forward");
    OriginId remember_ = run.line("remember");
    OriginId backward_ = run.line("backward");
    OriginId gradient_ = run.line("gradient");
    OriginId state_ = run.line("state");
    std::uint64_t steps_ = 0;
};

PoolStatistics replayed(const ReplayScript& script) {
    auto pool = make_pool("pytorch",
                          "",
                          std::make_unique<FixedDevice>(64 * kGiB, 64 * kGiB, 2 * kMiB),
                          script.streams,
                          script.rules);
    REQUIRE(pool.ok());
    return replay(script, **pool).statistics;
}

// The last step fails at each of its requests in turn. The forecast must equal what the step would
// have done.
void check_every_place(const std::vector<std::uint64_t>& sizes, bool keeps) {
    const std::uint64_t requests = 1 + kLayers + (keeps ? 1 : 0) + 2 * kLayers;
    Training whole;
    for (const std::uint64_t size : sizes) {
        whole.step(size, {}, keeps);
    }
    const PoolStatistics wanted = replayed(whole.script());
    for (std::uint64_t at = 1; at < requests; ++at) {
        CAPTURE(at);
        Training cut;
        for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
            cut.step(sizes[i], {}, keeps);
        }
        cut.step(sizes.back(), at, keeps);
        const RestOfIteration rest = cut.rest();
        CAPTURE(rest.why_not);
        REQUIRE(rest.known());
        CHECK(rest.iteration == sizes.size());
        CHECK(rest.basis == sizes.size() - 1);
        const PoolStatistics found = replayed(rest.script);
        CHECK(found.allocated.peak == wanted.allocated.peak);
        CHECK(found.reserved.peak == wanted.reserved.peak);
        CHECK(found.allocated.current == wanted.allocated.current);
        CHECK(found.ooms == 0);
    }
}

Forecast forecast_of(const Training& training,
                     const ForecastCard& card,
                     std::vector<WhatIfRow>* rows,
                     std::vector<WhatIfRow>* other_pools = nullptr) {
    SweepContext context;
    context.fidelity_exact = true;
    context.recorded_capacity_bytes = card.capacity_bytes;
    auto forecast =
        make_forecast(training.run.timeline,
                      training.script(),
                      training.iterations(),
                      context,
                      training.failed(),
                      card,
                      {rows},
                      other_pools == nullptr ? std::vector<std::vector<WhatIfRow>*>()
                                             : std::vector<std::vector<WhatIfRow>*>{other_pools});
    REQUIRE(forecast.ok());
    REQUIRE(forecast->known());
    return std::move(forecast).value();
}

}  // namespace

TEST_CASE("a step of equal size is forecast from the previous step") {
    check_every_place({3, 3, 3, 3}, true);
}

TEST_CASE("for a larger batch the forecast scales activations but not gradients") {
    check_every_place({3, 3, 3, 5}, false);
}

TEST_CASE("the forecast scales sizes that changed together in earlier steps") {
    check_every_place({3, 5, 2, 4, 7}, false);
}

TEST_CASE("lasting blocks of the first step are not forecast for the second") {
    check_every_place({3, 4}, false);
}

TEST_CASE("without a complete similar step there is no forecast") {
    SECTION("the first step fails") {
        Training training;
        training.step(3, 4);
        CHECK(training.rest().why_not == "no earlier step is complete");
    }
    SECTION("the failed request matches none in an earlier step") {
        Training training;
        for (int i = 0; i < 3; ++i) {
            training.step(3);
        }
        training.run.begin_phase("step");
        training.run.fail(training.run.line("new"), kGiB);
        CHECK(training.rest().why_not ==
              "no complete earlier step made the same requests up to this one");
    }
    SECTION("no request failed") {
        Training training;
        training.step(3);
        training.step(3);
        CHECK_FALSE(training.rest().known());
    }
}

TEST_CASE("a forecast names the capacity and the step size that fit") {
    Training training;
    for (const std::uint64_t size : {4, 4, 4}) {
        training.step(size);
    }
    training.step(6, 3);
    Training whole;
    for (const std::uint64_t size : {4, 4, 4, 6}) {
        whole.step(size);
    }
    const std::uint64_t needed = replayed(whole.script()).reserved.peak;
    Training smaller;
    for (const std::uint64_t size : {4, 4, 4, 4}) {
        smaller.step(size);
    }
    const ForecastCard card{.capacity_bytes = replayed(smaller.script()).reserved.peak,
                            .others_bytes = 256 * kMiB};
    std::vector<WhatIfRow> rows;
    const Forecast forecast = forecast_of(training, card, &rows);
    CHECK(forecast.scale == Approx(1.5));
    CHECK(forecast.peak_reserved_bytes == needed);
    CHECK(forecast.least_capacity_bytes <= needed);
    CHECK(forecast.least_capacity_bytes > card.capacity_bytes);
    CHECK(forecast.least_card_bytes == forecast.least_capacity_bytes + card.others_bytes);
    CHECK(forecast.shortfall_bytes == forecast.least_capacity_bytes - card.capacity_bytes);
    // With 6 MiB, a step of size 4 fits and one of size 6 does not.
    REQUIRE(forecast.fitting_part);
    CHECK(*forecast.fitting_part >= Approx(4.0 / 6));
    CHECK(*forecast.fitting_part < 1);
}

TEST_CASE("no change gets a step to its end that requests more than the card has") {
    Training training;
    for (const std::uint64_t size : {4, 4, 4}) {
        training.step(size);
    }
    training.step(8, 3);
    Training whole;
    for (const std::uint64_t size : {4, 4, 4, 8}) {
        whole.step(size);
    }
    const std::uint64_t requested = replayed(whole.script()).requested.peak;
    const auto row_on = [](std::uint64_t capacity_bytes, Remedy remedy) {
        WhatIfRow row;
        row.candidate.remedy = remedy;
        row.candidate.capacity_bytes = capacity_bytes;
        row.candidate.total_bytes = capacity_bytes;
        if (remedy != Remedy::kSettings) {  // the requests change
            row.candidate.change = std::make_shared<ScriptChange>();
        }
        row.result.divergence.emplace().kind = Divergence::Kind::kGoesOn;
        return row;
    };
    std::vector<WhatIfRow> rows = {row_on(requested - 1, Remedy::kSettings),
                                   row_on(requested - 1, Remedy::kEmptyCache),
                                   row_on(requested, Remedy::kEmptyCache),
                                   row_on(2 * requested, Remedy::kSettings)};
    for (const WhatIfRow& row : rows) {
        REQUIRE(row.gets_past());
    }
    // Rows of other pools are not replayed, but their card may be too small, too.
    std::vector<WhatIfRow> pools = {rows[0], rows[3]};
    pools[0].usable = false;
    CHECK_FALSE(
        forecast_of(training, {.capacity_bytes = requested - 1}, &rows, &pools).in_use_fits);
    CHECK(pools[0].rest_fits == false);
    CHECK_FALSE(pools[1].rest_fits.has_value());
    CHECK(rows[0].rest_fits == false);
    CHECK(rows[1].rest_fits == false);
    CHECK_FALSE(rows[2].rest_fits.has_value());  // enough memory, but the requests change
    CHECK(rows[3].rest_fits == true);
    CHECK(forecast_of(training, {.capacity_bytes = requested}, &rows).in_use_fits);
}

TEST_CASE("requests that the program got past are left out of the forecast, and so is their step") {
    const std::vector<std::uint64_t> sizes = {3, 3, 3, 3};
    Training whole;
    for (const std::uint64_t size : sizes) {
        whole.step(size);
    }
    Training cut;
    cut.step(3);
    cut.run.fail(cut.run.line("probe"), 4096 * kMiB);
    cut.step(3);
    cut.step(3);
    cut.step(3, 5);
    const RestOfIteration rest = cut.rest();
    REQUIRE(rest.known());
    CHECK(rest.basis == 3);
    const PoolStatistics wanted = replayed(whole.script());
    const PoolStatistics found = replayed(rest.script);
    CHECK(found.allocated.peak == wanted.allocated.peak);
    CHECK(found.reserved.peak == wanted.reserved.peak);
    CHECK(found.ooms == 0);

    Training twice;
    twice.step(3);
    twice.step(3);
    twice.step(3, 5);
    twice.run.end_phase();
    twice.step(3, 5);
    CHECK(twice.rest().basis == 2);
    CHECK(rest_of_iteration(twice.run.timeline, twice.script(), twice.iterations(), 0).why_not ==
          "the failed request did not go to the pool");
}
