// Before PyTorch 2.13, addresses decide between equal free blocks.
#include "analyzer/analysis/address_orders.h"

#include "analyzer/support/units.h"

#include <catch2/catch.hpp>

namespace fragtrace::analyzer {
namespace {

TEST_CASE("a report says how much the order of addresses matters") {
    DeviceAnalysis device;
    device.pool = "pytorch";
    device.capacity_bytes = device.total_bytes = kGiB;
    device.script.streams = {0};
    const auto allocate = [&device](BlockId block, std::uint64_t size_bytes) {
        device.script.steps.push_back(
            {.kind = Step::Kind::kAllocate, .block = block, .value = size_bytes});
    };
    const auto release = [&device](BlockId block) {
        device.script.steps.push_back({.kind = Step::Kind::kRelease, .block = block});
    };
    allocate(1, 40 * kMiB);
    release(1);
    allocate(2, 20 * kMiB);  // splits the 40 MiB block
    allocate(3, 20 * kMiB);  // the other half
    allocate(4, 20 * kMiB);  // a segment of its own
    release(3);
    release(4);
    allocate(5, 20 * kMiB);  // uses either of the two
    release(2);
    allocate(6, 40 * kMiB);  // fits only if the half block was not used
    device.script.rules = PytorchRules::for_version(2, 6);
    const auto orders = try_address_orders(device);
    REQUIRE(orders);
    CHECK(orders->orders == 5);
    CHECK(orders->least_reserved_bytes == 60 * kMiB);
    CHECK(orders->most_reserved_bytes == 100 * kMiB);
    CHECK(orders->most_ooms == 0);
    device.script.rules = PytorchRules::for_version(2, 13);
    CHECK_FALSE(try_address_orders(device));
}

}  // namespace
}  // namespace fragtrace::analyzer
