// Growth of memory and of peaks over the steps, in runs made by hand.
#include "analyzer/analysis/holders/growth.h"

#include "analyzer/analysis/holders/growth_forecast.h"
#include "analyzer/analysis/holders/part_growth.h"
#include "analyzer/analysis/metrics/measure.h"
#include "analyzer/support/units.h"
#include "tests/unit/iterations/made_up_run.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <random>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::MadeUpRun;

namespace {

RunHistory history_of(const MadeUpRun& run) {
    Symbolizer symbols(run.timeline);
    StackMarks marks(run.timeline, &symbols);
    return run_history(run.timeline, 0, true, &marks);
}

Growth growth_in(const MadeUpRun& run, EventIndex first_failed = kNoEvent) {
    Symbolizer symbols(run.timeline);
    return growth_of(run.timeline,
                     history_of(run),
                     first_failed,
                     RuleFinder(run.timeline, &symbols, nullptr),
                     &symbols);
}

}  // namespace

TEST_CASE("a line grows if it never shrinks and rises at half of the steps") {
    MadeUpRun run;
    const OriginId data = run.line("load");
    const OriginId leak = run.line("remember");
    const OriginId sawtooth = run.line("cache");
    const OriginId state = run.line("make_state");
    std::vector<EventIndex> cached;
    for (int step = 0; step < 10; ++step) {
        run.free(run.alloc(data, kMiB));
        run.alloc(leak, 2 * kMiB);
        if (step == 0) {
            run.alloc(state, 100 * kMiB);
        }
        cached.push_back(run.alloc(sawtooth, 8 * kMiB));
        if (cached.size() == 4) {
            for (const EventIndex block : cached) {
                run.free(block);
            }
            cached.clear();
        }
    }
    const Growth growth = growth_in(run);
    CHECK(growth.first == 3);
    CHECK(growth.last == 10);
    REQUIRE(growth.places.size() == 1);
    CHECK(growth.places[0].place.held.label == "me/train.py:1 remember");
    CHECK(growth.places[0].place.held.bytes == 7 * 2 * kMiB);
    CHECK(growth.places[0].bytes_at_last == 9 * 2 * kMiB);
    CHECK(growth.places[0].times_grown == 7);
}

TEST_CASE("a line that freed most of its memory before the failure did not cause it") {
    for (const bool keeps_half : {false, true}) {
        INFO(keeps_half);
        MadeUpRun run;
        const OriginId data = run.line("load");
        const OriginId leak = run.line("remember");
        const OriginId freed = run.line("cache");
        std::vector<EventIndex> cached;
        EventIndex last = kNoEvent;
        for (int step = 0; step < 10; ++step) {
            run.free(run.alloc(data, kMiB));
            run.alloc(leak, 2 * kMiB);
            cached.push_back(run.alloc(freed, kMiB));
            last = cached.back();
        }
        // The last step begins with 9 blocks of the cache.
        for (std::size_t i = 0; i + (keeps_half ? 5 : 4) < cached.size() - 1; ++i) {
            run.free(cached[i]);
        }
        run.free(last);
        const auto failed = static_cast<EventIndex>(run.timeline.events.size());
        run.fail(leak);
        const Growth growth = growth_in(run, failed);
        REQUIRE(growth.places.size() == 2);
        CHECK_FALSE(growth.places[0].freed_before_failure);
        CHECK(growth.places[1].place.held.label == "me/train.py:1 cache");
        CHECK(growth.places[1].freed_before_failure == !keeps_half);
        // Without a failure, or with one before the last start compared, nothing is said.
        CHECK_FALSE(growth_in(run).places[1].freed_before_failure);
        CHECK_FALSE(growth_in(run, 5).places[1].freed_before_failure);
    }
}

// The fact "text.N" of a label.
OriginId labelled(MadeUpRun* run, OriginId origin, std::uint32_t number, const std::string& label) {
    run->timeline.facts["text." + std::to_string(number)] = label;
    Origin with = run->timeline.origins[origin];
    with.label = number;
    run->timeline.origins.push_back(with);
    return static_cast<OriginId>(run->timeline.origins.size() - 1);
}

TEST_CASE("growth is that of a label if the other blocks of the line do not grow") {
    MadeUpRun run;
    const OriginId data = run.line("load");
    const OriginId cache = run.line("grow_cache");
    const OriginId prefix = labelled(&run, cache, 100, "prefix");
    const OriginId suffix = labelled(&run, cache, 101, "suffix");
    EventIndex last = run.alloc(cache, kMiB);
    for (int step = 0; step < 10; ++step) {
        run.free(run.alloc(data, kMiB));
        run.alloc(prefix, 2 * kMiB);
        run.alloc(suffix, kMiB);
        run.free(last);
        last = run.alloc(cache, (1 + step % 2) * kMiB);  // does not grow: no label
    }
    const Growth growth = growth_in(run);
    REQUIRE(growth.places.size() == 2);
    CHECK(growth.places[0].place.held.label == "me/train.py:1 grow_cache \"prefix\"");
    CHECK(growth.places[0].place.held.bytes == 7 * 2 * kMiB);
    CHECK(growth.places[1].place.held.label == "me/train.py:1 grow_cache \"suffix\"");
    CHECK(growth.places[1].place.held.bytes == 7 * kMiB);
}

TEST_CASE("a line grows although its label changes at every step") {
    MadeUpRun run;
    const OriginId data = run.line("load");
    const OriginId leak = run.line("remember");
    for (std::uint32_t step = 0; step < 10; ++step) {
        run.free(run.alloc(data, kMiB));
        run.alloc(labelled(&run, leak, 100 + step, "step " + std::to_string(step)), 2 * kMiB);
    }
    const Growth growth = growth_in(run);
    REQUIRE(growth.places.size() == 1);
    CHECK(growth.places[0].place.held.label == "me/train.py:1 remember");
    CHECK(growth.places[0].place.held.bytes == 7 * 2 * kMiB);
    CHECK(growth.places[0].times_grown == 7);
}

TEST_CASE("growth at every second step counts, a slightly smaller rate is no slowdown") {
    MadeUpRun run;
    const OriginId data = run.line("load");
    const OriginId seldom = run.line("seldom");
    const OriginId less = run.line("less");
    const OriginId once = run.line("once");
    for (int step = 0; step < 10; ++step) {
        run.free(run.alloc(data, kMiB));
        if (step % 2 == 0) {
            run.alloc(seldom, 5 * kMiB);
        }
        run.alloc(less, (step < 5 ? 3 : 2) * kMiB);
        run.alloc(once, (step == 4 ? 100 : 1) * kMiB);  // 100 MiB in one step
    }
    std::map<std::string, bool> slows;
    for (const GrowingLine& place : growth_in(run).places) {
        slows[place.place.held.label] = place.slows;
    }
    CHECK(slows == std::map<std::string, bool>{{"me/train.py:1 seldom", false},
                                               {"me/train.py:1 less", false},
                                               {"me/train.py:1 once", true}});
}

TEST_CASE("growth that slows down gets no forecast") {
    // The graphs captured for ever smaller batches keep less each time. A leak keeps the same
    // amount each time.
    MadeUpRun run;
    const OriginId data = run.line("load");
    const OriginId capture = run.line("capture");
    const OriginId leak = run.line("remember");
    const bool leaks = GENERATE(false, true);
    for (int step = 0; step < 11; ++step) {
        run.free(run.alloc(data, kMiB));
        run.alloc(capture, (64 * kMiB) >> step);
        if (leaks) {
            run.alloc(leak, kMiB);
        }
    }
    const Growth growth = growth_in(run);
    REQUIRE(growth.places.size() == (leaks ? 2 : 1));
    CHECK(growth.places[0].place.held.label == "me/train.py:1 capture");
    CHECK(growth.places[0].slows);
    const auto forecast =
        forecast_growth(growth, {.capacity_known = true, .capacity_bytes = 100 * kMiB});
    REQUIRE(forecast.has_value() == leaks);
    if (leaks) {
        CHECK_FALSE(growth.places[1].slows);
        CHECK(forecast->bytes_per_iteration == kMiB);
    }
}

TEST_CASE("a run that only loads grows, and has no repeating steps") {
    MadeUpRun steps;
    const OriginId data = steps.line("load");
    const OriginId leak = steps.line("remember");
    MadeUpRun loading;
    const OriginId weight = loading.line("weight");
    const OriginId bias = loading.line("bias");
    for (int i = 0; i < 10; ++i) {
        steps.free(steps.alloc(data, kMiB));
        steps.alloc(leak, kMiB);
        loading.alloc(weight, kMiB);
        loading.alloc(bias, 512);
    }
    CHECK(growth_in(steps).repeats);
    const Growth of_loading = growth_in(loading);
    REQUIRE(of_loading.places.size() == 2);
    CHECK_FALSE(of_loading.repeats);
}

TEST_CASE("growth is measured up to the iteration that first fails") {
    MadeUpRun run;
    const OriginId data = run.line("load");
    const OriginId leak = run.line("remember");
    EventIndex in_seventh = 0;
    EventIndex in_second = 0;
    for (int step = 1; step <= 10; ++step) {
        const EventIndex loaded = run.alloc(data, kMiB);
        in_second = step == 2 ? loaded : in_second;
        in_seventh = step == 7 ? loaded : in_seventh;
        run.free(loaded);
        if (step < 7) {  // the program continues after its failure, and keeps nothing more
            run.alloc(leak, kMiB);
        }
    }
    const Growth growth = growth_in(run, in_seventh);
    CHECK(growth.last == 7);
    REQUIRE(growth.places.size() == 1);
    CHECK(growth.places[0].place.held.bytes == 4 * kMiB);
    CHECK(growth_in(run).last == 10);
    CHECK(growth_in(run, in_second).last == 10);  // two steps are too few
}

TEST_CASE("too few iterations give no growth") {
    MadeUpRun run;
    const OriginId data = run.line("load");
    const OriginId leak = run.line("remember");
    for (int step = 0; step < 4; ++step) {
        run.free(run.alloc(data, kMiB));
        run.alloc(leak, kMiB);
    }
    CHECK(growth_in(run).first == 0);
    CHECK(growth_in(run).places.empty());
}

TEST_CASE("bytes at the start of each iteration are those of its live blocks") {
    MadeUpRun run;
    std::mt19937 random(7);
    const OriginId first = run.line("load");
    std::vector<OriginId> lines;
    for (int i = 0; i < 5; ++i) {
        lines.push_back(run.line("f" + std::to_string(i)));
    }
    std::vector<EventIndex> live;
    for (int step = 0; step < 40; ++step) {
        run.free(run.alloc(first, 512));
        for (const OriginId line : lines) {
            live.push_back(run.alloc(line, 512 * (1 + random() % 50)));
            if (random() % 3 != 0) {
                const std::size_t one = random() % live.size();
                run.free(live[one]);
                live.erase(live.begin() + static_cast<std::ptrdiff_t>(one));
            }
        }
    }
    const RunHistory history = history_of(run);
    const std::vector<EventIndex>& begins = history.iterations.begins;
    REQUIRE(begins.size() == 40);
    std::map<std::uint32_t, std::int64_t> held;
    std::size_t change = 0;
    for (std::size_t k = 1; k <= begins.size(); ++k) {
        for (; change < history.changes.size() && history.changes[change].iteration == k;
             ++change) {
            held[history.changes[change].labelled] += history.changes[change].bytes;
        }
        std::map<std::uint32_t, std::int64_t> expected;
        for (std::size_t i = 0; i < history.requests.size(); ++i) {
            const EventIndex born = history.requests.events[i];
            if (born < begins[k - 1] && run.timeline.partner[born] > begins[k - 1]) {
                expected[history.requests.stacks[i]] +=
                    static_cast<std::int64_t>(allocated_bytes(run.timeline.events[born]));
            }
        }
        std::erase_if(held, [](const auto& entry) { return entry.second == 0; });
        REQUIRE(held == expected);
    }
    CHECK(change == history.changes.size());
}

TEST_CASE("blocks freed within each step count as growth at the end of a phase") {
    MadeUpRun run;
    const std::uint32_t main = run.frame(0, "/home/me/train.py", "main");
    const OriginId data = run.origin(run.frame(main, "/home/me/train.py", "load"));
    const OriginId gradient = run.origin(run.frame(main, "/torch/_tensor.py", "Tensor.backward"));
    const OriginId update =
        run.origin(run.frame(main, "/site-packages/torch/optim/adamw.py", "AdamW.step"));
    const bool marked = GENERATE(false, true);
    for (std::uint64_t step = 0; step < 8; ++step) {
        run.begin_phase("forward part " + std::to_string(step));
        if (!marked) {
            run.timeline.phases.pop_back();
        }
        const EventIndex batch = run.alloc(data, (10 + step) * kMiB);
        if (marked) {
            run.end_phase();
        }
        const EventIndex back = run.alloc(gradient, 2 * kMiB);
        run.free(batch);
        run.free(run.alloc(update, kMiB));
        run.free(back);
    }
    Symbolizer symbols(run.timeline);
    StackMarks marks(run.timeline, &symbols);
    RunHistory history = run_history(run.timeline, 0, true, &marks);
    if (marked) {  // without phase marks the phases themselves are the iterations
        history.iterations.phase.clear();
        REQUIRE_FALSE(history.iterations.begins.empty());
    }
    const std::vector<PartGrowth> parts = part_growth(run.timeline, history, 3);
    REQUIRE(parts.size() == (marked ? 1 : 3));
    CHECK(parts[0].part == (marked ? "forward part #" : "forward"));
    CHECK(parts[0].first == 3);
    CHECK(parts[0].last == 8);
    CHECK(parts[0].bytes_at_first == 12 * kMiB);
    CHECK(parts[0].bytes_at_last == 17 * kMiB);
    CHECK(parts[0].grows());
    if (!marked) {
        CHECK(parts[1].part == "backward");
        CHECK(parts[1].bytes_at_first == 2 * kMiB);
        CHECK_FALSE(parts[1].grows());
        CHECK_FALSE(parts[2].grows());
    }
}

TEST_CASE("the first iteration's peak is reported separately from the others") {
    MadeUpRun run;
    const OriginId data = run.line("load");
    const OriginId once = run.line("warm_up");
    for (int step = 0; step < 4; ++step) {
        const EventIndex batch = run.alloc(data, kMiB);
        run.free(run.alloc(once, step == 0 ? 64 * kMiB : 3 * kMiB));
        run.free(batch);
    }
    Iterations iterations = history_of(run).iterations;
    REQUIRE(iterations.begins.size() == 4);
    // Blocks outside of any segment are not part of the sums, so the segment comes first.
    MadeUpRun with_segment;
    Event segment = {};
    segment.kind = EventKind::kDeviceAlloc;
    segment.flags = kFlagFromAllocator;
    segment.size_bytes = 1024 * kMiB;
    segment.stream = kNoStream;
    segment.address = 512;
    with_segment.timeline.events.push_back(segment);
    with_segment.timeline.partner.push_back(kNoEvent);
    for (EventIndex i = 0; i < run.timeline.events.size(); ++i) {
        with_segment.timeline.events.push_back(run.timeline.events[i]);
        const EventIndex partner = run.timeline.partner[i];
        with_segment.timeline.partner.push_back(partner == kNoEvent ? kNoEvent : partner + 1);
        if (run.timeline.events.kind(i) == EventKind::kBlockFree) {
            Event free = run.timeline.events[i];
            free.address = run.timeline.events[partner].address;
            free.extra = run.timeline.events[partner].extra;
            with_segment.timeline.events.set(i + 1, free);
        }
    }
    for (EventIndex& begin : iterations.begins) {
        ++begin;
    }
    // Each block begins 100 MiB after the previous one, so that blocks do not overlap.
    for (EventIndex i = 1; i < with_segment.timeline.events.size(); ++i) {
        Event event = with_segment.timeline.events[i];
        const EventIndex partner = with_segment.timeline.partner[i];
        const EventIndex born = event.kind == EventKind::kBlockAlloc ? i : partner;
        event.address = 512 + (born % 4) * 100 * kMiB;
        with_segment.timeline.events.set(i, event);
    }
    const RecordedRun recorded = measure(with_segment.timeline, {0});
    const IterationPeaks peaks = iteration_peaks(recorded.peaks.front(), iterations);
    CHECK(peaks.known);
    CHECK(peaks.warmup_allocated == 65 * kMiB);
    CHECK(peaks.steady_allocated == 4 * kMiB);
    CHECK(peaks.steady_reserved == 1024 * kMiB);
}

TEST_CASE("growth matters if it fills the card within 100 times the recorded iterations") {
    const auto forecast = [](std::int64_t bytes,
                             std::uint64_t card,
                             std::uint64_t needed,
                             bool repeats = true,
                             std::uint64_t retried = 0) {
        Growth growth{
            .first = 3, .last = 23, .repeats = repeats, .bytes = bytes, .places = {GrowingLine{}}};
        growth.places[0].place.held.bytes = bytes;
        return forecast_growth(growth,
                               {.capacity_known = card != 0,
                                .capacity_bytes = card,
                                .peak_reserved_bytes = needed,
                                .needed_bytes = needed,
                                .retried_bytes = retried})
            .value();
    };
    // 10 MiB per iteration, and 1,000 MiB are left after 23 iterations: the 101st further iteration
    // does not fit.
    const GrowthForecast soon = forecast(200 * kMiB, 3000 * kMiB, 2000 * kMiB);
    CHECK(soon.bytes_per_iteration == 10 * kMiB);
    CHECK(soon.left_bytes == 1000 * kMiB);
    CHECK(soon.at_iteration == 23 + 100 + 1);
    CHECK(soon.matters);
    // The losses of 20 steps, on a card with 1 GiB left.
    const GrowthForecast never = forecast(20 * 512, 3072 * kMiB, 2048 * kMiB);
    CHECK(never.at_iteration == 23 + (std::uint64_t{1} << 21) + 1);
    CHECK_FALSE(never.matters);
    const std::uint64_t last = 100 * 23;
    CHECK(forecast(20 * kMiB, (last - 24) * kMiB, 0).at_iteration == last);
    CHECK(forecast(20 * kMiB, (last - 24) * kMiB, 0).matters);
    CHECK_FALSE(forecast(20 * kMiB, (last - 23) * kMiB, 0).matters);
    // Without a capacity there is no forecast of the step. Growth of a tenth of the reserved memory
    // matters.
    CHECK(forecast(100 * kMiB, 0, 1000 * kMiB).matters);
    CHECK_FALSE(forecast(99 * kMiB, 0, 1000 * kMiB).matters);
    CHECK(forecast(100 * kMiB, 0, 1000 * kMiB).at_iteration == 0);
    CHECK_FALSE(forecast(200 * kMiB, 3000 * kMiB, 2000 * kMiB, false).matters);
    CHECK_FALSE(forecast(100 * kMiB, 0, 1000 * kMiB, false).matters);
    // After a retry, growth has to be a tenth of the retried request's size.
    CHECK(forecast(200 * kMiB, 3000 * kMiB, 2000 * kMiB, true, 2000 * kMiB).matters);
    CHECK_FALSE(forecast(200 * kMiB, 3000 * kMiB, 2000 * kMiB, true, 2010 * kMiB).matters);
    CHECK_FALSE(forecast(100 * kMiB, 0, 1000 * kMiB, true, 1010 * kMiB).matters);
    // A card that is already full.
    CHECK(forecast(20 * kMiB, 1000 * kMiB, 2000 * kMiB).at_iteration == 24);
}
