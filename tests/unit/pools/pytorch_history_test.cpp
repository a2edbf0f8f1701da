// Rules that were found by running random scripts through PyTorch's own allocators (docs/pools.md).
#include "tests/unit/pools/pool_driver.h"

namespace fragtrace::analyzer {
namespace {

TEST_CASE("part of a segment is not freed as oversized after max_split_size was lowered") {
    PoolDriver driver("", mib(60));
    driver.allocate("A", mib(30));
    driver.allocate("B", mib(2));
    driver.release("A");
    driver.allocate("C", mib(5));  // the 30 MiB have their own segment, B's segment is another one
    driver.release("C");
    REQUIRE(driver.pool.change_settings("max_split_size_mb:20"));
    driver.driver_calls();
    driver.allocate("D", mib(25));
    CHECK(driver.allocate("E", mib(40)).outcome == Outcome::kOutOfMemory);
    CHECK(driver.pool.statistics().reserved.current == mib(50));
}

TEST_CASE("split blocks stay when max_split_size falls below their size") {
    PoolDriver driver("", mib(60));
    driver.allocate("A", mib(33));
    driver.allocate("whole", mib(20));
    driver.release("A");
    driver.allocate("B", mib(2));
    REQUIRE(driver.pool.change_settings("max_split_size_mb:21"));
    driver.driver_calls();
    CHECK(driver.allocate("C", mib(35)).outcome == Outcome::kOutOfMemory);
    for (const std::string& call : driver.driver_calls()) {
        CHECK(call != "-32505856");  // 31 MiB: the rest of A's segment behind B
    }
}

TEST_CASE("emptying a private pool that is in use does nothing and does not wait") {
    PoolDriver driver;
    driver.pool.set_private_pool(3, {});
    driver.allocate("A", mib(30), 0, 3);
    driver.release("A");
    driver.pool.empty_private_pool(3);
    CHECK(driver.layout() == Lines{"[- 31457280]"});
    CHECK(driver.pool.pytorch_statistics().num_sync_all_streams == 0);
}

TEST_CASE("emptying a private pool waits for its own blocks only") {
    PoolDriver driver;
    driver.pool.set_private_pool(3, {});
    driver.allocate("A", mib(30));
    driver.allocate("B", mib(40), 0, 3);
    driver.release("A", {{1, 1}});
    driver.release("B", {{2, 1}});
    driver.pool.set_private_pool(3, {.freeable = true});
    driver.pool.empty_private_pool(3);
    CHECK(driver.layout() == Lines{"[A? 31457280]"});
    driver.pool.complete(1);
    CHECK(driver.allocate("C", mib(30)).outcome == Outcome::kHit);
}

TEST_CASE("throw_on_cudamalloc_oom uses the fraction of the settings, not one set later") {
    PoolDriver driver("throw_on_cudamalloc_oom:True,per_process_memory_fraction:0.3", mib(256));
    driver.allocate("A", mib(72));
    driver.pool.set_memory_fraction(1.0);
    CHECK(driver.allocate("B", mib(12)).outcome == Outcome::kRejected);
}

TEST_CASE("a rejection at the retry does not count as an OOM") {
    PoolDriver driver("throw_on_cudamalloc_oom:True,per_process_memory_fraction:0.5", mib(256));
    driver.allocate("A", mib(100));
    driver.allocate("B", mib(20));
    driver.pool.set_memory_fraction(0.48);  // C fails, B's segment is released
    driver.release("B");
    CHECK(driver.allocate("C", mib(30)).outcome == Outcome::kOutOfMemory);
    REQUIRE(driver.pool.change_settings("per_process_memory_fraction:0.4"));
    driver.pool.set_memory_fraction(0.5);
    CHECK(driver.allocate("D", mib(20)).outcome == Outcome::kRejected);
    CHECK(driver.pool.pytorch_statistics().num_ooms == 1);
}

TEST_CASE("among several reservations the lowest address is filled first") {
    PoolDriver driver("expandable_segments:True", mib(512));
    driver.pool.set_address_order(AddressOrder::kDescending);
    driver.allocate("A", mib(80));
    CHECK(driver.allocate("B", mib(512)).outcome == Outcome::kOutOfMemory);
    driver.allocate("C", mib(20));
    CHECK(driver.layout() == Lines{"[C 20971520]", "[A 83886080]"});
}

TEST_CASE("before 2.15 a reservation too small for a request stays") {
    for (const int minor : {13, 15}) {
        PoolDriver driver(
            "expandable_segments:True", mib(100), {0}, PytorchRules::for_version(2, minor));
        CHECK(driver.allocate("A", mib(200)).outcome == Outcome::kOutOfMemory);
        driver.allocate("B", mib(20));
        const Placement place = *driver.pool.find(101);
        CHECK(place.segment == (minor == 13 ? 0 : 2));
    }
}

TEST_CASE("before 2.4 roundup_power2_divisions:1 rounds nothing") {
    PoolDriver old("roundup_power2_divisions:1", kGiB, {0}, PytorchRules::for_version(2, 1));
    CHECK(old.pool.rounded_bytes(22634) == 22634);
    CHECK(old.pool.rounded_bytes(100) == 512);
    PoolDriver driver("roundup_power2_divisions:1", kGiB, {0}, PytorchRules::for_version(2, 4));
    CHECK(driver.pool.rounded_bytes(22634) == 23040);
    // In these releases the best fit is decided on the unrounded size.
    old.allocate("A", 22634);
    old.allocate("B", 1000);
    old.release("A");
    old.allocate("C", 22635);
    CHECK(old.layout() == Lines{"[- 22634][B 1000][C 22635][- 2050883]"});
}

TEST_CASE("before 2.10 a memory fraction of 1 is a limit, so garbage is collected") {
    for (const int minor : {9, 10}) {
        PoolDriver driver(
            "garbage_collection_threshold:0.5", mib(200), {0}, PytorchRules::for_version(2, minor));
        driver.pool.set_memory_fraction(1.0);
        driver.allocate("A", mib(120));
        driver.release("A");
        driver.allocate("B", 1000);
        CHECK(driver.pool.pytorch_statistics().num_device_free == (minor == 9 ? 1 : 0));
    }
}

TEST_CASE("a free deferred by a capture waits after frees that came later") {
    PoolDriver driver;
    driver.allocate("A", mib(30));
    driver.allocate("B", mib(40));
    driver.pool.set_capturing(true);
    driver.release("A", {{1, 1}});
    driver.pool.set_capturing(false);
    driver.release("B", {{2, 1}});
    driver.pool.complete(1);
    driver.allocate("C", mib(30), 2);  // checks the events and finds B first, which is not complete
    CHECK(driver.layout() == Lines{"[A? 31457280]", "[B? 41943040]", "[C 31457280]"});
    driver.pool.complete(2);
    driver.allocate("D", mib(30), 2);
    CHECK(driver.layout()[0] == "[- 31457280]");
}

TEST_CASE("the peak of oversize blocks stays when their count falls below zero") {
    PoolDriver driver("max_split_size_mb:100", kGiB);
    driver.allocate("A", mib(50));
    REQUIRE(driver.pool.change_settings("max_split_size_mb:40"));
    driver.release("A");
    CHECK(static_cast<std::int64_t>(
              driver.pool.pytorch_statistics().oversize_allocations.current) == -1);
    driver.allocate("B", mib(60));
    CHECK(driver.pool.pytorch_statistics().oversize_allocations.peak == 0);
}

TEST_CASE("blocks from a use_on_oom pool are split as without expandable segments") {
    PoolDriver driver("", mib(20));
    driver.pool.set_private_pool(3, {.use_on_oom = true});
    driver.allocate("A", mib(19), 0, 3);
    driver.allocate("rest", 300000, 1, 3);
    REQUIRE(driver.pool.change_settings("expandable_segments:True"));
    driver.release("A");
    CHECK(driver.allocate("B", mib(19) + 1024).outcome == Outcome::kRetryOk);
    CHECK(driver.layout()[0] == "[B 20971520]");
}

TEST_CASE("before 2.10 max_non_split_rounding_mb stays if new settings do not name it") {
    for (const int minor : {6, 10}) {
        const PytorchRules rules = PytorchRules::for_version(2, minor);
        const auto first = parse_pytorch_config("max_non_split_rounding_mb:50", rules);
        REQUIRE(first.ok());
        const auto second = change_pytorch_config(*first, "max_split_size_mb:40", rules);
        REQUIRE(second.ok());
        CHECK(second->max_non_split_rounding_bytes == mib(minor == 6 ? 50 : 20));
    }
}

TEST_CASE("before 2.10 a use_on_oom pool also serves from expandable segments") {
    for (const int minor : {9, 10}) {
        PoolDriver driver(
            "expandable_segments:True", mib(40), {0}, PytorchRules::for_version(2, minor));
        driver.pool.set_private_pool(3, {.use_on_oom = true});
        driver.allocate("A", mib(30), 0, 3);
        driver.release("A");
        CHECK(driver.allocate("B", mib(20)).outcome ==
              (minor == 9 ? Outcome::kRetryOk : Outcome::kOutOfMemory));
    }
}

TEST_CASE("before 2.6 private pools have no expandable segments") {
    for (const int minor : {4, 6}) {
        PoolDriver driver(
            "expandable_segments:True", kGiB, {0}, PytorchRules::for_version(2, minor));
        driver.allocate("A", mib(22), 0, 3);
        CHECK(driver.driver_calls() == Lines{minor == 4 ? "+23068672" : "map 41943040"});
    }
}

TEST_CASE("the history has the same entries as PyTorch's own") {
    PoolDriver driver;
    std::vector<PytorchTraceEntry> history;
    driver.pool.write_history(&history);
    driver.allocate("A", 1000);
    driver.release("A");
    driver.pool.empty_cache();
    using Action = PytorchTraceEntry::Action;
    const Action expected[] = {Action::kSegmentAlloc,
                               Action::kAlloc,
                               Action::kFreeRequested,
                               Action::kFreeCompleted,
                               Action::kSegmentFree};
    REQUIRE(history.size() == std::size(expected));
    for (std::size_t i = 0; i < history.size(); ++i) {
        CHECK(history[i].action == expected[i]);
        CHECK(history[i].address == history[0].address);
    }
    CHECK(history[0].size_bytes == mib(2));
    CHECK(history[1].size_bytes == 1000);
}

}  // namespace
}  // namespace fragtrace::analyzer
