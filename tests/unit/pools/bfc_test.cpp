// The BFC pool of JAX and TensorFlow: worked examples, one per line.
#include "tests/unit/pools/conformance.h"
#include "tests/unit/pools/worked_example.h"

#include <catch2/catch.hpp>

namespace fragtrace::analyzer {
namespace {

const std::string kWhole = "preallocate:1";
const std::string kGrowing = "preallocate:0,limit:1";
const std::string k_partitioned = "preallocate:1,partitioned:True";
const std::string kOnnxRuntime = "preallocate:0,limit:1,onnxruntime:True";

TEST_CASE("bfc: a chunk is split if it is twice the request or wastes 128 MiB") {
    // One region that is full, except for a hole of a known size.
    const auto placed = [](const std::string& hole, const std::string& asked) {
        WorkedExample pool("bfc", kWhole, kGiB);
        pool.calls("a=" + hole + " b=1MiB -a x=" + asked);
        return pool.pool->find(3)->block_bytes;
    };
    CHECK(placed("1023KiB", "512KiB") == 1023 * kKiB);  // 511 KiB wasted
    CHECK(placed("1024KiB", "512KiB") == 512 * kKiB);
    CHECK(placed("300MiB", "170MiB") == 170 * kMiB);  // 130 MiB would be wasted
    CHECK(placed("300MiB", "180MiB") == 300 * kMiB);
}

TEST_CASE("bfc: with fragmentation_fraction the allowed waste is a share of the limit") {
    WorkedExample pool("bfc", kWhole + ",fragmentation_fraction:0.1", 100 * kMiB);
    CHECK(pool.calls("a=30MiB b=1MiB -a c=19MiB d=11MiB") ==
          "a 0+0 grow, b 0+31457280, c 0+0, d 0+19922944");
}

TEST_CASE("bfc: requests round to 256 bytes, the unsplit rest counts as slack") {
    WorkedExample pool("bfc", kWhole, 16 * kMiB);
    pool.calls("a=1023KiB b=1MiB -a c=524289");
    CHECK(pool.pool->statistics().rounding_bytes == 255);
    CHECK(pool.pool->statistics().slack_bytes == 1023 * kKiB - 524544);
}

TEST_CASE("bfc: region sizes double, and jump to the size of a large request") {
    WorkedExample pool("bfc", kGrowing, 100 * kMiB);
    pool.calls("a=1MiB b=1MiB c=1MiB");
    CHECK(pool.segments() == "2 4");
    pool.calls("d=9MiB");
    CHECK(pool.segments() == "2 4 16");
    pool.calls("e=7MiB");  // d took its whole region, so the target stays at 16 MiB
    CHECK(pool.segments() == "2 4 16 16");
    pool.calls("g=33MiB");  // the target is 64 MiB, 62 MiB are left
    CHECK(pool.segments() == "2 4 16 16 62");
    CHECK(pool.calls("h=60MiB") == "h oom");
}

TEST_CASE("bfc: after a refusal the region is retried a tenth smaller") {
    WorkedExample pool("bfc", kGrowing, 100 * kMiB);
    REQUIRE(pool.pool->device().take(98 * kMiB + 512 * kKiB));  // of another process
    CHECK(pool.calls("a=1MiB") == "a 0+0 grow");
    // 2 MiB times 0.9 three times, each time rounded up to 256.
    CHECK(pool.pool->statistics().reserved.current == 1529088);
    CHECK(pool.calls("b=1MiB") == "b oom");
}

TEST_CASE("bfc: if a tenth is less than a quantum, the retry is a quantum smaller") {
    auto pool = make_pool("bfc", kGrowing, std::make_unique<FixedDevice>(2560, 2048, 256), {0});
    REQUIRE(pool.ok());
    CHECK((*pool)->allocate({1, 256, 0, 0}).outcome == Outcome::kGrow);
    CHECK((*pool)->statistics().reserved.current == 2048);
}

TEST_CASE("bfc: without growth the whole limit is one region") {
    WorkedExample pool("bfc", "", 1000 * kMiB);
    CHECK(pool.calls("a=1MiB b=1MiB") == "a 0+0 grow, b 0+1048576");
    CHECK(pool.segments() == "750");
    CHECK(pool.calls("c=800MiB") == "c oom");
}

TEST_CASE("bfc: regions are never joined") {
    WorkedExample pool("bfc", kGrowing, 12 * kMiB);
    CHECK(pool.calls("a=2MiB b=4MiB c=6MiB -a -b x=5MiB") ==
          "a 0+0 grow, b 1+0 grow, c 2+0 grow, x oom");
}

TEST_CASE("bfc: garbage collection frees all free regions or none") {
    const std::string fill = "a=2MiB b=4MiB c=6MiB -a -b ";
    WorkedExample pool("bfc", kGrowing + ",garbage_collection:True", 12 * kMiB);
    CHECK(pool.calls(fill + "x=5MiB") == "a 0+0 grow, b 1+0 grow, c 2+0 grow, x 3+0 retry");
    CHECK(pool.segments() == "6 6");
    WorkedExample hopeless("bfc", kGrowing + ",garbage_collection:True", 12 * kMiB);
    CHECK(hopeless.calls(fill + "x=7MiB") == "a 0+0 grow, b 1+0 grow, c 2+0 grow, x oom");
    CHECK(hopeless.segments() == "2 4 6");
}

TEST_CASE("bfc: neighbours merge at once, the best fit with the lowest address is taken") {
    WorkedExample pool("bfc", kWhole, 16 * kMiB);
    CHECK(pool.calls("a=1MiB b=1MiB c=1MiB d=1MiB e=1MiB f=1MiB -a -b -d -f g=512KiB h=2MiB") ==
          "a 0+0 grow, b 0+1048576, c 0+2097152, d 0+3145728, e 0+4194304, f 0+5242880, "
          "g 0+3145728, h 0+0");
}

TEST_CASE("bfc: a free chunk of ONNX Runtime serves only its stream until the stream ends") {
    WorkedExample pool("bfc", kOnnxRuntime, 16 * kMiB);
    CHECK(pool.calls("a=256KiB b@1=256KiB -b c@2=256KiB d@1=200KiB -d") ==
          "a 0+0 grow, b 0+262144, c 0+524288, d 0+262144");
    CHECK(pool.pool->largest_free_bytes({.requested_bytes = 1, .stream = 1}) == 256 * kKiB);
    pool.pool->end_stream(1);
    CHECK(pool.calls("e@2=256KiB") == "e 0+262144");
}

TEST_CASE("bfc: free chunks of ONNX Runtime merge with those of other streams when a stream ends") {
    WorkedExample pool("bfc", kOnnxRuntime, 16 * kMiB);
    pool.calls("a@1=128KiB b@1=256KiB c@1=128KiB -a -b");
    CHECK(pool.layout() == "[- 393216][c 131072][- 524288]");
    pool.calls("-c");
    CHECK(pool.layout() == "[- 524288][- 524288]");
    pool.pool->end_stream(2);
    CHECK(pool.layout() == "[- 524288][- 524288]");
    pool.pool->end_stream(1);
    CHECK(pool.layout() == "[- 1048576]");
    CHECK(pool.pool->releasable_bytes() == kMiB);
}

TEST_CASE("bfc: of the chunks of its stream and of none, a request takes the best fit") {
    WorkedExample pool("bfc", kOnnxRuntime, 16 * kMiB);
    CHECK(pool.calls("a=64KiB b@1=192KiB c=256KiB -a -b x@1=60KiB y@1=190KiB") ==
          "a 0+0 grow, b 0+65536, c 0+262144, x 0+0, y 0+65536");
}

TEST_CASE(
    "bfc: regions of ONNX Runtime double from 1 MiB to 1 GiB, or have the size of a request") {
    WorkedExample doubling("bfc", kOnnxRuntime);
    doubling.calls("a=1MiB b=2MiB c=500MiB d=512MiB e=1GiB f=1GiB g=3GiB");
    CHECK(doubling.segments() == "1 2 512 512 1024 1024 4096");
    WorkedExample limited("bfc", kOnnxRuntime + ",most_doubled:2MiB");
    limited.calls("a=1MiB b=2MiB c=2MiB d=2MiB");
    CHECK(limited.segments() == "1 2 2 2");
    WorkedExample exact("bfc", kOnnxRuntime + ",exact_regions:True");
    exact.calls("a=1MiB b=3MiB c=2MiB");
    CHECK(exact.segments() == "1 3 2");
}

TEST_CASE("bfc: a shrinkage of ONNX Runtime releases free regions except the first") {
    WorkedExample pool("bfc", kOnnxRuntime, 64 * kMiB);
    pool.calls("a=1MiB b=2MiB c=4MiB d=8MiB -a -b -d");
    pool.pool->empty_cache();
    CHECK(pool.segments() == "1 4");
    pool.calls("e=1536KiB");
    CHECK(pool.segments() == "1 4 2");
    WorkedExample exact("bfc", kOnnxRuntime + ",exact_regions:True", 64 * kMiB);
    exact.calls("a=1MiB b=2MiB -a -b");
    exact.pool->empty_cache();
    CHECK(exact.segments().empty());
    WorkedExample others("bfc", kGrowing, 64 * kMiB);
    others.calls("a=1MiB -a");
    others.pool->empty_cache();
    CHECK(others.segments() == "2");
}

TEST_CASE("bfc: ONNX Runtime requests no smaller region than 8 KiB after a refusal") {
    const auto outcome = [](const std::string& config) {
        auto pool = make_pool("bfc", config, std::make_unique<FixedDevice>(kMiB, 4096, 256), {0});
        REQUIRE(pool.ok());
        return (*pool)->allocate({1, 256, 0, 0}).outcome;
    };
    CHECK(outcome(kOnnxRuntime) == Outcome::kOutOfMemory);
    CHECK(outcome(kGrowing) == Outcome::kGrow);
}

TEST_CASE("bfc: settings of ONNX Runtime that contradict each other are refused") {
    const auto message = [](const std::string& config) {
        const auto pool =
            make_pool("bfc", config, std::make_unique<FixedDevice>(kMiB, kMiB, 256), {0});
        return pool.ok() ? "" : pool.error().message;
    };
    CHECK(message("onnxruntime:True") ==
          "pool 'bfc': a pool of ONNX Runtime grows; give preallocate:0");
    CHECK(message(kGrowing + ",first_region:0") ==
          "pool 'bfc': first_region, most_doubled and region_after_shrink are at least 1 byte");
}

TEST_CASE("bfc: a partitioned pool serves requests from both ends") {
    WorkedExample pool("bfc", k_partitioned, 16 * kMiB);
    pool.calls("a=1MiB x^=1MiB b=2MiB y^=2MiB");
    CHECK(pool.layout() == "[a 1048576][b 2097152][- 10485760][y 2097152][x 1048576]");
}

TEST_CASE("bfc: an end of a partitioned pool does not use the holes of the other end") {
    WorkedExample pool("bfc", k_partitioned, 16 * kMiB);
    // The hole of x is at the upper end, and the gap has 10 MiB.
    CHECK(pool.calls("x^=4MiB y^=1MiB a=1MiB -x b=4MiB c=7MiB") ==
          "x 0+12582912 grow, y 0+11534336, a 0+0, b 0+1048576, c oom");
    CHECK(pool.pool->largest_free_bytes({.requested_bytes = 1}) == 6 * kMiB);
    CHECK(pool.pool->largest_free_bytes({.requested_bytes = 1, .upper_end = true}) == 6 * kMiB);
    CHECK(pool.calls("z^=4MiB") == "z 0+12582912");
}

TEST_CASE("bfc: what is freed beside the gap of a partitioned pool becomes a part of it") {
    WorkedExample pool("bfc", k_partitioned, 16 * kMiB);
    pool.calls("a=2MiB b=2MiB x^=2MiB y^=2MiB");
    pool.calls("-a");  // not beside the gap
    CHECK(pool.calls("z^=9MiB") == "z oom");
    pool.calls("-b");  // a and b are part of the gap now
    CHECK(pool.calls("z^=12MiB") == "z 0+0");
}

TEST_CASE("bfc: if the gap is used up, free blocks of both ends form a new one") {
    WorkedExample pool("bfc", k_partitioned, 16 * kMiB);
    pool.calls("a=8MiB x^=8MiB -a -x");
    CHECK(pool.layout() == "[- 16777216]");
    CHECK(pool.calls("b=16MiB") == "b 0+0");
}

TEST_CASE("bfc: the lower end splits exactly, the upper end only if enough is left") {
    WorkedExample lower("bfc", k_partitioned, 16 * kMiB);
    lower.calls("a=2MiB b=1MiB -a c=1536KiB");
    CHECK(lower.layout() == "[c 1572864][- 524288][b 1048576][- 13631488]");
    WorkedExample upper("bfc", k_partitioned, 16 * kMiB);
    upper.calls("x^=2MiB y^=1MiB -x z^=1536KiB");
    CHECK(upper.layout() == "[- 13631488][y 1048576][z 2097152]");
    // The same rule holds for the gap: less than twice the request is not split.
    upper.calls("w^=8MiB");
    CHECK(upper.layout() == "[w 13631488][y 1048576][z 2097152]");
}

TEST_CASE("bfc: of equal holes the lower end takes the lowest, the upper end the highest") {
    WorkedExample lower("bfc", k_partitioned, 16 * kMiB);
    CHECK(lower.calls("a=1MiB b=1MiB c=1MiB d=1MiB -a -c e=1MiB").ends_with("e 0+0"));
    WorkedExample upper("bfc", k_partitioned, 16 * kMiB);
    CHECK(upper.calls("a^=1MiB b^=1MiB c^=1MiB d^=1MiB -a -c e^=1MiB").ends_with("e 0+15728640"));
}

TEST_CASE("bfc keeps the rules of all pools under its settings") {
    check_conformance("bfc", k_partitioned);
    check_conformance("bfc", kGrowing);
    check_conformance("bfc", kGrowing + ",garbage_collection:True");
    check_conformance("bfc", "preallocate:0.9,fragmentation_fraction:0.05");
}

TEST_CASE("bfc: contradictory settings are refused") {
    for (const char* config : {"preallocate:0.5,limit:0.75",
                               "preallocate:1.5",
                               "limit:x",
                               "preallocate:0,partitioned:True",
                               "garbage_collection:1",
                               "limit",
                               "growth:True"}) {
        CHECK_FALSE(make_pool("bfc", config, std::make_unique<FixedDevice>(kGiB, kGiB, 512)).ok());
    }
}

}  // namespace
}  // namespace fragtrace::analyzer
