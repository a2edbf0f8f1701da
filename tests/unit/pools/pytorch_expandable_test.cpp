// Expandable segments: mapping, unmapping, and failures in the middle of a request.
#include "tests/unit/pools/pool_driver.h"

namespace fragtrace::analyzer {
namespace {

TEST_CASE("an expandable segment grows and shrinks by pages") {
    PoolDriver driver("expandable_segments:True", mib(1000));
    driver.allocate("A", mib(30));
    driver.allocate("B", mib(30));
    driver.allocate("C", mib(30));
    CHECK(driver.driver_calls() == Lines{"map 41943040", "map 20971520", "map 41943040"});
    driver.release("B");
    driver.allocate("D", mib(45));
    CHECK(driver.driver_calls() == Lines{"map 41943040"});
    CHECK(driver.layout() == Lines{"[A 31457280][- 31457280][C 31457280][D 47185920][- 5242880]"});
    driver.release("A");
    driver.release("D");
    CHECK(driver.pool.releasable_bytes() == mib(100));
    driver.pool.empty_cache();
    CHECK(driver.driver_calls() == Lines{"unmap 41943040", "unmap 62914560"});
    CHECK(driver.layout() == Lines{"[C 31457280][- 10485760]"});
    const AllocateResult grown = driver.allocate("E", mib(70));
    CHECK(driver.driver_calls() == Lines{"map 62914560"});
    CHECK(grown.placement.offset_bytes == mib(90));
    CHECK(grown.placement.block_bytes == mib(70));
    CHECK(grown.placement.segment == 0);
    CHECK(driver.pool.statistics().segments_allocated == 5);
    CHECK(driver.pool.pytorch_statistics().segment.all.allocated == 0);
    CHECK(driver.pool.pytorch_statistics().inactive_split.all.allocated == 0);
}

TEST_CASE("a map request that fails halfway unmaps its pages again") {
    PoolDriver driver("expandable_segments:True", mib(70));
    driver.allocate("A", mib(15));
    driver.driver_calls();
    // 75 MiB more need 4 pages after the tail of 5 MiB. Only two of them are available.
    CHECK(driver.allocate("B", mib(80)).outcome == Outcome::kOutOfMemory);
    CHECK(driver.pool.device().free_bytes() == mib(50));
    CHECK(driver.layout() == Lines{"[A 15728640][- 5242880]"});
    CHECK(driver.allocate("C", mib(45)).outcome == Outcome::kGrow);
}

TEST_CASE("an address range without pages is freed") {
    PoolDriver driver("expandable_segments:True", mib(1000));
    driver.allocate("A", mib(40));
    driver.release("A");
    driver.pool.empty_cache();
    CHECK(driver.layout().empty());
    CHECK(driver.pool.statistics().reserved.current == 0);
    CHECK(driver.allocate("B", mib(40)).placement.segment == 1);
}

TEST_CASE("a request beyond the address range fails") {
    PoolDriver driver("expandable_segments:True,expandable_segments_reserve:0.1", mib(1000));
    CHECK(driver.allocate("A", mib(100)).outcome == Outcome::kGrow);
    CHECK(driver.allocate("B", mib(101)).outcome == Outcome::kOutOfMemory);
    CHECK(driver.allocate("C", mib(100)).placement.segment == 3);  // B used 1 and 2
}

TEST_CASE("small blocks map pages of 2 MiB, and are split down to 512 bytes") {
    PoolDriver driver("expandable_segments:True", mib(1000));
    driver.allocate("A", 1000);
    driver.allocate("B", mib(20) - 512);
    CHECK(driver.driver_calls() == Lines{"map 2097152", "map 20971520"});
    CHECK(driver.layout() == Lines{"[A 1024][- 2096128]", "[B 20971008][- 512]"});
}

TEST_CASE("streams do not share expandable segments") {
    PoolDriver driver("expandable_segments:True", mib(1000));
    driver.allocate("A", mib(10), 0);
    driver.allocate("B", mib(10), 1);
    CHECK(driver.pool.find(101)->segment == 1);
    driver.release("A");
    CHECK(driver.allocate("C", mib(5), 1).placement.segment == 1);
}

}  // namespace
}  // namespace fragtrace::analyzer
