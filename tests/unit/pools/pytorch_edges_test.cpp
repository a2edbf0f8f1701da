// Edge cases of the pool's rules: sizes that are exactly at a limit, and pools that are used again.
#include "tests/unit/pools/pool_driver.h"

namespace fragtrace::analyzer {
namespace {

TEST_CASE("a block of exactly max_split_size serves only requests of that size") {
    PoolDriver driver("max_split_size_mb:20");
    driver.allocate("A", mib(20));
    driver.release("A");
    CHECK(driver.allocate("B", mib(19)).outcome == Outcome::kGrow);
    CHECK(driver.allocate("C", mib(20)).outcome == Outcome::kHit);
}

TEST_CASE("a request of 1 MiB is small, a request of one byte more is large") {
    PoolDriver driver("expandable_segments:True");
    driver.allocate("A", mib(1));
    driver.allocate("B", mib(1) + 1);
    CHECK(driver.driver_calls() == Lines{"map 2097152", "map 20971520"});
    CHECK(driver.pool.page_bytes(mib(1)) == mib(2));
    CHECK(driver.pool.page_bytes(mib(1) + 512) == mib(20));
}

TEST_CASE("cached blocks are released and the driver retried, even if they are too small") {
    PoolDriver driver("max_split_size_mb:20", mib(100));
    driver.allocate("A", mib(30));
    driver.allocate("B", mib(70));
    driver.release("A");
    driver.driver_calls();
    CHECK(driver.allocate("C", mib(60)).outcome == Outcome::kOutOfMemory);
    CHECK(driver.driver_calls() == Lines{"+62914560!", "-31457280", "+62914560!"});
}

TEST_CASE("a private pool that was dropped and emptied can be used and emptied again") {
    PoolDriver driver;
    for (int round = 0; round < 2; ++round) {
        CAPTURE(round);
        driver.pool.set_private_pool(3, {});
        driver.allocate("A", mib(30), 0, 3);
        driver.release("A");
        driver.pool.set_private_pool(3, {.freeable = true});
        driver.pool.empty_cache();
        CHECK(driver.pool.statistics().reserved.current == 0);
    }
}

TEST_CASE("adopted memory counts against the limit, and adopted private pools can be emptied") {
    PoolDriver before;
    before.allocate("A", mib(40));
    before.allocate("B", mib(4), 0, 3);
    before.release("B");
    PoolDriver driver("per_process_memory_fraction:0.7", mib(100));
    REQUIRE(driver.pool.adopt(before.pool.snapshot()));  // 60 of 70 MiB are reserved
    CHECK(driver.pool.allocate({1, mib(12), 0, 0}).outcome == Outcome::kOutOfMemory);
    CHECK(driver.pool.allocate({2, mib(10), 0, 0}).outcome == Outcome::kGrow);
    driver.pool.set_private_pool(3, {.freeable = true});
    driver.pool.empty_cache();
    CHECK_FALSE(driver.pool.statistics().pool_lost);
    CHECK(driver.pool.statistics().reserved.current == mib(50));
}

TEST_CASE("a large request does not release a cached block of a segment in use") {
    PoolDriver driver("", mib(110));
    driver.allocate("A", mib(100));
    driver.release("A");
    driver.allocate("B", mib(30));
    REQUIRE(driver.pool.change_settings("max_split_size_mb:20"));
    driver.driver_calls();
    CHECK(driver.allocate("C", mib(40)).outcome == Outcome::kOutOfMemory);
    CHECK(driver.driver_calls() == Lines{"+41943040!", "+41943040!"});
    CHECK(driver.layout() == Lines{"[B 31457280][- 73400320]"});
}

TEST_CASE("a block freed after its event completed is reusable at once") {
    PoolDriver driver("", mib(100));
    driver.allocate("A", mib(30));
    driver.allocate("B", mib(30));
    driver.release("A", {{5, 1}, {1, 1}});
    driver.pool.complete(1);
    driver.allocate("C", 512);  // sees that event 5 is not complete
    driver.release("B", {{1, 2}});
    CHECK(driver.allocate("D", mib(30)).outcome == Outcome::kHit);
}

TEST_CASE("a block can be placed at the very end of a free block") {
    PoolDriver driver;
    driver.allocate("A", mib(4));
    driver.release("A");
    CHECK_FALSE(driver.pool.allocate_at({1, mib(4), 0, 0}, {0, mib(16) + 512, mib(4)}));
    CHECK(driver.pool.allocate_at({1, mib(4), 0, 0}, {0, mib(16), mib(4)}));
    CHECK(driver.pool.find(1)->offset_bytes == mib(16));
}

TEST_CASE("block ages count only while garbage collection is switched on") {
    PoolDriver driver("per_process_memory_fraction:0.5", mib(800));
    driver.allocate("kept", mib(2));
    driver.allocate("A", mib(100));
    driver.allocate("B", mib(110));
    driver.release("A");
    for (int i = 0; i < 5; ++i) {
        driver.allocate("searched", mib(4));
        driver.release("searched");
    }
    driver.release("B");
    REQUIRE(driver.pool.change_settings(
        "garbage_collection_threshold:0.5,per_process_memory_fraction:0.5"));
    driver.driver_calls();
    driver.allocate("D", mib(120));  // both blocks have the same age
    CHECK(driver.driver_calls() == Lines{"-104857600", "-115343360", "+125829120"});

    driver.allocate("E", mib(100));
    driver.release("E");
    driver.driver_calls();
    REQUIRE(driver.pool.change_settings("per_process_memory_fraction:0.5"));
    driver.allocate("F", mib(110));
    CHECK(driver.driver_calls() == Lines{"+115343360"});
}

}  // namespace
}  // namespace fragtrace::analyzer
