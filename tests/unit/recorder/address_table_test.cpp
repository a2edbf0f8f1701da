// The table of known addresses, filled beyond its initial capacity.
#include "system/address_table.h"

#include <catch2/catch.hpp>

#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

using namespace fragtrace::preload;

namespace {
AddressTable<uint64_t, 64> g_table;
AddressTable<uint64_t, 64> g_shared;
}  // namespace

TEST_CASE("a table of addresses grows and finds the same entries as a map") {
    std::mt19937_64 random(7);
    std::unordered_map<uint64_t, uint64_t> model;
    for (int i = 0; i < 300000; ++i) {
        const uint64_t address = (random() % 40000 + 1) * 512;
        if (random() % 3 != 0) {
            REQUIRE(g_table.insert(address, address + static_cast<uint64_t>(i)));
            model[address] = address + static_cast<uint64_t>(i);
        } else {
            uint64_t value = 0;
            const auto known = model.find(address);
            REQUIRE(g_table.take(address, &value) == (known != model.end()));
            if (known != model.end()) {
                REQUIRE(value == known->second);
                model.erase(known);
            }
        }
    }
    for (const auto& [address, value] : model) {
        uint64_t found = 0;
        REQUIRE(g_table.take(address, &found));
        REQUIRE(found == value);
    }
    CHECK(g_table.empty());
    CHECK(g_events_without_room == 0);
}

TEST_CASE("all entries of a table of addresses can be changed or removed") {
    constexpr uint64_t kCount = 1000;  // more than the first part holds
    for (uint64_t i = 1; i <= kCount; ++i) {
        REQUIRE(g_table.insert(i * 512, i));
    }
    g_table.change_all([](uint64_t address, uint64_t value) {
        REQUIRE(address == value * 512);
        return value % 2 == 0 ? 0 : value + 1;
    });
    for (uint64_t i = 1; i <= kCount; ++i) {
        uint64_t value = 0;
        REQUIRE(g_table.look_up(i * 512, &value) == (i % 2 == 1));
        REQUIRE((i % 2 == 0 || value == i + 1));
    }
    g_table.change_all([](uint64_t, uint64_t) { return uint64_t{0}; });
    CHECK(g_table.empty());
}

TEST_CASE("threads that grow a table of addresses at once lose no entry") {
    constexpr uint64_t kEach = 20000;
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 4; ++t) {
        threads.emplace_back([t] {
            for (uint64_t i = 1; i <= kEach; ++i) {
                g_shared.insert((t << 40) + i * 512, i);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    for (uint64_t t = 0; t < 4; ++t) {
        for (uint64_t i = 1; i <= kEach; ++i) {
            uint64_t value = 0;
            REQUIRE(g_shared.take((t << 40) + i * 512, &value));
            REQUIRE(value == i);
        }
    }
    CHECK(g_shared.empty());
}
