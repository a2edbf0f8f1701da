// Rules for special cases: limits, rejections, private pools, differences between releases,
// relaxations.
#include "tests/unit/pools/pool_driver.h"

namespace fragtrace::analyzer {
namespace {

TEST_CASE("the process's own limit refuses a request before cudaMalloc is called") {
    PoolDriver driver("per_process_memory_fraction:0.5", mib(100));
    CHECK(driver.allocate("A", mib(50)).outcome == Outcome::kGrow);
    driver.driver_calls();
    CHECK(driver.allocate("B", mib(10)).outcome == Outcome::kOutOfMemory);
    CHECK(driver.driver_calls().empty());
    CHECK(driver.pool.statistics().retries == 1);
    driver.pool.set_memory_fraction(1.0);
    CHECK(driver.allocate("B", mib(10)).outcome == Outcome::kGrow);
}

TEST_CASE("throw_on_cudamalloc_oom rejects before anything is released") {
    PoolDriver driver("throw_on_cudamalloc_oom:True", mib(100));
    driver.allocate("A", mib(60));
    driver.release("A");
    CHECK(driver.allocate("B", mib(70)).outcome == Outcome::kRejected);
    CHECK(driver.pool.statistics().reserved.current == mib(60));
    CHECK(driver.pool.pytorch_statistics().num_oom_rejections == 1);
    CHECK(driver.pool.statistics().ooms == 0);
}

TEST_CASE("free blocks serve only their own stream") {
    PoolDriver driver;
    driver.allocate("A", mib(30), 0);
    driver.release("A");
    CHECK(driver.allocate("B", mib(30), 1).outcome == Outcome::kGrow);
    CHECK(driver.pool.largest_free_bytes({1, mib(30), 0, 0}) == mib(30));
    CHECK(driver.pool.largest_free_bytes({1, mib(30), 1, 0}) == 0);
    CHECK(driver.pool.largest_free_bytes({1, mib(30), 3, 0}) == 0);
}

TEST_CASE("cached segments are released in the order of raw stream handles") {
    PoolDriver driver("", 64 * kGiB, {900, 0, 500});
    driver.allocate("A", mib(30), 0);
    driver.allocate("B", mib(40), 1);
    driver.allocate("C", mib(50), 2);
    for (const char* name : {"A", "B", "C"}) {
        driver.release(name);
    }
    driver.driver_calls();
    driver.pool.empty_cache();
    CHECK(driver.driver_calls() == Lines{"-41943040", "-52428800", "-31457280"});
}

TEST_CASE("before 2.13 the lower address is taken among equal blocks") {
    PoolDriver driver("", 64 * kGiB, {0}, PytorchRules::for_version(2, 12));
    driver.allocate("X", mib(30));
    driver.allocate("P", mib(30));
    driver.release("X");
    driver.pool.empty_cache();
    driver.allocate("Q", mib(30));
    driver.release("P");
    driver.release("Q");
    driver.allocate("R", mib(30));
    CHECK(driver.layout() == Lines{"[R 31457280]", "[- 31457280]"});
}

TEST_CASE("a pool with no_split allocates whole blocks") {
    PoolDriver driver;
    driver.pool.set_private_pool(3, {.no_split = true});
    driver.allocate("A", 1000, 0, 3);
    CHECK(driver.layout() == Lines{"[A 2097152]"});
}

TEST_CASE("a use_on_oom pool serves a request that the driver refuses") {
    PoolDriver driver("", mib(100));
    driver.pool.set_private_pool(3, {.use_on_oom = true});
    driver.allocate("A", mib(60), 0, 3);
    driver.release("A");
    driver.driver_calls();
    CHECK(driver.allocate("B", mib(50)).outcome == Outcome::kRetryOk);
    CHECK(driver.driver_calls() == Lines{"+52428800!"});
    CHECK(driver.layout() == Lines{"[B 52428800][- 10485760]"});
}

TEST_CASE("before 2.10 a use_on_oom pool serves only after every other attempt failed") {
    PoolDriver driver("", mib(100), {0}, PytorchRules::for_version(2, 9));
    driver.pool.set_private_pool(3, {.use_on_oom = true});
    driver.allocate("A", mib(60), 0, 3);
    driver.release("A");
    driver.allocate("C", mib(20));
    driver.release("C");
    driver.driver_calls();
    driver.allocate("B", mib(50));
    CHECK(driver.driver_calls() == Lines{"+52428800!", "-20971520", "+52428800!"});
    CHECK(driver.layout() == Lines{"[B 52428800][- 10485760]"});
}

TEST_CASE("during a capture no events are checked, nothing is released or retried") {
    PoolDriver driver("", mib(100));
    driver.allocate("A", mib(30));
    driver.allocate("B", mib(30));
    driver.release("B");
    driver.pool.set_capturing(true);
    driver.release("A", {{1, 1}});
    driver.pool.complete(1);
    CHECK(driver.allocate("C", mib(60)).outcome == Outcome::kOutOfMemory);
    CHECK(driver.pool.statistics().reserved.current == mib(60));
    driver.pool.set_capturing(false);
    CHECK(driver.layout() == Lines{"[A? 31457280]", "[- 31457280]"});
    CHECK(driver.allocate("C", mib(60)).outcome == Outcome::kRetryOk);
}

TEST_CASE("since 2.13 the bytes of a memory fraction are rounded to nearest") {
    // 0.7 times 700 MiB is 490 MiB minus the rounding error of the product.
    for (const int minor : {12, 13}) {
        PoolDriver driver("", mib(700), {0}, PytorchRules::for_version(2, minor));
        driver.pool.set_memory_fraction(0.7);
        CHECK(driver.allocate("A", mib(490)).outcome ==
              (minor == 13 ? Outcome::kGrow : Outcome::kOutOfMemory));
    }
}

TEST_CASE("throw_on_cudamalloc_oom compares with the unrounded bytes of the fraction") {
    PoolDriver driver("throw_on_cudamalloc_oom:True,per_process_memory_fraction:0.7", mib(700));
    CHECK(driver.allocate("A", mib(490)).outcome == Outcome::kRejected);
    CHECK(driver.allocate("B", mib(488)).outcome == Outcome::kGrow);
}

TEST_CASE("unknown and pending blocks cannot be freed") {
    PoolDriver driver;
    CHECK_FALSE(driver.pool.release(1, {}));
    driver.allocate("A", 10);
    driver.release("A", {{1, 1}});
    CHECK_FALSE(driver.pool.release(100, {}));
    CHECK(driver.pool.find(100).has_value());
    driver.pool.empty_cache();
    CHECK_FALSE(driver.pool.find(100).has_value());
    CHECK(driver.pool.statistics().reserved.current == 0);
}

TEST_CASE("changes to a clone do not affect the original") {
    PoolDriver driver("", mib(100));
    driver.allocate("A", mib(30));
    const std::unique_ptr<Pool> copy = driver.pool.clone();
    CHECK(copy->release(100, {}));
    copy->empty_cache();
    CHECK(copy->device().free_bytes() == mib(100));
    CHECK(driver.pool.device().free_bytes() == mib(70));
    CHECK(driver.layout() == Lines{"[A 31457280]"});
}

TEST_CASE("each relaxation serves exactly the requests it is meant for") {
    const auto serves = [](const Pool& pool, const Request& request, Relaxation relaxation) {
        const std::unique_ptr<Pool> trial = pool.clone();
        CHECK(trial->relax(relaxation));
        const Outcome outcome = trial->allocate(request).outcome;
        return outcome == Outcome::kHit || outcome == Outcome::kGrow;
    };
    const auto only = [&](const Pool& pool, const Request& request, Relaxation wanted) {
        for (const Relaxation relaxation : {Relaxation::kPendingComplete,
                                            Relaxation::kReleaseFree,
                                            Relaxation::kExactSegmentSize,
                                            Relaxation::kNoLimit,
                                            Relaxation::kOneStream,
                                            Relaxation::kOnePool}) {
            INFO(static_cast<int>(relaxation));
            CHECK(serves(pool, request, relaxation) == (relaxation == wanted));
        }
    };
    SECTION("pending events") {
        PoolDriver driver("", mib(100));
        driver.allocate("A", mib(90));
        driver.release("A", {{1, 1}});
        only(driver.pool, {1, mib(50), 0, 0}, Relaxation::kPendingComplete);
    }
    SECTION("free segments") {
        PoolDriver driver("", mib(100));
        driver.allocate("A", mib(40));
        driver.allocate("B", mib(40));
        driver.release("A");
        driver.release("B");
        only(driver.pool, {1, mib(50), 0, 0}, Relaxation::kReleaseFree);
    }
    SECTION("segment size") {
        PoolDriver driver("", mib(100));
        driver.allocate("A", mib(90));
        only(driver.pool, {1, mib(5), 0, 0}, Relaxation::kExactSegmentSize);
    }
    SECTION("limit") {
        PoolDriver driver("per_process_memory_fraction:0.5", mib(100));
        driver.allocate("A", mib(50));
        only(driver.pool, {1, mib(20), 0, 0}, Relaxation::kNoLimit);
    }
    SECTION("streams") {
        PoolDriver driver("", mib(100));
        driver.allocate("A", mib(40), 1);
        driver.allocate("B", mib(40), 1);
        driver.allocate("C", mib(20), 1);
        driver.release("A");
        driver.allocate("D", mib(5), 1);
        only(driver.pool, {1, mib(30), 0, 0}, Relaxation::kOneStream);
    }
    SECTION("pools") {
        PoolDriver driver("", mib(100));
        driver.allocate("A", mib(40), 0, 5);
        driver.allocate("B", mib(60));
        driver.release("A");
        driver.allocate("C", mib(5), 0, 5);
        only(driver.pool, {1, mib(30), 0, 0}, Relaxation::kOnePool);
        driver.pool.set_private_pool(5, {.graph = true});
        CHECK_FALSE(serves(driver.pool, {1, mib(30), 0, 0}, Relaxation::kOnePool));
    }
    SECTION("pools, and the freed memory of a merged pool stays accounted for") {
        PoolDriver driver("", mib(100));
        driver.allocate("A", mib(40), 0, 5);
        driver.release("A");
        driver.allocate("B", 100);
        CHECK(driver.pool.relax(Relaxation::kOnePool));
        driver.release("B");
        driver.pool.empty_cache();
        CHECK(driver.pool.statistics().reserved.current == 0);
        CHECK(driver.pool.device().free_bytes() == mib(100));
    }
}

TEST_CASE("a request within a capture releases nothing, in any pool") {
    const bool in_capture = GENERATE(true, false);
    const std::uint32_t private_pool = GENERATE(0u, 5u, 6u);
    PoolDriver driver("", mib(100));
    driver.pool.set_private_pool(5, {.graph = true});
    driver.allocate("cached", mib(60));
    driver.release("cached");
    const AllocateResult served = driver.pool.allocate({1, mib(70), 0, private_pool, in_capture});
    CHECK(served.outcome == (in_capture ? Outcome::kOutOfMemory : Outcome::kRetryOk));
    CHECK(driver.pool.statistics().reserved.current == mib(in_capture ? 60 : 70));
    CHECK(driver.pool.statistics().segments_freed == (in_capture ? 0 : 1));
    CHECK(driver.pool.statistics().retries == (in_capture ? 0 : 1));
}

}  // namespace
}  // namespace fragtrace::analyzer
