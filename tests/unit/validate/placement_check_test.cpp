// The independent check notices errors that a wrong pool would make.
#include "analyzer/replay/validation/placement_check.h"

#include "analyzer/support/units.h"

#include <catch2/catch.hpp>

namespace fragtrace::analyzer {
namespace {

std::unique_ptr<Pool> pool_of(const std::string& name, std::uint64_t card_bytes = kGiB) {
    auto made =
        make_pool(name, "", std::make_unique<FixedDevice>(card_bytes, card_bytes, 512), {0, 1, 2});
    REQUIRE(made.ok());
    return std::move(made).value();
}

struct Checked {
    explicit Checked(const std::string& name, std::uint64_t capacity_bytes = kGiB)
        : pool(pool_of(name)), check(find_pool(name)->streams, capacity_bytes) {}

    // The pool's answer, before the test changes it for the check.
    AllocateResult ask(const Request& request) { return pool->allocate(request); }

    void serve(const Request& request) { check.allocated(request, ask(request), *pool); }

    std::unique_ptr<Pool> pool;
    PlacementCheck check;
};

TEST_CASE("real placements of every pool pass the check") {
    for (const PoolDescription& known : known_pools()) {
        if (!known.bound.empty()) {
            continue;  // places nothing
        }
        INFO(known.name);
        Checked it((std::string(known.name)));
        it.serve({1, 1000, 0, 0});
        it.serve({2, 3 * kMiB, 1, 0});
        it.pool->release(1, {});
        it.check.released(1, {}, *it.pool);
        it.check.compare(*it.pool);
        CHECK(it.check.violation().empty());
        CHECK(it.check.placements() == 2);
    }
}

TEST_CASE("an overlap is named with both blocks") {
    Checked it("best-fit");
    it.serve({1, 1000, 0, 0});
    AllocateResult result = it.ask({2, 1000, 0, 0});
    result.placement.offset_bytes = 512;
    it.check.allocated({2, 1000, 0, 0}, result, *it.pool);
    CHECK(it.check.violation() ==
          "block 2 (segment 0, bytes 512 to 1536) overlaps live block 1 (bytes 0 to 1024)");
}

TEST_CASE("a block is in use while it waits for another stream's event") {
    Checked it("pytorch");
    it.serve({1, 1000, 0, 0});
    it.pool->release(1, {{7, 1}});
    it.check.released(1, {{7, 1}}, *it.pool);
    AllocateResult result = it.ask({2, 1000, 0, 0});
    result.placement.offset_bytes = 0;
    SECTION("overlap before the event") {
        it.check.allocated({2, 1000, 0, 0}, result, *it.pool);
        CHECK(it.check.violation() ==
              "block 2 (segment 0, bytes 0 to 1024) overlaps waiting block 1 (bytes 0 to 1024)");
    }
    SECTION("overlap after the event") {
        it.check.completed(7);
        it.check.allocated({2, 1000, 0, 0}, result, *it.pool);
        CHECK(it.check.violation() ==
              "block 2 (segment 0, bytes 0 to 1024): the pool reports another place");
    }
}

TEST_CASE("size, alignment, stream and number of a block are checked") {
    const auto violation = [](const std::string& pool, auto change) {
        Checked it(pool);
        it.serve({1, 1000, 0, 0});
        Request request{2, 1000, 0, 0};
        AllocateResult result = it.ask(request);
        change(&request, &result);
        it.check.allocated(request, result, *it.pool);
        return it.check.violation();
    };
    CHECK(violation("pytorch", [](Request*, AllocateResult*) {}).empty());
    CHECK(violation("pytorch", [](Request* request, AllocateResult*) { request->stream = 1; }) ==
          "block 2 (segment 0, bytes 1024 to 2048) belongs to stream 1, its segment to stream 0");
    CHECK(violation("best-fit", [](Request* request, AllocateResult*) {
              request->stream = 1;
          }).empty());
    CHECK(violation("best-fit", [](Request* request, AllocateResult*) {
              request->requested_bytes = 1025;
          }) == "block 2 (segment 0, bytes 1024 to 2048) is too small for 1025 bytes");
    CHECK(violation("best-fit", [](Request*, AllocateResult* result) {
              result->placement.offset_bytes += 100;
          }) == "block 2 (segment 0, bytes 1124 to 2148) is not aligned to 256 bytes");
    CHECK(violation("best-fit", [](Request* request, AllocateResult*) { request->block = 1; }) ==
          "block 1 (segment 0, bytes 1024 to 2048) has the number of a live block");
    CHECK(violation("best-fit", [](Request*, AllocateResult* result) {
              result->outcome = Outcome::kOutOfMemory;
          }) == "block 2 was refused but exists");
}

TEST_CASE("sums, capacity and address map are compared with the pool's") {
    SECTION("more reserved than the capacity") {
        Checked it("none", kMiB);
        it.serve({1, kMiB + 1, 0, 0});
        CHECK(it.check.violation() == "1048577 bytes are reserved, the device has 1048576");
    }
    SECTION("a request that the check did not see") {
        Checked it("none");
        it.ask({1, 1000, 0, 0});
        it.serve({2, 1000, 0, 0});
        CHECK(it.check.violation() == "live requests are 1000 bytes, the pool says 2000");
    }
    SECTION("a freed block that is still in the address map") {
        Checked it("none");
        it.serve({1, 1000, 0, 0});
        it.serve({2, 1000, 0, 0});
        const std::unique_ptr<Pool> before = it.pool->clone();
        it.pool->release(1, {});
        it.check.released(1, {}, *it.pool);
        CHECK(it.check.violation().empty());
        it.check.compare(*before);
        CHECK(it.check.violation() == "live requests are 1000 bytes, the pool says 2000");
    }
}

}  // namespace
}  // namespace fragtrace::analyzer
