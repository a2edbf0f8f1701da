// Compares the free set and the id table with the standard library's containers.
#include "analyzer/pools/free_set.h"

#include "analyzer/pools/block_table.h"

#include <catch2/catch.hpp>

#include <array>
#include <map>
#include <random>
#include <unordered_map>
#include <vector>

namespace fragtrace::analyzer {
namespace {

using Key = std::array<std::uint64_t, 3>;
using Expected = std::map<Key, BlockIndex>;

FreeKey free_key(const Key& key) {
    return FreeKey::make(key[0], static_cast<std::uint32_t>(key[1]), key[2]);
}

void check_equal(const FreeSets& sets, FreeSets::SetIndex set, const Expected& expected) {
    REQUIRE(sets.size(set) == expected.size());
    REQUIRE(sets.empty(set) == expected.empty());
    BlockIndex at = sets.first(set);
    for (const auto& [key, block] : expected) {
        REQUIRE(at == block);
        at = sets.next(at);
    }
    REQUIRE(at == kNoBlock);
    at = sets.last(set);
    for (auto back = expected.rbegin(); back != expected.rend(); ++back) {
        REQUIRE(at == back->second);
        at = sets.previous(at);
    }
    REQUIRE(at == kNoBlock);
    std::vector<BlockIndex> blocks;
    sets.append_to(set, blocks);
    REQUIRE(blocks.size() == expected.size());
}

void check_lower_bound(const FreeSets& sets,
                       FreeSets::SetIndex set,
                       const Expected& expected,
                       const Key& probe) {
    const auto found = expected.lower_bound(probe);
    REQUIRE(sets.lower_bound(set, free_key(probe)) ==
            (found != expected.end() ? found->second : kNoBlock));
}

// Two sets that grow to some hundred blocks and shrink to zero, again and again.
template <typename RandomKey>
void compare_with_maps(std::uint64_t seed, int sets_before, RandomKey random_key) {
    std::mt19937_64 random(seed);
    FreeSets sets;
    for (int i = 0; i < sets_before; ++i) {
        sets.add_set();
    }
    const FreeSets::SetIndex numbers[] = {sets.add_set(), sets.add_set()};
    Expected expected[2];
    std::vector<BlockIndex> unused;
    BlockIndex blocks = 0;
    for (int step = 0; step < 20000; ++step) {
        const std::size_t one = random() % 2;
        const bool grow = (step / 2500) % 2 == 0;
        if (expected[one].empty() || random() % 10 < (grow ? 7U : 2U)) {
            const Key key = random_key(random);
            if (expected[one].contains(key)) {
                continue;
            }
            if (unused.empty()) {
                unused.push_back(blocks++);
            }
            expected[one][key] = unused.back();
            sets.insert(numbers[one], free_key(key), unused.back());
            unused.pop_back();
        } else {
            auto victim = expected[one].begin();
            std::advance(victim, static_cast<std::ptrdiff_t>(random() % expected[one].size()));
            sets.erase(victim->second);
            unused.push_back(victim->second);
            expected[one].erase(victim);
        }
        check_lower_bound(sets, numbers[one], expected[one], {random_key(random)[0], 0, 0});
        check_lower_bound(sets, numbers[one], expected[one], random_key(random));
        if (step % 97 == 0) {
            const FreeSets copy = sets;
            check_equal(copy, numbers[0], expected[0]);
            check_equal(copy, numbers[1], expected[1]);
        }
    }
}

TEST_CASE("free sets order blocks like standard maps, while small and after growing") {
    const int before = GENERATE(0, 1000);
    SECTION("blocks of some sizes") {
        compare_with_maps(11, before, [](std::mt19937_64& random) {
            return Key{random() % 64 * 512, random() % 8, random() % 64 * 512};
        });
    }
    SECTION("blocks of all sizes, to the byte") {
        compare_with_maps(12, before, [](std::mt19937_64& random) {
            const std::uint64_t size_bytes = random() >> (16 + random() % 48);
            return Key{size_bytes, random() % 8, random() % 64 * 512};
        });
    }
    SECTION("many blocks of few sizes, too many for a list") {
        compare_with_maps(13, before, [](std::mt19937_64& random) {
            return Key{(1 + random() % 3) * 1024, random() % 8, random() % 1024 * 512};
        });
    }
    SECTION("blocks without a size, ordered by position") {
        compare_with_maps(14, before, [](std::mt19937_64& random) {
            return Key{0, 0, random() % 4096 * 512};
        });
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
        CHECK(free_key(ascending[i - 1]) < free_key(ascending[i]));
        CHECK_FALSE(free_key(ascending[i]) < free_key(ascending[i - 1]));
    }
}

TEST_CASE("the id table finds the same entries as a standard map") {
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
