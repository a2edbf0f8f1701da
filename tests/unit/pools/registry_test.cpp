// Pools by name, and the "none" pool, which sends every request to the driver.
#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/support/units.h"

#include <catch2/catch.hpp>

namespace fragtrace::analyzer {
namespace {

std::unique_ptr<Device> card(std::uint64_t capacity_bytes) {
    return std::make_unique<FixedDevice>(capacity_bytes, capacity_bytes, 512);
}

TEST_CASE("every known pool can be created") {
    for (const PoolDescription& known : known_pools()) {
        if (known.planned) {
            CHECK_FALSE(make_pool(known.name, "", card(kGiB)).ok());
            continue;
        }
        const auto pool = make_pool(known.name, "", card(kGiB));
        REQUIRE(pool.ok());
        CHECK((*pool)->name() == known.name);
        CHECK((*pool)->config().empty());
        CHECK((*pool)->allocate({1, 100, 0, 0}).outcome == Outcome::kGrow);
        CHECK((*pool)->statistics().requested.current == 100);
    }
}

TEST_CASE("a wrong name or setting gives a usage error") {
    const auto unknown = make_pool("jemalloc", "", card(kGiB));
    REQUIRE_FALSE(unknown.ok());
    CHECK(unknown.error().code == ErrorCode::kUsage);
    CHECK(unknown.error().message == "unknown pool 'jemalloc'; known are: " + pool_names());
    CHECK_FALSE(make_pool("pytorch", "foo:1", card(kGiB)).ok());
    CHECK_FALSE(make_pool("none", "foo:1", card(kGiB)).ok());
}

TEST_CASE("without a pool every request goes to the driver") {
    const auto pool = make_pool("none", "", card(10 * kMiB));
    REQUIRE(pool.ok());
    CHECK((*pool)->allocate({1, 6 * kMiB, 0, 0}).outcome == Outcome::kGrow);
    CHECK((*pool)->allocate({2, 6 * kMiB, 0, 0}).outcome == Outcome::kOutOfMemory);
    CHECK((*pool)->release(1, {{9, 1}}));
    CHECK_FALSE((*pool)->release(1, {}));
    CHECK((*pool)->allocate({3, 6 * kMiB + 1, 0, 0}).placement.block_bytes == 6 * kMiB + 1);
    const HeapSnapshot heap = (*pool)->snapshot();
    REQUIRE(heap.blocks.size() == 1);
    CHECK(heap.blocks[0].allocated_by == 3);
    CHECK((*pool)->take_driver_calls().size() == 4);
    CHECK((*pool)->statistics().reserved.peak == 6 * kMiB + 1);
}

TEST_CASE("small requests share the driver's pages, larger ones have pages of their own") {
    FixedDevice device(8 * kMiB, 8 * kMiB, 2 * kMiB);
    for (int i = 0; i < 2048; ++i) {
        REQUIRE(device.take(1000));  // 1024 bytes after alignment, so one page of them
    }
    CHECK(device.free_bytes() == 6 * kMiB);
    CHECK(device.take(1));
    CHECK(device.free_bytes() == 4 * kMiB);
    CHECK(device.take(kMiB));  // half a page, next to the small one
    CHECK(device.free_bytes() == 4 * kMiB);
    CHECK(device.take(kMiB + 1));
    CHECK(device.take(2 * kMiB));
    CHECK(device.free_bytes() == 0);
    CHECK(device.take(1000));
    CHECK_FALSE(device.take(kMiB + 1));
    CHECK_FALSE(device.take(kMiB));
    const auto copy = device.clone();
    device.give_back(kMiB + 1);
    CHECK(device.free_bytes() == 2 * kMiB);
    for (int i = 0; i < 2049; ++i) {
        device.give_back(1000);
    }
    device.give_back(kMiB);
    CHECK(device.free_bytes() == 4 * kMiB);
    device.give_back(1);
    device.give_back(2 * kMiB);
    CHECK(device.free_bytes() == 8 * kMiB);
    CHECK(copy->free_bytes() == 0);
}

TEST_CASE("settings of pools are told from other texts") {
    for (const char* text : {
             "expandable_segments:True,pinned_use_cuda_host_register:True",
             "roundup_power2_divisions:[256:1,512:2,>:4], max_split_size_mb: 64",
             "release_lock_on_cudamalloc:False,graph_capture_record_stream_reuse:True",
             "expandable_segments_reserve:20G,backend:cudaMallocAsync",
             "preallocate:0,onnxruntime:True,exact_regions:True,first_region:1048576,most_waste:"
             "134217728,region_after_shrink:2097152,most_doubled:1073741824",
             "partitioned:True",
             "limit:1073741824",
         }) {
        CHECK(is_pool_setting(text));
    }
    for (const char* text : {"",
                             "secret",
                             "12",
                             "expandable_segments:secret",
                             "expandable_segments:True secret",
                             "secret:True",
                             "partitioned:secret",
                             "expandable_segments_reserve:secretG"}) {
        CHECK_FALSE(is_pool_setting(text));
    }
}

}  // namespace
}  // namespace fragtrace::analyzer
