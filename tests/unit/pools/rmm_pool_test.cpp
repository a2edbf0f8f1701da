// RMM's pool: worked examples, one per line.
#include "tests/unit/pools/conformance.h"
#include "tests/unit/pools/worked_example.h"

#include <catch2/catch.hpp>

namespace fragtrace::analyzer {
namespace {

TEST_CASE("rmm-pool: without a maximum it doubles or grows by the request") {
    WorkedExample pool("rmm-pool", "initial_pool_size:1GiB");
    CHECK(pool.calls("a=1536MiB") == "a 1+0 grow");
    CHECK(pool.segments() == "1024 1536");
    CHECK(pool.calls("b=1GiB c=1MiB") == "b 0+0, c 2+0 grow");
    CHECK(pool.segments() == "1024 1536 2560");
}

TEST_CASE("rmm-pool: with a maximum it grows by half of the rest or by the request") {
    WorkedExample pool("rmm-pool", "initial_pool_size:1GiB,maximum_pool_size:4GiB");
    CHECK(pool.calls("a=1GiB b=256") == "a 0+0 grow, b 1+0 grow");
    CHECK(pool.segments() == "1024 1536");
    CHECK(pool.calls("c=1536MiB d=1536MiB") == "c 2+0 grow, d oom");
    CHECK(pool.segments() == "1024 1536 1536");
}

TEST_CASE("rmm-pool: after a refusal the growth is halved, down to the request") {
    WorkedExample pool("rmm-pool", "initial_pool_size:512MiB", kGiB);
    CHECK(pool.calls("a=512MiB b=1MiB c=600MiB") == "a 0+0 grow, b 1+0 grow, c oom");
    CHECK(pool.segments() == "512 512");
    WorkedExample tight("rmm-pool", "initial_pool_size:600MiB", kGiB);
    CHECK(tight.calls("a=600MiB b=1MiB") == "a 0+0 grow, b 1+0 grow");
    CHECK(tight.segments() == "600 300");
}

TEST_CASE("rmm-pool: the initial pool is half of the free memory") {
    WorkedExample pool("rmm-pool", "", kGiB);
    CHECK(pool.calls("a=1MiB") == "a 0+0 grow");
    CHECK(pool.segments() == "512");
    WorkedExample too_much("rmm-pool", "initial_pool_size:2GiB", kGiB);
    CHECK(too_much.calls("a=1MiB b=1MiB") == "a oom, b oom");
}

TEST_CASE("rmm-pool: the smallest block with the lowest address is taken and always split") {
    WorkedExample pool("rmm-pool", "initial_pool_size:8KiB");
    CHECK(pool.calls("a=1024 b=256 c=512 d=256 e=512 f=256 -a -c -e g=257 h=500 i=256") ==
          "a 0+0 grow, b 0+1024, c 0+1280, d 0+1792, e 0+2048, f 0+2560, g 0+1280, h 0+2048, "
          "i 0+0");
}

TEST_CASE("rmm-pool: a block of another stream is split, its rest stays with that stream") {
    WorkedExample pool("rmm-pool", "initial_pool_size:4KiB");
    // a and b fill the pool on stream 1. The freed a serves x on stream 2.
    CHECK(pool.calls("a@1=2KiB b@1=2KiB -a x@2=1KiB") == "a 0+0 grow, b 0+2048, x 0+0");
    // The rest of a still belongs to stream 1. x is freed on stream 2 and not joined with it.
    CHECK(pool.calls("-x") == "");
    CHECK(pool.layout() == "[- 1024][- 1024][b 2048]");
}

TEST_CASE("rmm-pool: adjacent blocks of two streams serve only after the lists are merged") {
    WorkedExample pool("rmm-pool", "initial_pool_size:4KiB,maximum_pool_size:4KiB");
    CHECK(pool.calls("a@1=1KiB b@2=1KiB c@1=2KiB -a -b") == "a 0+0 grow, b 0+1024, c 0+2048");
    CHECK(pool.layout() == "[- 1024][- 1024][c 2048]");
    CHECK(pool.calls("x@1=2KiB") == "x 0+0");
    CHECK(pool.layout() == "[x 2048][c 2048]");
}

TEST_CASE("rmm-pool: segments are never joined or released") {
    WorkedExample pool("rmm-pool", "initial_pool_size:1MiB,maximum_pool_size:3MiB");
    CHECK(pool.calls("a=1MiB b=1MiB c=1MiB -a -b -c x=2MiB") ==
          "a 0+0 grow, b 1+0 grow, c 2+0 grow, x oom");
    pool.pool->empty_cache();
    CHECK(pool.segments() == "1 1 1");
}

TEST_CASE("rmm-pool keeps the rules of all pools under its settings") {
    check_conformance("rmm-pool", "initial_pool_size:1MiB");
    check_conformance("rmm-pool", "initial_pool_size:16MiB,maximum_pool_size:48MiB");
}

TEST_CASE("rmm-pool: sizes must be multiples of 256, the initial size at most the maximum") {
    for (const char* config : {"initial_pool_size:100",
                               "initial_pool_size:101%",
                               "initial_pool_size:2GiB,maximum_pool_size:1GiB"}) {
        CHECK_FALSE(
            make_pool("rmm-pool", config, std::make_unique<FixedDevice>(kGiB, kGiB, 512)).ok());
    }
}

}  // namespace
}  // namespace fragtrace::analyzer
