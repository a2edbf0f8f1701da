// The free set and the id table against the standard library's containers.
#include "analyzer/pools/free_set.h"

#include "analyzer/pools/block_table.h"

#include <catch2/catch.hpp>

#include <map>
#include <random>
#include <unordered_map>

namespace fragtrace::analyzer {
namespace {

using Key = std::array<std::uint64_t, 3>;

void check_equal(const FreeSet& set, const std::map<Key, BlockIndex>& expected) {
    REQUIRE(set.size() == expected.size());
    REQUIRE(set.empty() == expected.empty());
    auto at = FreeSet::begin();
    for (const auto& [key, block] : expected) {
        REQUIRE_FALSE(set.at_end(at));
        REQUIRE(set.block(at) == block);
        at = set.next(at);
    }
    REQUIRE(set.at_end(at));
    for (auto back = expected.rbegin(); back != expected.rend(); ++back) {
        at = set.previous(at);
        REQUIRE(set.block(at) == back->second);
    }
    REQUIRE(FreeSet::at_begin(at));
}

TEST_CASE("a free set orders like a standard map") {
    std::mt19937_64 random(11);
    FreeSet set;
    std::map<Key, BlockIndex> expected;
    for (int step = 0; step < 20000; ++step) {
        // Grows to some hundred, shrinks to nothing, and so on.
        const bool grow = (step / 2500) % 2 == 0;
        const bool insert = expected.empty() || random() % 10 < (grow ? 7U : 2U);
        if (insert) {
            const Key key = {random() % 64 * 512, random() % 8, random() % 64 * 512};
            if (expected.emplace(key, static_cast<BlockIndex>(step)).second) {
                set.insert(FreeKey::make(key[0], static_cast<std::uint32_t>(key[1]), key[2]),
                           static_cast<BlockIndex>(step));
            }
        } else {
            auto victim = expected.begin();
            std::advance(victim, static_cast<std::ptrdiff_t>(random() % expected.size()));
            set.erase(victim->second);
            expected.erase(victim);
        }
        const Key probe = {random() % 66 * 512, 0, 0};
        const auto at = set.lower_bound(FreeKey::make(probe[0], 0, 0));
        const auto found = expected.lower_bound(probe);
        REQUIRE(set.at_end(at) == (found == expected.end()));
        if (found != expected.end()) {
            REQUIRE(set.block(at) == found->second);
        }
        if (step % 97 == 0) {
            check_equal(set, expected);
        }
    }
}

TEST_CASE("a key orders by size, then rank, then position, over their whole ranges") {
    const std::vector<Key> ascending = {
        {512, 0, 0},
        {512, 0, std::uint64_t{1} << 47},
        {512, 1, 0},
        {512, (1U << 16) - 1, 512},
        {512, 1U << 16, 0},
        {512, 0xffffffffU, (std::uint64_t{1} << 48) - 1},
        {513, 0, 0},
        {1024, 0, 0},
        {std::uint64_t{1} << 47, 0, 0},
        {(std::uint64_t{1} << 60) - 512, 0, 0},
    };
    for (std::size_t i = 1; i < ascending.size(); ++i) {
        const auto key = [&](std::size_t at) {
            return FreeKey::make(
                ascending[at][0], static_cast<std::uint32_t>(ascending[at][1]), ascending[at][2]);
        };
        CHECK(key(i - 1) < key(i));
        CHECK_FALSE(key(i) < key(i - 1));
    }
}

TEST_CASE("the id table finds like a standard map") {
    std::mt19937_64 random(12);
    BlockTable table;
    std::unordered_map<BlockId, BlockIndex> expected;
    for (int step = 0; step < 50000; ++step) {
        const auto id = static_cast<BlockId>(random() % 4096 * (step % 2 == 0 ? 1 : 4096));
        switch (random() % 3) {
            case 0:
                table.insert(id, static_cast<BlockIndex>(step));
                expected[id] = static_cast<BlockIndex>(step);
                break;
            case 1:
                table.erase(id);
                expected.erase(id);
                break;
            default: {
                const auto found = expected.find(id);
                REQUIRE(table.find(id) == (found == expected.end() ? kNoBlock : found->second));
            }
        }
        REQUIRE(table.size() == expected.size());
    }
    for (const auto& [id, block] : expected) {
        REQUIRE(table.find(id) == block);
    }
}

}  // namespace
}  // namespace fragtrace::analyzer
