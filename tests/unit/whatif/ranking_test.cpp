// A single order of "better", which ranks, remedies, combinations and advice all use.
#include "analyzer/analysis/whatif/ranking.h"

#include "analyzer/analysis/whatif/advice.h"
#include "analyzer/support/units.h"

#include <catch2/catch.hpp>

using namespace fragtrace::analyzer;

namespace {

WhatIfRow row(const char* name, std::size_t ooms, std::size_t retries, std::uint64_t reserved) {
    WhatIfRow made;
    made.candidate.name = name;
    made.result.troubles.assign(ooms, {.outcome = Outcome::kOutOfMemory});
    made.result.troubles.insert(
        made.result.troubles.end(), retries, {.outcome = Outcome::kRetryOk});
    made.result.statistics.reserved.peak = reserved;
    return made;
}

// A row whose first out-of-memory is a request that the recorded run served.
WhatIfRow failing_first(std::size_t ooms, std::uint64_t reserved) {
    WhatIfRow made = row("fails first", ooms, 0, reserved);
    made.result.divergence =
        Divergence{.kind = Divergence::Kind::kFails, .event = 1, .statistics = {}};
    return made;
}

// A row of a program with 1,000 requests, 100 of which reach the driver.
WhatIfRow priced(Remedy remedy, std::uint64_t reserved, std::uint64_t driver_calls = 100) {
    WhatIfRow made = row("", 0, 0, reserved);
    made.candidate.remedy = remedy;
    made.result.requests_served = 1000;
    made.result.statistics.segments_allocated = driver_calls;
    made.result.statistics.segments_freed = driver_calls;
    return made;
}

std::vector<Remedy> order_of(std::vector<WhatIfRow> rows, const WhatIfRow& recorded) {
    rank(&rows, recorded);
    std::vector<Remedy> order;
    for (const WhatIfRow& one : rows) {
        order.push_back(one.candidate.remedy);
    }
    return order;
}

}  // namespace

TEST_CASE("caching off comes after every row that saves at least half as much") {
    const WhatIfRow recorded = priced(Remedy::kSettings, 1000 * kMiB);
    const WhatIfRow uncached = priced(Remedy::kCachingOff, 600 * kMiB, 1000);
    for (const Remedy remedy :
         {Remedy::kSettings, Remedy::kEmptyCache, Remedy::kOwnPool, Remedy::kMoveFirst}) {
        // For any price: here too every request goes to the driver.
        const WhatIfRow half = priced(remedy, 800 * kMiB, 5000);
        CHECK(price_of(half, recorded) <= 1);
        CHECK(order_of({uncached, half}, recorded).front() == remedy);
    }
    const WhatIfRow little = priced(Remedy::kSettings, 970 * kMiB);
    CHECK(order_of({uncached, little}, recorded).front() == Remedy::kCachingOff);
    CHECK(is_worth_its_price(uncached, recorded));
    // 19 % less memory is not worth that price. 4 % less by a setting is worth it.
    CHECK_FALSE(is_worth_its_price(priced(Remedy::kCachingOff, 810 * kMiB, 1000), recorded));
    CHECK(is_worth_its_price(priced(Remedy::kSettings, 960 * kMiB), recorded));
}

TEST_CASE("after an out-of-memory, every remedy that avoids it comes before caching off") {
    WhatIfRow recorded = priced(Remedy::kSettings, 900 * kMiB);
    recorded.result.troubles.push_back({.outcome = Outcome::kOutOfMemory});
    const WhatIfRow uncached = priced(Remedy::kCachingOff, 500 * kMiB, 1000);
    const WhatIfRow setting = priced(Remedy::kSettings, 1000 * kMiB);
    CHECK(order_of({uncached, setting}, recorded).front() == Remedy::kSettings);
    CHECK(is_worth_its_price(uncached, recorded));
    // Among changes that avoid it, the one with the lower price wins, unless it needs much more
    // memory.
    const WhatIfRow moved = priced(Remedy::kMoveFirst, 900 * kMiB);
    CHECK(order_of({moved, setting}, recorded).front() == Remedy::kSettings);
    CHECK(order_of({moved, priced(Remedy::kSettings, 1900 * kMiB)}, recorded).front() ==
          Remedy::kMoveFirst);
    // Also in a short program, in which the setting causes one driver call per request.
    CHECK(order_of({moved, priced(Remedy::kSettings, 900 * kMiB, 2000)}, recorded).front() ==
          Remedy::kSettings);
    // If no other change avoids it, this one remains.
    CHECK(order_of({recorded, uncached}, recorded).front() == Remedy::kCachingOff);
}

TEST_CASE("among rows that save the same, the cheapest comes first") {
    const WhatIfRow recorded = priced(Remedy::kSettings, 1000 * kMiB);
    const WhatIfRow setting = priced(Remedy::kSettings, 700 * kMiB);
    const WhatIfRow call = priced(Remedy::kEmptyCache, 700 * kMiB);
    const WhatIfRow moved = priced(Remedy::kMoveFirst, 700 * kMiB);
    const WhatIfRow own_pool = priced(Remedy::kOwnPool, 700 * kMiB);
    CHECK(
        order_of({moved, own_pool, call, setting}, recorded) ==
        std::vector{Remedy::kSettings, Remedy::kEmptyCache, Remedy::kOwnPool, Remedy::kMoveFirst});
    // A change of the program is worth it if it saves much more.
    CHECK(order_of({setting, priced(Remedy::kEmptyCache, 600 * kMiB)}, recorded).front() ==
          Remedy::kEmptyCache);
    // But not if it causes a driver call for every second request.
    CHECK(order_of({setting, priced(Remedy::kEmptyCache, 600 * kMiB, 400)}, recorded).front() ==
          Remedy::kSettings);
    CHECK(price_of(setting, recorded) == 0);
    WhatIfRow two = setting;
    two.candidate.config = "expandable_segments:True,roundup_power2_divisions:4";
    CHECK(price_of(two, recorded) == Approx(0.05));
}

TEST_CASE("a retry counts as much as one percent more reserved memory") {
    std::vector<WhatIfRow> rows = {row("fails", 1, 0, 1),
                                   row("fails, retries", 1, 2, 0),
                                   row("retries", 0, 6, 995),
                                   row("fits", 0, 0, 1000),
                                   row("one retry", 0, 1, 980)};
    rank(&rows, row("as run", 0, 0, 1000));
    CHECK(rows[0].candidate.name == "one retry");
    CHECK(rows[1].candidate.name == "fits");
    CHECK(rows[2].candidate.name == "retries");
    CHECK(rows[3].candidate.name == "fails, retries");  // retries of a failing run do not count
    CHECK(rows[4].candidate.name == "fails");
}

TEST_CASE("a change below 2 % but of at least one driver page helps a little") {
    const auto change = [&](std::int64_t more_bytes) {
        const WhatIfRow recorded = row("as run", 0, 0, 1000 * kMiB);
        WhatIfRow changed = recorded;
        changed.result.statistics.reserved.peak += static_cast<std::uint64_t>(more_bytes);
        return change_of(changed, recorded);
    };
    const auto mib = static_cast<std::int64_t>(kMiB);
    CHECK(change(-20 * mib) == Change::kHelps);
    CHECK(change(-20 * mib + 1) == Change::kHelpsALittle);
    CHECK(change(-2 * mib) == Change::kHelpsALittle);
    CHECK(change(-2 * mib + 1) == Change::kNothing);
    CHECK(change(2 * mib - 1) == Change::kNothing);
    CHECK(change(2 * mib) == Change::kHurtsALittle);
    CHECK(change(20 * mib) == Change::kHurts);
    const WhatIfRow less = row("less", 0, 0, 998 * kMiB);
    CHECK(effect_name(effect_of(less, row("as run", 0, 0, 1000 * kMiB))) == "helped a little");
}

TEST_CASE("every comparison weighs retries against reserved memory in the same way") {
    const WhatIfRow recorded = row("as run", 0, 0, 1000 * kMiB);
    // 3 % less memory for five retries is no gain, 10 % less is.
    const WhatIfRow dear = row("dear", 0, 5, 970 * kMiB);
    CHECK(change_of(dear, recorded) == Change::kHurtsALittle);
    CHECK_FALSE(is_better(dear, recorded, recorded));
    CHECK(ranks_before(recorded, dear, recorded));
    const WhatIfRow cheap = row("cheap", 0, 5, 900 * kMiB);
    CHECK(change_of(cheap, recorded) == Change::kHelps);
    CHECK(is_better(cheap, recorded, recorded));
    CHECK(ranks_before(cheap, recorded, recorded));
    // One retry less does not make up for 10 % more memory.
    const WhatIfRow retried = row("as run", 0, 1, 1000 * kMiB);
    CHECK(change_of(row("more", 0, 0, 1100 * kMiB), retried) == Change::kHurts);
    // For a small run one percent is less than a page, but a retry still counts.
    CHECK(change_of(row("less", 0, 0, 100 * kMiB), row("as run", 0, 1, 100 * kMiB)) ==
          Change::kHelpsALittle);
}

TEST_CASE("a run that fails at a request which the recorded run served is not better") {
    const WhatIfRow recorded = row("as run", 3, 0, 1000 * kMiB);
    const WhatIfRow fails_first = failing_first(1, 900 * kMiB);
    CHECK(change_of(fails_first, recorded) == Change::kHurts);
    CHECK_FALSE(is_better(fails_first, recorded, recorded));
    CHECK(ranks_before(recorded, fails_first, recorded));
    CHECK(change_of(row("two", 2, 0, 1000 * kMiB), recorded) == Change::kHelps);
    CHECK(change_of(row("as many", 3, 0, 500 * kMiB), recorded) == Change::kNothing);
    // If the replay of the recorded settings does not match, neither row gives a result.
    CHECK(change_of(fails_first, failing_first(2, 1000 * kMiB)) == Change::kNothing);
}

TEST_CASE("no row that reserves more than the limit is better") {
    const WhatIfRow best = priced(Remedy::kSettings, 700 * kMiB);
    for (const std::size_t recorded_ooms : {0u, 1u}) {
        CAPTURE(recorded_ooms);
        WhatIfRow recorded = priced(Remedy::kSettings, 1000 * kMiB);
        recorded.result.troubles.assign(recorded_ooms, {.outcome = Outcome::kOutOfMemory});
        const std::uint64_t most = most_reserved_if_better(best, recorded);
        CHECK(most < 700 * kMiB);
        CHECK(most > 690 * kMiB);
        for (const std::uint64_t calls : {0u, 100u, 2000u}) {
            for (const std::size_t retries : {0u, 1u, 200u}) {
                WhatIfRow row = priced(Remedy::kSettings, most + 1, calls);
                row.result.troubles.assign(retries, {.outcome = Outcome::kRetryOk});
                CHECK_FALSE(is_better(row, best, recorded));
            }
        }
        // A page below the limit, at no price, is better.
        CHECK(is_better(priced(Remedy::kSettings, most - 2 * kMiB), best, recorded));
        // Any row without failures is better than a row with one.
        CHECK(most_reserved_if_better(row("", 1, 0, 100 * kMiB), recorded) == ~std::uint64_t{0});
    }
}
