// Garbage collection: when it starts, which blocks it releases, and when it stops.
#include "tests/unit/pools/pool_driver.h"

namespace fragtrace::analyzer {
namespace {

// The limit is half of 800 MiB.
PoolDriver collecting(const std::string& threshold) {
    return PoolDriver(
        "garbage_collection_threshold:" + threshold + ",per_process_memory_fraction:0.5", mib(800));
}

// Requests that are served from the split segment of "kept". Each one makes all cached blocks one
// search older.
void search(PoolDriver* driver, int times) {
    for (int i = 0; i < times; ++i) {
        REQUIRE(driver->allocate("searched", mib(4)).outcome == Outcome::kHit);
        driver->release("searched");
    }
}

// At the next request the cached blocks are 11, 5 and 2 searches old: 6 on average.
void cache_three(PoolDriver* driver) {
    driver->allocate("kept", mib(2));
    for (const auto& [name, size] :
         {std::pair("A", 100), std::pair("B", 110), std::pair("C", 120)}) {
        driver->allocate(name, mib(size));
    }
    driver->release("A");
    search(driver, 6);
    driver->release("B");
    search(driver, 3);
    driver->release("C");
    search(driver, 1);
    driver->driver_calls();
}

TEST_CASE("garbage is collected above the threshold, not exactly at it") {
    for (const int size : {200, 202}) {
        CAPTURE(size);
        PoolDriver driver = collecting("0.5");
        driver.allocate("A", mib(size));
        driver.release("A");
        driver.driver_calls();
        driver.allocate("B", 1000);
        CHECK(driver.driver_calls() ==
              (size == 200 ? Lines{"+2097152"} : Lines{"-211812352", "+2097152"}));
    }
}

TEST_CASE("only blocks of at least average age are released, no more than needed") {
    PoolDriver driver = collecting("0.7");
    cache_three(&driver);  // 350 MiB, the threshold is 280 MiB
    CHECK(driver.allocate("D", mib(130)).outcome == Outcome::kGrow);
    CHECK(driver.driver_calls() == Lines{"-104857600", "+136314880"});
}

TEST_CASE("if that is not enough, the average age of the remaining blocks counts") {
    PoolDriver driver = collecting("0.5");
    cache_three(&driver);  // 350 MiB, the threshold is 200 MiB
    CHECK(driver.allocate("D", mib(130)).outcome == Outcome::kGrow);
    CHECK(driver.driver_calls() == Lines{"-104857600", "-115343360", "+136314880"});
}

TEST_CASE("blocks of equal age all count as average") {
    PoolDriver driver = collecting("0.5");
    driver.allocate("A", mib(100));
    driver.allocate("B", mib(110));
    driver.release("A");
    driver.release("B");
    driver.driver_calls();
    driver.allocate("D", mib(130));
    CHECK(driver.driver_calls() == Lines{"-104857600", "-115343360", "+136314880"});
}

TEST_CASE("a block that is used again becomes young") {
    PoolDriver driver = collecting("0.5");
    cache_three(&driver);
    driver.allocate("A", mib(100));
    driver.release("A");
    driver.driver_calls();
    driver.allocate("D", mib(130));  // now B is the oldest block, then C
    CHECK(driver.driver_calls() == Lines{"-115343360", "-125829120", "+136314880"});
}

}  // namespace
}  // namespace fragtrace::analyzer
