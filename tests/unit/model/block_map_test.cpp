// Compares the ordered list of blocks with std::map.
#include "analyzer/model/block_map.h"

#include <catch2/catch.hpp>

#include <map>
#include <random>

using fragtrace::analyzer::BlockMap;
using fragtrace::analyzer::RecordedBlock;

TEST_CASE("the block map behaves like an ordered map", "[block_map]") {
    BlockMap blocks;
    std::map<std::uint64_t, std::uint64_t> model;
    std::mt19937 random(3);
    for (int step = 0; step < 40000; ++step) {
        const std::uint64_t address = random() % 3000 * 512;
        const bool grow = step % 20000 < 12000 ? random() % 3 != 0 : random() % 3 == 0;
        const auto position = blocks.lower_bound(address);
        const auto expected = model.lower_bound(address);
        const RecordedBlock* found = blocks.at(position);
        REQUIRE((found == nullptr) == (expected == model.end()));
        if (found != nullptr) {
            REQUIRE(found->address == expected->first);
            REQUIRE(found->size_bytes == expected->second);
        }
        const RecordedBlock* before = blocks.before(position);
        REQUIRE((before == nullptr) == (expected == model.begin()));
        if (before != nullptr) {
            REQUIRE(before->address == std::prev(expected)->first);
        }
        const bool present = found != nullptr && found->address == address;
        if (grow && !present) {
            RecordedBlock block = {};
            block.address = address;
            block.size_bytes = random();
            // Insertion must not depend on what the caller knows.
            const BlockMap::Position hints[] = {position,
                                                {},
                                                blocks.lower_bound(random() % 3000 * 512),
                                                {random() % 90, random() % 70}};
            blocks.insert(block, hints[random() % 4]);
            model[address] = block.size_bytes;
        } else if (!grow && present) {
            blocks.erase(position);
            model.erase(address);
        }
        REQUIRE(blocks.size() == model.size());
    }
    auto at = blocks.lower_bound(0);
    for (const auto& [address, size_bytes] : model) {
        REQUIRE(blocks.at(at) != nullptr);
        REQUIRE(blocks.at(at)->address == address);
        at = blocks.next(at);
    }
    REQUIRE(blocks.at(at) == nullptr);
}
