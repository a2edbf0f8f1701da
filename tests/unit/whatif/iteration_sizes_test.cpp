// The expected sizes of requests that a step has not made yet.
#include "analyzer/analysis/whatif/iteration_sizes.h"

#include <catch2/catch.hpp>

using namespace fragtrace::analyzer;

TEST_CASE("an unknown size scales with the step, unless it was the same in several steps") {
    const IterationSizes sizes;
    CHECK(sizes.of({100}, 2.0) == 200);
    CHECK(sizes.of({100, 100}, 2.0) == 100);
    CHECK(sizes.of({100, 150}, 2.0) == 200);
}

TEST_CASE("a constant size that equals a lasting block's size stays constant") {
    IterationSizes sizes;
    sizes.know_lasting(100);
    CHECK(sizes.of({100}, 2.0) == 100);
    CHECK(sizes.of({100, 150}, 2.0) == 200);
}

TEST_CASE("a size changes like the sizes that changed with it before") {
    IterationSizes sizes;
    sizes.know({1000, 2000}, 3000);
    CHECK(sizes.of({1000, 2000}, 10.0) == 3000);
    CHECK(sizes.of({10, 20}, 10.0) == 30);
    CHECK(sizes.of({10, 30}, 10.0) == 100);
}
