#include "analyzer/report/page/page_overview.h"

#include "analyzer/report/page/page_coverage.h"
#include "sample.h"

#include <catch2/catch.hpp>

using namespace fragtrace::analyzer;
using namespace fragtrace::page_test;

TEST_CASE("the address axis leaves out gaps and keeps the order") {
    const PageData data = small_page();
    const AddressAxis axis(data.devices[0]);
    REQUIRE(axis.ranges().size() == 2);
    CHECK(axis.size_bytes() == 22 * kMiB);
    CHECK(axis.offset_of(0x7000'0000'0000 + kMiB) == kMiB);
    CHECK(axis.offset_of(0x7100'0000'0000) == 20 * kMiB);
    CHECK(axis.offset_of(0x7000'0000'0000 + 500 * kMiB) == 20 * kMiB);  // outside of all ranges
}

TEST_CASE("ranges that touch, or overlap at different times, become one") {
    PageDevice device;
    device.segments = {{.address = 0x1000, .size_bytes = 0x1000},
                       {.address = 0x1800, .size_bytes = 0x1800},
                       {.address = 0x3000, .size_bytes = 0x1000}};
    const AddressAxis axis(device);
    REQUIRE(axis.ranges().size() == 1);
    CHECK(axis.size_bytes() == 0x3000);
}

TEST_CASE("coverage is an area, clipped at the edges") {
    CoverageGrid grid(4, 2);
    grid.add(0.5, 2.25, 0, 1);
    grid.add(-5, 0.5, -3, 0.5);
    grid.add(3, 9, 1.75, 7);
    const std::vector<std::uint8_t> shares = grid.shares();
    CHECK(shares == std::vector<std::uint8_t>{191, 255, 64, 0, 0, 0, 0, 64});
}

TEST_CASE("the parts of a bin add up to the reserved memory") {
    const PageData data = small_page();
    const PageDevice& device = data.devices[0];
    const PageOverview overview = make_overview(device, AddressAxis(device), 1000);
    REQUIRE(overview.bins.size() == kPageBins);
    const auto at = [&](double time_ns) {
        return overview.bins[static_cast<std::size_t>(time_ns / 1000 * kPageBins)];
    };
    const PageBin used = at(200);
    CHECK(used.requested == Approx(5 * kMiB));
    CHECK(used.internal == Approx(5 * kMiB));
    CHECK(used.held == Approx(10 * kMiB));
    CHECK(used.releasable == Approx(2 * kMiB));
    CHECK(used.allocated_max == 10 * kMiB);
    CHECK(used.reserved_max == 22 * kMiB);
    const PageBin empty = at(400);
    CHECK(empty.held == Approx(0).margin(1e-6));
    CHECK(empty.releasable == Approx(22 * kMiB));
    CHECK(at(700).releasable == Approx(20 * kMiB));
}

TEST_CASE("pending blocks are neither allocated nor free") {
    PageData data = small_page();
    data.devices[0].blocks.end_ns[0] = 600;
    const PageDevice& device = data.devices[0];
    const PageOverview overview = make_overview(device, AddressAxis(device), 1000);
    const PageBin bin = overview.bins[kPageBins * 400 / 1000];
    CHECK(bin.requested == Approx(0).margin(1e-6));
    CHECK(bin.pending == Approx(10 * kMiB));
    CHECK(bin.held == Approx(10 * kMiB));
}

TEST_CASE("pages of an expandable segment are released one by one, blocks span several") {
    PageDevice device;
    device.end_ns = 1000;
    device.segments = {{.start_ns = 0,
                        .address = 0x10'0000'0000,
                        .size_bytes = 60 * kMiB,
                        .page_bytes = 20 * kMiB}};
    add_block(device, 10, kNeverNs, kNeverNs, 0x10'0000'0000 + 15 * kMiB, 10 * kMiB);
    const PageOverview overview = make_overview(device, AddressAxis(device), 1000);
    REQUIRE(overview.units.size() == 3);
    CHECK(overview.block_unit[0] == 0);
    REQUIRE(overview.spans.size() == 1);
    CHECK(overview.spans[0].unit == 1);
    const PageBin bin = overview.bins[1000];
    CHECK(bin.held == Approx(30 * kMiB));
    CHECK(bin.releasable == Approx(20 * kMiB));
}

TEST_CASE("memory cached by a private pool in use cannot be released") {
    PageData data = small_page();
    data.devices[0].segments[0].pool = 1;
    data.devices[0].pools = {{}, {"private pool 7", {}}};
    const PageDevice& device = data.devices[0];
    const PageOverview overview = make_overview(device, AddressAxis(device), 1000);
    const PageBin bin = overview.bins[kPageBins * 700 / 1000];
    CHECK(bin.held == Approx(20 * kMiB));
    CHECK(bin.releasable == Approx(0).margin(1e-6));
}

TEST_CASE("memory cached by a private pool can be released once it has no user") {
    PageData data = small_page();
    data.devices[0].segments[0].pool = 1;
    data.devices[0].pools = {{}, {"private pool 7", {200, 600, 800}}};
    const PageDevice& device = data.devices[0];
    const PageOverview overview = make_overview(device, AddressAxis(device), 1000);
    const auto at = [&](std::size_t ns) { return overview.bins[kPageBins * ns / 1000]; };
    // The block lives in [100, 300). The default pool's 2 MiB are there up to 500.
    CHECK(at(50).held == Approx(20 * kMiB));
    CHECK(at(250).held == Approx(10 * kMiB));
    CHECK(at(250).releasable == Approx(2 * kMiB));
    CHECK(at(400).held == Approx(0).margin(1e-6));
    CHECK(at(400).releasable == Approx(22 * kMiB));
    CHECK(at(700).held == Approx(20 * kMiB));
    CHECK(at(700).releasable == Approx(0).margin(1e-6));
    CHECK(at(900).releasable == Approx(20 * kMiB));
}

TEST_CASE("an address that is reserved twice belongs to the segment of each time") {
    PageDevice device;
    device.end_ns = 1000;
    device.segments = {
        {.start_ns = 0, .end_ns = 400, .address = 0x1000'0000, .size_bytes = 2 * kMiB},
        {.start_ns = 500, .address = 0x1000'0000, .size_bytes = 20 * kMiB}};
    add_block(device, 100, 200, 200, 0x1000'0000, kMiB);
    add_block(device, 600, kNeverNs, kNeverNs, 0x1000'0000 + 4 * kMiB, kMiB);
    const PageOverview overview = make_overview(device, AddressAxis(device), 1000);
    CHECK(overview.units[overview.block_unit[0]].size_bytes == 2 * kMiB);
    CHECK(overview.units[overview.block_unit[1]].size_bytes == 20 * kMiB);
}

TEST_CASE("memory of others stays the same until its next sample") {
    PageData data = small_page();
    data.devices[0].others = {{100, 500}, {kMiB, 2 * kMiB}};
    const PageDevice& device = data.devices[0];
    const PageOverview overview = make_overview(device, AddressAxis(device), 1000);
    CHECK(overview.bins[100].other == Approx(0).margin(1e-6));
    CHECK(overview.bins[400].other == Approx(kMiB));
    CHECK(overview.bins[2000].other == Approx(2 * kMiB));
}
