// Scenarios that were run with PyTorch 2.15 itself: the layouts, driver calls and statistics are
// PyTorch's.
#include "tests/unit/pools/pool_driver.h"

namespace fragtrace::analyzer {
namespace {

TEST_CASE("the size class decides the size of the cudaMalloc") {
    PoolDriver driver;
    int name = 'A';
    for (const std::uint64_t size : {1048576, 1048577, 10485759, 10485760, 10485761, 1}) {
        driver.allocate(std::string(1, static_cast<char>(name++)), size);
    }
    CHECK(driver.driver_calls() == Lines{"+2097152", "+20971520", "+10485760", "+12582912"});
    CHECK(driver.layout() == Lines{"[A 1048576][F 512][- 1048064]",
                                   "[B 1049088][C 10485760][- 9436672]",
                                   "[D 10485760]",
                                   "[E 10486272][- 2096640]"});
    const PytorchStatistics& detail = driver.pool.pytorch_statistics();
    CHECK(detail.allocated_bytes.all.current == 33555968);
    CHECK(detail.reserved_bytes.all.current == 46137344);
    CHECK(detail.requested_bytes.all.current == 33554434);
    CHECK(detail.inactive_split.all.current == 3);
    CHECK(detail.inactive_split_bytes.all.current == 12581376);
    CHECK(detail.inactive_split_bytes.all.peak == 20971008);
}

TEST_CASE("small requests share segments of 2 MiB") {
    PoolDriver driver;
    driver.allocate("A", 100);
    driver.allocate("B", 700000);
    driver.allocate("C", 700000);
    driver.allocate("D", 700000);
    CHECK(driver.layout() ==
          Lines{"[A 512][B 700416][C 700416][- 695808]", "[D 700416][- 1396736]"});
}

TEST_CASE("a large block is split only if more than 1 MiB remains") {
    PoolDriver driver;
    driver.allocate("X", mib(22));
    driver.release("X");
    driver.allocate("A", mib(20.5));
    CHECK(driver.layout() == Lines{"[A 21495808][- 1572864]"});
    driver.release("A");
    driver.allocate("B", mib(21));
    CHECK(driver.layout() == Lines{"[B 23068672]"});
    CHECK(driver.pool.statistics().requested.current == 22020096);
    CHECK(driver.pool.statistics().slack_bytes == kMiB);
    driver.release("B");
    driver.allocate("C", 22019047);
    CHECK(driver.layout() == Lines{"[C 22019072][- 1049600]"});
}

TEST_CASE("among equal blocks the one in the oldest segment is taken") {
    PoolDriver driver;
    driver.allocate("X", mib(30));
    driver.allocate("P", mib(30));
    driver.release("X");
    driver.pool.empty_cache();
    driver.allocate("Q", mib(30));
    CHECK(driver.layout() == Lines{"[Q 31457280]", "[P 31457280]"});
    SECTION("freed in order of allocation") {
        driver.release("P");
        driver.release("Q");
    }
    SECTION("freed in reverse order") {
        driver.release("Q");
        driver.release("P");
    }
    driver.allocate("R", mib(30));
    CHECK(driver.layout() == Lines{"[- 31457280]", "[R 31457280]"});
}

TEST_CASE("max_split_size_mb prevents splitting of large blocks") {
    PoolDriver driver("max_split_size_mb:200");
    driver.allocate("A", mib(300));
    driver.allocate("B", mib(150));
    driver.release("A");
    driver.release("B");
    driver.driver_calls();
    driver.allocate("C", mib(120));
    CHECK(driver.layout() == Lines{"[- 314572800]", "[C 125829120][- 31457280]"});
    driver.release("C");
    CHECK(driver.allocate("D", mib(250)).outcome == Outcome::kGrow);
    CHECK(driver.driver_calls() == Lines{"+262144000"});
    driver.release("D");
    CHECK(driver.allocate("E", mib(281)).outcome == Outcome::kHit);
    CHECK(driver.pool.statistics().allocated.current == mib(300));
    CHECK(driver.pool.statistics().requested.current == mib(281));
    CHECK(driver.pool.pytorch_statistics().oversize_allocations.current == 1);
    CHECK(driver.pool.pytorch_statistics().oversize_segments.current == 2);
}

TEST_CASE("a request fails although enough memory is free in pieces") {
    PoolDriver driver("", mib(96));
    for (const char* name : {"S1", "S2", "S3", "S4"}) {
        driver.allocate(name, mib(8));
    }
    driver.allocate("T", mib(50));
    driver.release("S1");
    driver.release("S3");
    driver.driver_calls();
    CHECK(driver.allocate("X", mib(20)).outcome == Outcome::kOutOfMemory);
    CHECK(driver.driver_calls() == Lines{"+20971520!", "+20971520!"});
    CHECK(driver.allocate("X", mib(15)).outcome == Outcome::kOutOfMemory);
    CHECK(driver.driver_calls() == Lines{"+16777216!", "+16777216!"});
    const PytorchStatistics& detail = driver.pool.pytorch_statistics();
    CHECK(detail.allocated_bytes.all.current == mib(66));
    CHECK(detail.reserved_bytes.all.current == mib(90));
    CHECK(detail.inactive_split.all.current == 4);
    CHECK(detail.num_alloc_retries == 2);
    CHECK(detail.num_ooms == 2);
    CHECK(detail.num_sync_all_streams == 2);
    CHECK(driver.pool.device().free_bytes() == mib(6));
    CHECK(driver.pool.releasable_bytes() == 0);
    CHECK(driver.pool.largest_free_bytes({1, mib(20), 0, 0}) == mib(8));
}

TEST_CASE("a refused request succeeds after cached segments were released") {
    PoolDriver driver("", mib(100));
    for (const char* name : {"A", "B", "C", "D"}) {
        driver.allocate(name, mib(20));
    }
    driver.release("A");
    driver.release("C");
    CHECK(driver.pool.releasable_bytes() == mib(40));
    driver.driver_calls();
    CHECK(driver.allocate("E", mib(45)).outcome == Outcome::kRetryOk);
    CHECK(driver.driver_calls() == Lines{"+48234496!", "-20971520", "-20971520", "+48234496"});
    const PytorchStatistics& detail = driver.pool.pytorch_statistics();
    CHECK(detail.num_alloc_retries == 1);
    CHECK(detail.num_ooms == 0);
    CHECK(detail.num_sync_all_streams == 1);
    CHECK(detail.num_device_alloc == 5);
    CHECK(detail.num_device_free == 2);
}

TEST_CASE("max_split_size_mb releases the largest cached blocks first") {
    PoolDriver driver("max_split_size_mb:200", mib(800));
    driver.allocate("A", mib(300));
    driver.allocate("B", mib(220));
    driver.allocate("C", mib(210));
    for (const char* name : {"A", "B", "C"}) {
        driver.release(name);
    }
    driver.driver_calls();
    CHECK(driver.allocate("D", mib(500)).outcome == Outcome::kRetryOk);
    CHECK(driver.driver_calls() == Lines{"+524288000!", "-314572800", "-230686720", "+524288000"});
    CHECK(driver.pool.pytorch_statistics().num_alloc_retries == 0);
    CHECK(driver.pool.pytorch_statistics().num_sync_all_streams == 0);
}

TEST_CASE("a cross-stream free is reusable once a later request sees its event completed") {
    PoolDriver driver;
    driver.allocate("A", mib(30), 0);
    driver.release("A", {{7, 1}});
    CHECK(driver.pool.statistics().allocated.current == 0);
    CHECK(driver.pool.statistics().active.current == mib(30));
    CHECK(driver.pool.statistics().requested.current == 0);
    CHECK(driver.pool.pytorch_statistics().requested_bytes.all.current == mib(30));
    CHECK(driver.layout() == Lines{"[A? 31457280]"});
    driver.allocate("B", mib(30), 0);
    CHECK(driver.layout() == Lines{"[A? 31457280]", "[B 31457280]"});
    driver.pool.complete(7);
    CHECK(driver.pool.statistics().active.current == mib(60));
    CHECK(driver.allocate("C", mib(30), 0).outcome == Outcome::kHit);
    CHECK(driver.layout() == Lines{"[C 31457280]", "[B 31457280]"});
}

TEST_CASE("events of one stream complete in order") {
    PoolDriver driver;
    driver.allocate("A", mib(30));
    driver.allocate("B", mib(40));
    driver.allocate("C", mib(50));
    driver.release("A", {{1, 1}});
    driver.release("B", {{2, 1}, {3, 2}});
    driver.release("C", {{4, 2}});
    driver.pool.complete(2);
    driver.pool.complete(4);
    driver.allocate("x", 1);
    CHECK(driver.layout()[0] == "[A? 31457280]");
    CHECK(driver.layout()[1] == "[B? 41943040]");
    CHECK(driver.layout()[2] == "[C? 52428800]");  // B's event on stream 2 is first
    driver.pool.complete(3);
    driver.allocate("y", 1);
    CHECK(driver.layout()[1] == "[B? 41943040]");
    CHECK(driver.layout()[2] == "[- 52428800]");
    driver.pool.complete(1);
    driver.allocate("z", 1);
    CHECK(driver.layout()[0] == "[- 31457280]");
    CHECK(driver.layout()[1] == "[- 41943040]");
}

TEST_CASE("garbage collection releases old blocks before cudaMalloc is called") {
    PoolDriver driver("garbage_collection_threshold:0.3,per_process_memory_fraction:0.9", kGiB);
    driver.allocate("A", mib(100));
    driver.allocate("B", mib(110));
    driver.allocate("C", mib(120));
    for (const char* name : {"A", "B", "C"}) {
        driver.release(name);
    }
    driver.allocate("D", mib(30));
    CHECK(driver.layout()[0] == "[D 31457280][- 73400320]");
    driver.driver_calls();
    CHECK(driver.allocate("E", mib(130)).outcome == Outcome::kGrow);
    CHECK(driver.driver_calls() == Lines{"-115343360", "-125829120", "+136314880"});
}

TEST_CASE("roundup_power2_divisions rounds requests up to fractions of a power of two") {
    const auto rounded = [](const PoolDriver& driver, std::uint64_t size_bytes) {
        return driver.pool.rounded_bytes(size_bytes);
    };
    const PoolDriver four("roundup_power2_divisions:4");
    CHECK(rounded(four, 513) == 1024);
    CHECK(rounded(four, 1200) == 1536);
    CHECK(rounded(four, 2048) == 2048);
    CHECK(rounded(four, 2049) == 2560);
    CHECK(rounded(four, 5000) == 5120);
    CHECK(rounded(four, 1048577) == 1310720);
    CHECK(rounded(four, 1600001) == 1835008);
    CHECK(rounded(four, 10485761) == 12582912);
    const PoolDriver list("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]");
    CHECK(rounded(list, 200000001) == 200000512);
    CHECK(rounded(list, 600000001) == 805306368);
    CHECK(rounded(list, 1100000001) == 1342177280);
    CHECK(rounded(list, 2200000001) == 2415919104);
}

TEST_CASE("a private pool keeps its memory while it has a user") {
    PoolDriver driver;
    driver.allocate("A", mib(30), 0, 7);
    driver.release("A");
    driver.driver_calls();
    driver.pool.empty_cache();
    CHECK(driver.driver_calls().empty());
    CHECK(driver.pool.releasable_bytes() == 0);
    CHECK_FALSE(driver.pool.snapshot().segments.at(0).may_release);
    CHECK(driver.pool.reserved_by_private_pool(7).current == mib(30));
    driver.pool.set_private_pool(7, {.freeable = true});
    CHECK(driver.pool.releasable_bytes() == mib(30));
    driver.pool.empty_cache();
    CHECK(driver.driver_calls() == Lines{"-31457280"});
    CHECK(driver.pool.reserved_by_private_pool(7).current == 0);
    CHECK(driver.pool.reserved_by_private_pool(7).peak == mib(30));
}

}  // namespace
}  // namespace fragtrace::analyzer
