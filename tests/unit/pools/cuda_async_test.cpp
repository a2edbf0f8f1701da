// The model of cudaMallocAsync: its upper and its lower end, and that they really are bounds.
#include "tests/unit/pools/conformance.h"
#include "tests/unit/pools/worked_example.h"

#include <catch2/catch.hpp>

#include <random>

namespace fragtrace::analyzer {
namespace {

std::uint64_t reserved(const WorkedExample& example) {
    return example.pool->statistics().reserved.current / kMiB;
}

TEST_CASE("cuda-async: the upper end allocates segments of 32 MiB and never joins them") {
    WorkedExample pool("cuda-async", "", kGiB);
    CHECK(pool.calls("a=1 b=20MiB c=12MiB d=33MiB") ==
          "a 0+0 grow, b 0+512, c 1+0 grow, d 2+0 grow");
    CHECK(pool.segments() == "32 32 64");
    CHECK(pool.calls("-a -b -c x=40MiB") == "x 3+0 grow");
}

TEST_CASE("cuda-async: the lower end reserves the live bytes, rounded to 32 MiB") {
    WorkedExample pool("cuda-async", "remap:True", kGiB);
    CHECK(pool.calls("a=1 b=20MiB c=12MiB d=33MiB") == "a 0+0 grow, b 1+0, c 2+0 grow, d 3+0 grow");
    CHECK(reserved(pool) == 96);
    CHECK(pool.calls("-a -b -c x=40MiB") == "x 4+0");
    CHECK(reserved(pool) == 96);
}

TEST_CASE("cuda-async: freed memory stays reserved until empty_cache") {
    for (const char* config : {"", "remap:True"}) {
        WorkedExample pool("cuda-async", config, kGiB);
        pool.calls("a=100MiB b=40MiB -a");
        CHECK(reserved(pool) == (*config == '\0' ? 192 : 160));
        pool.pool->empty_cache();
        CHECK(reserved(pool) == 64);
    }
}

TEST_CASE("cuda-async: after a refusal free segments are released and the request is retried") {
    WorkedExample upper("cuda-async", "", 100 * kMiB);
    CHECK(upper.calls("a=32MiB b=32MiB -a c=64MiB d=1") ==
          "a 0+0 grow, b 1+0 grow, c 2+0 retry, d oom");
    WorkedExample lower("cuda-async", "remap:True", 100 * kMiB);
    CHECK(lower.calls("a=32MiB b=32MiB -a c=64MiB d=4MiB e=1") ==
          "a 0+0 grow, b 1+0 grow, c 2+0 grow, d 3+0 grow, e oom");
}

TEST_CASE("cuda-async: the lower end never reserves more than the upper one while both serve") {
    for (unsigned seed = 0; seed < 300; ++seed) {
        std::mt19937 random(seed);
        WorkedExample upper("cuda-async", "", (100 + random() % 900) * kMiB);
        WorkedExample lower("cuda-async", "remap:True", upper.pool->device().total_bytes());
        std::vector<BlockId> live;
        for (BlockId id = 1; id < 300; ++id) {
            if (random() % 50 == 0) {
                upper.pool->empty_cache();
                lower.pool->empty_cache();
            } else if (random() % 2 == 0 && !live.empty()) {
                const std::size_t at = random() % live.size();
                REQUIRE(upper.pool->release(live[at], {}));
                REQUIRE(lower.pool->release(live[at], {}));
                live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
            } else {
                const Request request{id, 1 + random() % (random() % 4 == 0 ? 60 * kMiB : kMiB)};
                const bool above = upper.pool->allocate(request).outcome != Outcome::kOutOfMemory;
                const bool below = lower.pool->allocate(request).outcome != Outcome::kOutOfMemory;
                REQUIRE((below || !above));
                if (!above) {
                    break;  // from here on the two pools have different live blocks
                }
                live.push_back(id);
            }
            REQUIRE(lower.pool->statistics().reserved.current <=
                    upper.pool->statistics().reserved.current);
        }
    }
}

TEST_CASE("cuda-async keeps the rules of all pools at its lower end") {
    check_conformance("cuda-async", "remap:True");
}

}  // namespace
}  // namespace fragtrace::analyzer
