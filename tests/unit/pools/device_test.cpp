// The simulated card, whose pages are shared by small requests.
#include "analyzer/pools/device.h"

#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/support/units.h"

#include <catch2/catch.hpp>

#include <random>
#include <vector>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kPage = 2 * kMiB;

// Large requests use whole pages, small ones are packed.
std::uint64_t pages_of(const std::vector<std::uint64_t>& held) {
    std::uint64_t whole = 0;
    std::uint64_t shared = 0;
    for (const std::uint64_t bytes : held) {
        if (bytes <= kPage / 2) {
            shared += (bytes + 511) / 512 * 512;
        } else {
            whole += (bytes + kPage - 1) / kPage * kPage;
        }
    }
    return whole + (shared + kPage - 1) / kPage * kPage;
}

TEST_CASE("a device's free memory is right after random allocations, frees and changes of size") {
    std::mt19937_64 random(5);
    constexpr std::uint64_t kCard = 64 * kMiB;
    FixedDevice device(kCard, kCard, kPage);
    std::vector<std::uint64_t> held;
    for (int step = 0; step < 20000; ++step) {
        const std::uint64_t bytes = 1 + random() % (random() % 2 == 0 ? 3 * kMiB : kKiB);
        std::vector<std::uint64_t> then = held;
        const std::size_t at = held.empty() ? 0 : random() % held.size();
        const auto one = then.begin() + static_cast<std::ptrdiff_t>(at);
        switch (held.empty() ? 0 : random() % 3) {
            case 0:
                then.push_back(bytes);
                REQUIRE(device.take(bytes) == (pages_of(then) <= kCard));
                break;
            case 1:
                device.give_back(*one);
                then.erase(one);
                break;
            default:
                *one = bytes;
                REQUIRE(device.resize(held[at], bytes) == (pages_of(then) <= kCard));
        }
        held = pages_of(then) <= kCard ? then : held;
        REQUIRE(device.free_bytes() == kCard - pages_of(held));
    }
    device.give_back_all();
    CHECK(device.free_bytes() == kCard);
}

// To this device, steps of 2 and of 32 MiB are small requests.
TEST_CASE("pools return all memory to a device whose pages exceed their steps") {
    for (const char* name : {"live", "compact", "pages", "cuda-async", "none", "pytorch"}) {
        CAPTURE(name);
        const std::string config = std::string(name) == "cuda-async" ? "remap:True" : "";
        auto pool =
            make_pool(name, config, std::make_unique<FixedDevice>(kGiB, kGiB, 128 * kMiB), {0});
        REQUIRE(pool.ok());
        for (int round = 0; round < 3; ++round) {
            for (BlockId block = 1; block <= 20; ++block) {
                (*pool)->allocate({.block = block, .requested_bytes = block * kMiB});
            }
            REQUIRE((*pool)->device().free_bytes() < kGiB);
            for (BlockId block = 1; block <= 20; ++block) {
                (*pool)->release(block, {});
            }
            (*pool)->empty_cache();
            REQUIRE((*pool)->device().free_bytes() == kGiB);
        }
    }
}

TEST_CASE("the uncertainty from shared pages is zero once the small requests are freed") {
    FixedDevice device(kGiB, kGiB, kPage);
    REQUIRE(device.take(kMiB));
    REQUIRE(device.take(kMiB));
    CHECK(device.unsure_bytes() == kPage);
    device.give_back(kMiB);
    device.give_back(kMiB);
    CHECK(device.unsure_bytes() == 0);
}

TEST_CASE("a pool returns its own memory before it adopts another pool's state") {
    auto pool = make_pool("pytorch", "", std::make_unique<FixedDevice>(kGiB, kGiB, 8 * kMiB), {0});
    REQUIRE(pool.ok());
    // Seven segments of 2 MiB share pages of 8 MiB. A single release of 14 MiB would give another
    // sum.
    for (BlockId block = 1; block <= 14; ++block) {
        (*pool)->allocate({.block = block, .requested_bytes = kMiB});
    }
    REQUIRE((*pool)->device().free_bytes() == kGiB - 16 * kMiB);
    REQUIRE((*pool)->adopt({}));
    CHECK((*pool)->device().free_bytes() == kGiB);
    CHECK((*pool)->allocate({.block = 1, .requested_bytes = kMiB}).outcome == Outcome::kGrow);
    CHECK((*pool)->device().free_bytes() == kGiB - 8 * kMiB);
}

}  // namespace
}  // namespace fragtrace::analyzer
