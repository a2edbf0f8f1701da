// The words that say how certain a figure is.
#include "analyzer/analysis/whatif/row_class.h"

#include "analyzer/analysis/whatif/sweep.h"

#include <catch2/catch.hpp>

using namespace fragtrace::analyzer;

TEST_CASE("a bound names its kind: at least, at most or exact until a failure") {
    CHECK(class_words(RowClass::kExact, BoundKind::kNone) == "exact");
    CHECK(class_words(RowClass::kEstimate, BoundKind::kNone) == "estimate");
    CHECK(class_words(RowClass::kBound, BoundKind::kAtLeast) == "at least");
    CHECK(class_words(RowClass::kBound, BoundKind::kAtMost) == "at most");
    CHECK(class_words(RowClass::kBound, BoundKind::kUntilFailure, 12) ==
          "exact until its out-of-memory at event 12");
}

TEST_CASE("a row is an estimate if the recorded run is not replayed exactly, for every remedy") {
    for (const Remedy remedy : {Remedy::kSettings, Remedy::kEmptyCache, Remedy::kCachingOff}) {
        for (const bool fails : {false, true}) {
            WhatIfRow row;
            row.candidate.remedy = remedy;
            row.candidate.pool = remedy == Remedy::kCachingOff ? "none" : "pytorch";
            if (fails) {
                row.result.divergence.emplace();
                row.result.troubles.push_back({});
            }
            SweepContext context;
            context.fidelity_exact = false;
            classify_row(context, &row);
            CHECK(row.class_text() == "estimate");
            CHECK_FALSE(row.class_reason.empty());
        }
    }
}

TEST_CASE("a row that needs more than the card's known memory is an estimate") {
    WhatIfRow row;
    row.candidate.pool = "pytorch";
    row.result.statistics.reserved.peak = 100;
    SweepContext context;
    context.fidelity_exact = true;
    context.known_capacity_bytes = 100;
    classify_row(context, &row);
    CHECK(row.class_text() == "exact");
    context.known_capacity_bytes = 99;
    classify_row(context, &row);
    CHECK(row.class_text() == "estimate");
}

TEST_CASE("a row that depends on how small requests share pages is an estimate") {
    WhatIfRow row;
    row.candidate.pool = "pytorch";
    SweepContext context;
    context.fidelity_exact = true;
    row.result.pages_decide = true;
    classify_row(context, &row);
    CHECK(row.class_text() == "estimate");
    CHECK(row.class_reason == kPagesReason);
}

TEST_CASE("bounds of all allocators are \"at least\", results of a plan are \"at most\"") {
    WhatIfRow row;
    row.candidate.pool = "live";
    SweepContext context;
    classify_row(context, &row);
    CHECK(row.class_text() == "at least");
    row.candidate.pool = "offline";
    classify_row(context, &row);
    CHECK(row.class_text() == "at most");
}

TEST_CASE("a row is certain only while the pool's capacity was as measured") {
    WhatIfRow row;
    row.candidate.pool = "pytorch";
    row.candidate.capacity_bytes = 1000;
    row.result.statistics.reserved.peak = 900;
    SweepContext context;
    context.fidelity_exact = true;
    context.beside_pool = {.from = 10, .until = 20, .excess_bytes = 100};
    const auto words = [&] {
        row.row_class = RowClass::kExact;
        row.class_reason.clear();
        classify_row(context, &row);
        return row.class_text();
    };
    CHECK(words() == "exact");
    row.result.troubles = {{.event = 10, .outcome = Outcome::kRetryOk}};
    CHECK(words() == "exact");
    for (const EventIndex elsewhere : {9, 20}) {
        row.result.troubles = {{.event = elsewhere, .outcome = Outcome::kRetryOk}};
        CHECK(words() == "estimate");
    }
    row.result.troubles.clear();
    row.result.statistics.reserved.peak = 901;  // too much during the excess
    CHECK(words() == "estimate");
    row.result.statistics.reserved.peak = 500;
    CHECK(words() == "exact");
    row.result.least_free_bytes = 99;  // memory outside the pool uses the rest
    CHECK(words() == "estimate");
    context.beside_pool = {};
    CHECK(words() == "exact");
}
