// CuPy's pool: worked examples, and the promises of all pools under its settings.
#include "tests/unit/pools/conformance.h"
#include "tests/unit/pools/worked_example.h"

#include <catch2/catch.hpp>

namespace fragtrace::analyzer {
namespace {

TEST_CASE("cupy: the driver is asked for exactly the rounded request") {
    WorkedExample pool("cupy");
    CHECK(pool.calls("a=1 b=1000 c=3MiB") == "a 0+0 grow, b 1+0 grow, c 2+0 grow");
    CHECK(pool.pool->statistics().reserved.current == 512 + 1024 + 3 * kMiB);
    CHECK(pool.pool->statistics().rounding_bytes == 511 + 24);
}

TEST_CASE("cupy: best fit, always split, neighbours merge") {
    WorkedExample pool("cupy");
    pool.calls("a=4096 b=2048 -a -b");
    CHECK(pool.calls("c=1500 d=512 e=4000") == "c 1+0, d 1+1536, e 0+0");
    CHECK(pool.calls("-c -d f=2048") == "f 1+0");
}

TEST_CASE("cupy: memory of one stream never serves another") {
    WorkedExample pool("cupy");
    CHECK(pool.calls("a@1=1MiB -a b@2=1MiB c@1=512") == "a 0+0 grow, b 1+0 grow, c 0+0");
}

TEST_CASE(
    "cupy: a refusal releases wholly free segments of all streams, but none with a live byte") {
    WorkedExample pool("cupy", "", 10 * kMiB);
    CHECK(pool.calls("a@1=4MiB b@2=4MiB -a -b c@3=6MiB") == "a 0+0 grow, b 1+0 grow, c 2+0 retry");
    CHECK(pool.calls("-c d@3=512 e@1=5MiB") == "d 2+0, e oom");
    CHECK(pool.calls("-d e@1=5MiB") == "e 3+0 retry");
}

TEST_CASE("cupy: at its limit the pool releases its free segments and tries again") {
    WorkedExample pool("cupy", "limit:4MiB");
    CHECK(pool.calls("a=3MiB -a b=4MiB") == "a 0+0 grow, b 1+0 retry");
    CHECK(pool.calls("-b c=1MiB d@1=2MiB") == "c 1+0, d oom");  // c keeps the whole segment
}

TEST_CASE("cupy: a request above the limit itself fails with cached memory, which stays") {
    WorkedExample pool("cupy", "limit:4MiB");
    CHECK(pool.calls("a=3MiB -a b=5MiB c=1MiB") == "a 0+0 grow, b oom, c 0+0");
    WorkedExample share("cupy", "limit:50%", 8 * kMiB);
    CHECK(share.calls("a=4MiB b=512") == "a 0+0 grow, b oom");
}

TEST_CASE("cupy: a request beyond all addresses fails") {
    WorkedExample pool("cupy");
    for (const std::uint64_t bytes : {~std::uint64_t{0}, ~std::uint64_t{0} - 511}) {
        CHECK(pool.pool->allocate({.block = 1, .requested_bytes = bytes}).outcome ==
              Outcome::kOutOfMemory);
    }
    CHECK(pool.pool->statistics().reserved.current == 0);
}

TEST_CASE("cupy: a lifted limit no longer refuses requests") {
    WorkedExample pool("cupy", "limit:4MiB");
    CHECK(pool.calls("a=5MiB") == "a oom");
    CHECK(pool.pool->relax(Relaxation::kNoLimit));
    CHECK(pool.calls("a=5MiB") == "a 0+0 grow");
}

TEST_CASE("cupy: after an adopted state only its free blocks are handed out") {
    WorkedExample former("cupy");
    former.calls("a=1MiB b=1MiB");
    WorkedExample pool("cupy");
    pool.calls("a=4MiB -a");
    REQUIRE(pool.pool->adopt(former.pool->snapshot()));
    CHECK(pool.calls("c=2MiB") == "c 2+0 grow");
}

TEST_CASE("cupy keeps the rules of all pools, with and without a limit") {
    check_conformance("cupy", "");
    check_conformance("cupy", "limit:8MiB");
}

}  // namespace
}  // namespace fragtrace::analyzer
