// Compares the cheapest set with brute force over all sets, on small random heaps.
#include "analyzer/analysis/verdict/culprits.h"

#include "analyzer/analysis/verdict/releasable_bytes.h"
#include "analyzer/analysis/verdict/room_without.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

using namespace fragtrace::analyzer;

namespace {

constexpr std::uint64_t kUnit = std::uint64_t{2} << 20;

// Segments of random sizes, each cut into random blocks of whole units; some of them expandable,
// with pages of two or three units.
HeapSnapshot random_heap(std::mt19937& random, std::uint32_t segments, bool expandable = false) {
    HeapSnapshot heap;
    std::uint64_t address = 512 * kUnit;  // a reservation at address 0 means none
    for (std::uint32_t s = 0; s < segments; ++s) {
        HeapSegment segment{.address = address,
                            .first_block = static_cast<std::uint32_t>(heap.blocks.size())};
        std::uint64_t units = 1 + random() % 6;
        if (expandable && random() % 3 != 0) {
            segment.expandable = true;
            segment.page_bytes = (2 + random() % 2) * kUnit;
            segment.reservation = address;
            units = 1 + random() % 9;
            // Sometimes a range does not begin or end with a page.
            const std::uint64_t skipped = random() % 4 == 0 ? 1 : 0;
            segment.address = address += skipped * kUnit;
        }
        segment.may_release = random() % 8 != 0;
        for (std::uint64_t left = units; left > 0;) {
            const std::uint64_t size = 1 + random() % left;
            heap.blocks.push_back(
                {.address = address,
                 .size_bytes = size * kUnit,
                 .state = random() % 2 == 0 ? BlockState::kLive : BlockState::kFree});
            address += size * kUnit;
            left -= size;
            ++segment.block_count;
        }
        segment.size_bytes = units * kUnit;
        heap.segments.push_back(segment);
    }
    return heap;
}

std::uint64_t live_bytes(const HeapSnapshot& heap, std::uint32_t first, std::uint32_t count) {
    std::uint64_t live = 0;
    for (std::uint32_t i = first; i < first + count; ++i) {
        live += heap.blocks[i].state == BlockState::kFree ? 0 : heap.blocks[i].size_bytes;
    }
    return live;
}

// For each unit of a segment: whether it is free once the blocks of `gone` are freed.
std::vector<bool> free_units(const HeapSnapshot& heap,
                             const HeapSegment& segment,
                             const std::vector<bool>& gone) {
    std::vector<bool> units;
    for (std::uint32_t i = segment.first_block; i < segment.first_block + segment.block_count;
         ++i) {
        const bool is_free = heap.blocks[i].state == BlockState::kFree || gone[i];
        units.insert(units.end(), heap.blocks[i].size_bytes / kUnit, is_free);
    }
    return units;
}

bool has_room(const HeapSnapshot& heap, const std::vector<bool>& gone, std::uint64_t needed) {
    for (const HeapSegment& segment : heap.segments) {
        std::uint64_t run = 0;
        for (const bool unit : free_units(heap, segment, gone)) {
            run = unit ? run + kUnit : 0;
            if (run >= needed && segment.may_release) {
                return true;
            }
        }
    }
    return false;
}

std::uint64_t given_back(const HeapSnapshot& heap, const std::vector<bool>& gone) {
    std::uint64_t total = 0;
    for (const HeapSegment& segment : heap.segments) {
        const std::vector<bool> units = free_units(heap, segment, gone);
        if (!segment.may_release) {
            continue;
        }
        const std::size_t page =
            segment.expandable ? segment.page_bytes / kUnit : segment.size_bytes / kUnit;
        const std::size_t skipped =
            segment.expandable ? (segment.address - segment.reservation) / kUnit : 0;
        for (std::size_t from = (page - skipped) % page; from + page <= units.size();
             from += page) {
            const auto at = units.begin() + static_cast<std::ptrdiff_t>(from);
            if (std::all_of(
                    at, at + static_cast<std::ptrdiff_t>(page), [](bool unit) { return unit; })) {
                total += page * kUnit;
            }
        }
    }
    return total;
}

struct Answer {
    std::uint64_t cost = ~std::uint64_t{0};
    double sets = 0;
};

// Tries all sets of live blocks: the fewest bytes with which the request fits, and how many sets
// have so few.
Answer by_brute_force(const HeapSnapshot& heap, std::uint64_t needed, std::uint64_t missing) {
    std::vector<std::uint32_t> live;
    for (std::uint32_t i = 0; i < heap.blocks.size(); ++i) {
        if (heap.blocks[i].state != BlockState::kFree) {
            live.push_back(i);
        }
    }
    Answer best;
    for (std::uint32_t set = 0; set < (1u << live.size()); ++set) {
        std::vector<bool> gone(heap.blocks.size());
        std::uint64_t cost = 0;
        for (std::size_t i = 0; i < live.size(); ++i) {
            if ((set >> i & 1) != 0) {
                gone[live[i]] = true;
                cost += heap.blocks[live[i]].size_bytes;
            }
        }
        if (cost > best.cost || !(has_room(heap, gone, needed) ||
                                  (missing != 0 && given_back(heap, gone) >= missing))) {
            continue;
        }
        best = cost < best.cost ? Answer{cost, 1} : Answer{cost, best.sets + 1};
    }
    return best;
}

std::size_t count_live(const HeapSnapshot& heap) {
    return static_cast<std::size_t>(
        std::count_if(heap.blocks.begin(), heap.blocks.end(), [](const HeapBlock& block) {
            return block.state != BlockState::kFree;
        }));
}

}  // namespace

TEST_CASE("the cheapest set and the number of equally cheap ones match brute force") {
    std::mt19937 random(20260101);
    std::array<int, 4> kinds = {};
    int several = 0;
    for (int round = 0; round < 3000; ++round) {
        const auto segments = static_cast<std::uint32_t>(1 + random() % 6);
        HeapSnapshot heap = random_heap(random, segments, round % 2 == 1);
        if (count_live(heap) > 10) {
            continue;
        }
        heap.device_free_bytes = random() % 3 * kUnit;
        const std::uint64_t needed = (1 + random() % 10) * kUnit;
        const std::uint64_t missing =
            needed > heap.device_free_bytes ? needed - heap.device_free_bytes : 0;
        const CheapestSet found = find_cheapest_set(heap, needed, needed);
        const Answer expected = by_brute_force(heap, needed, missing);
        CAPTURE(round, needed / kUnit, heap.device_free_bytes / kUnit);
        ++kinds[static_cast<std::size_t>(found.kind)];
        if (expected.sets == 0) {
            CHECK(found.kind == CheapestSet::Kind::kNone);
            continue;
        }
        REQUIRE(found.kind != CheapestSet::Kind::kNone);
        CHECK(found.bytes_to_free == expected.cost);
        CHECK(found.equally_cheap_sets == expected.sets);
        CHECK_FALSE(found.approximate);
        several += expected.sets > 1 ? 1 : 0;
        std::vector<bool> gone(heap.blocks.size());
        std::uint64_t listed = 0;
        for (const std::uint32_t block : found.blocks) {
            CHECK(heap.blocks[block].state != BlockState::kFree);
            gone[block] = true;
            listed += heap.blocks[block].size_bytes;
        }
        CHECK(listed == expected.cost);
        CHECK((has_room(heap, gone, needed) || given_back(heap, gone) >= missing));
        // A library's request cannot use space inside the pool.
        const CheapestSet library = find_cheapest_set(heap, kNoWindow, needed);
        const Answer cover = by_brute_force(heap, kNoWindow, missing);
        CHECK(library.bytes_to_free == (cover.sets == 0 ? 0 : cover.cost));
        CHECK(library.equally_cheap_sets == cover.sets);
    }
    // Every kind of solution must have occurred, otherwise this test shows nothing.
    for (const int kind : kinds) {
        CHECK(kind > 50);
    }
    CHECK(several > 50);
}

TEST_CASE("a segment's releasable bytes follow each block removed from it") {
    std::mt19937 random(20260102);
    int more = 0;
    for (int round = 0; round < 2000; ++round) {
        HeapSnapshot heap = random_heap(random, 1, round % 2 == 1);
        const HeapSegment& segment = heap.segments.front();
        const auto count = static_cast<std::uint32_t>(heap.blocks.size());
        const ReleasableBytes back(heap, segment);
        const std::uint64_t as_it_is = given_back(heap, std::vector<bool>(count));
        CHECK(back.bytes() == as_it_is);
        for (std::uint32_t first = 0; first <= count; ++first) {
            for (std::uint32_t last = first; last <= count; ++last) {
                std::vector<bool> gone(count);
                std::fill(gone.begin() + first, gone.begin() + last, true);
                const std::uint64_t expected = given_back(heap, gone);
                CHECK(back.bytes_without(first, last) == expected);
                more += expected > as_it_is ? 1 : 0;
            }
        }
    }
    CHECK(more > 500);
}

TEST_CASE("windows as cheap as a cover are counted, even very many") {
    constexpr std::uint32_t kWindows = 100'000;
    HeapSnapshot heap;
    heap.segments.push_back(
        {.address = 512 * kUnit, .size_bytes = 2 * kWindows * kUnit, .block_count = 2 * kWindows});
    for (std::uint32_t i = 0; i < 2 * kWindows; ++i) {
        heap.blocks.push_back({.address = (512 + i) * kUnit,
                               .size_bytes = kUnit,
                               .state = i % 2 == 0 ? BlockState::kLive : BlockState::kFree});
    }
    const std::uint64_t end = (512 + 2 * kWindows) * kUnit;
    heap.segments.push_back(
        {.address = end, .size_bytes = 2 * kUnit, .first_block = 2 * kWindows, .block_count = 2});
    heap.blocks.push_back({.address = end, .size_bytes = kUnit, .state = BlockState::kLive});
    heap.blocks.push_back({.address = end + kUnit, .size_bytes = kUnit});
    // The window of the small segment is also the cover.
    const CheapestSet set = find_cheapest_set(heap, 2 * kUnit, 2 * kUnit);
    CHECK(set.kind == CheapestSet::Kind::kWindow);
    CHECK(set.bytes_to_free == kUnit);
    CHECK(set.equally_cheap_sets == kWindows + 1);
}

TEST_CASE("a block that spans several pages is freed once for all of them") {
    // Three pages of one unit under one block of three units: freeing the block frees all three
    // pages.
    HeapSnapshot heap;
    heap.segments.push_back(
        {.size_bytes = 4 * kUnit, .block_count = 2, .expandable = true, .page_bytes = kUnit});
    heap.blocks.push_back({.size_bytes = 3 * kUnit, .state = BlockState::kLive});
    heap.blocks.push_back(
        {.address = 3 * kUnit, .size_bytes = kUnit, .state = BlockState::kPending});
    const CheapestSet set = find_cheapest_set(heap, kNoWindow, 2 * kUnit);
    CHECK(set.kind == CheapestSet::Kind::kPages);
    CHECK(set.pages == 3);
    CHECK(set.bytes_to_free == 3 * kUnit);
    CHECK(set.equally_cheap_sets == 1);
}

TEST_CASE("equally cheap covers are counted") {
    // Four equal segments of which two are needed: six sets.
    HeapSnapshot heap;
    for (std::uint32_t s = 0; s < 4; ++s) {
        heap.segments.push_back({.address = s * 10 * kUnit,
                                 .size_bytes = 2 * kUnit,
                                 .first_block = 2 * s,
                                 .block_count = 2});
        heap.blocks.push_back(
            {.address = s * 10 * kUnit, .size_bytes = kUnit, .state = BlockState::kLive});
        heap.blocks.push_back({.address = s * 10 * kUnit + kUnit, .size_bytes = kUnit});
    }
    const CheapestSet set = find_cheapest_set(heap, 4 * kUnit, 4 * kUnit);
    CHECK(set.kind == CheapestSet::Kind::kSegments);
    CHECK(set.bytes_to_free == 2 * kUnit);
    CHECK(set.segments == 2);
    CHECK(set.equally_cheap_sets == 6);
    CHECK_FALSE(set.approximate);
}

TEST_CASE("segments that must not be released are no solution") {
    HeapSnapshot heap;
    heap.segments.push_back({.size_bytes = 8 * kUnit, .block_count = 1, .may_release = false});
    heap.blocks.push_back({.size_bytes = 8 * kUnit, .state = BlockState::kLive});
    CHECK(find_cheapest_set(heap, kUnit, kUnit).kind == CheapestSet::Kind::kNone);
}

TEST_CASE("blocked bytes add up to the free bytes of segments with a live block") {
    std::mt19937 random(7);
    for (int round = 0; round < 100; ++round) {
        const HeapSnapshot heap = random_heap(random, 5);
        const std::vector<std::uint64_t> held = held_open_bytes(heap);
        std::uint64_t expected = 0;
        for (const HeapSegment& segment : heap.segments) {
            const std::uint64_t live = live_bytes(heap, segment.first_block, segment.block_count);
            expected += live == 0 ? 0 : segment.size_bytes - live;
        }
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < held.size(); ++i) {
            CHECK((held[i] == 0 || heap.blocks[i].state != BlockState::kFree));
            sum += held[i];
        }
        CHECK(sum == expected);
    }
}

TEST_CASE("in an expandable segment a live block blocks only the pages it lies in") {
    HeapSnapshot heap;
    heap.segments.push_back({.address = 100 * kUnit,
                             .size_bytes = 50 * kUnit,
                             .block_count = 5,
                             .expandable = true,
                             .page_bytes = 10 * kUnit});
    std::uint64_t address = 100 * kUnit;
    for (const auto& [units, live] : {std::pair(3, true),    // page 0: 7 units are free
                                      std::pair(22, false),  // page 1 could be released
                                      std::pair(1, true),    // page 2: 7 other units are free
                                      std::pair(2, false),
                                      std::pair(22, true)}) {  // 2 units of page 2; page 3 is full
        heap.blocks.push_back({.address = address,
                               .size_bytes = units * kUnit,
                               .state = live ? BlockState::kLive : BlockState::kFree});
        address += static_cast<std::uint64_t>(units) * kUnit;
    }
    const std::vector<std::uint64_t> held = held_open_bytes(heap);
    CHECK(held[0] == 7 * kUnit);
    CHECK(held[1] == 0);
    // Page 2 has 1 and 2 live units, which share its 7 free units.
    CHECK(held[2] == 7 * kUnit / 3);
    CHECK(held[4] == 7 * kUnit - 7 * kUnit / 3);
}

TEST_CASE("only windows in which the request is allowed count") {
    // A hole of another stream cannot be used. Its segment can, once it is empty.
    HeapSnapshot heap;
    for (const StreamId stream : {StreamId{0}, StreamId{1}}) {
        heap.segments.push_back({.address = stream * 100 * kUnit,
                                 .size_bytes = 4 * kUnit,
                                 .first_block = 2u * stream,
                                 .block_count = 2,
                                 .stream = stream});
        const std::uint64_t live = stream == 0 ? 3 : 1;
        heap.blocks.push_back({.address = stream * 100 * kUnit,
                               .size_bytes = live * kUnit,
                               .state = BlockState::kLive});
        heap.blocks.push_back(
            {.address = (stream * 100 + live) * kUnit, .size_bytes = (4 - live) * kUnit});
    }
    CHECK(find_cheapest_set(heap, 3 * kUnit, 3 * kUnit).bytes_to_free == 0);
    const CheapestSet set =
        find_cheapest_set(heap, 3 * kUnit, 3 * kUnit, {.stream = 0, .private_pool = 0});
    CHECK(set.kind == CheapestSet::Kind::kSegments);
    CHECK(set.bytes_to_free == kUnit);
    CHECK(set.blocks == std::vector<std::uint32_t>{2});
}

TEST_CASE("the room without a line is the free memory once its blocks are freed") {
    std::mt19937 random(11);
    for (int round = 0; round < 500; ++round) {
        HeapSnapshot heap = random_heap(random, 4, round % 2 == 0);
        heap.device_free_bytes = random() % 4 * kUnit;
        constexpr std::uint32_t kLines = 3;
        std::vector<std::uint32_t> line;
        for (const HeapBlock& block : heap.blocks) {
            const std::uint32_t of = random() % (kLines + 1);
            line.push_back(block.state == BlockState::kFree || of == kLines ? kNoLine : of);
        }
        const RoomWanted wanted{
            .place = {}, .window_bytes = 4 * kUnit, .driver_bytes = (4 + random() % 8) * kUnit};
        const std::vector<Room> rooms = room_without(heap, line, kLines, wanted);
        REQUIRE(rooms.size() == kLines);
        const std::vector<bool> none(heap.blocks.size());
        for (std::uint32_t one = 0; one < kLines; ++one) {
            std::vector<bool> gone(heap.blocks.size());
            std::vector<bool> touched(heap.segments.size());
            for (std::size_t s = 0; s < heap.segments.size(); ++s) {
                const HeapSegment& segment = heap.segments[s];
                for (std::uint32_t i = 0; i < segment.block_count; ++i) {
                    gone[segment.first_block + i] = line[segment.first_block + i] == one;
                    touched[s] = touched[s] || gone[segment.first_block + i];
                }
            }
            CHECK(rooms[one].driver_bytes ==
                  heap.device_free_bytes + given_back(heap, gone) - given_back(heap, none));
            HeapSnapshot of_line = heap;  // only segments in which the line has a block count
            of_line.segments.clear();
            for (std::size_t s = 0; s < heap.segments.size(); ++s) {
                if (touched[s]) {
                    of_line.segments.push_back(heap.segments[s]);
                }
            }
            CHECK((rooms[one].longest_run_bytes >= 4 * kUnit) ==
                  has_room(of_line, gone, 4 * kUnit));
            CHECK(rooms[one].serves(wanted) ==
                  (rooms[one].longest_run_bytes >= wanted.window_bytes ||
                   rooms[one].driver_bytes >= wanted.driver_bytes));
        }
    }
}

TEST_CASE("removing a line that blocks much memory may still free too little") {
    // One segment of 40: line 0 has 1 block in the middle of 38 free units. Four segments of 20,
    // each filled by line 1, which has no hole.
    HeapSnapshot heap;
    const auto segment = [&heap](std::uint64_t address, std::vector<std::uint64_t> units) {
        HeapSegment made{.address = address * kUnit,
                         .first_block = static_cast<std::uint32_t>(heap.blocks.size())};
        bool live = units.size() == 1;
        for (const std::uint64_t size : units) {
            heap.blocks.push_back({.address = address * kUnit,
                                   .size_bytes = size * kUnit,
                                   .state = live ? BlockState::kLive : BlockState::kFree});
            live = !live;
            made.size_bytes += size * kUnit;
            ++made.block_count;
        }
        heap.segments.push_back(made);
    };
    segment(1000, {19, 2, 19});
    std::vector<std::uint32_t> line = {kNoLine, 0, kNoLine};
    for (std::uint64_t i = 0; i < 4; ++i) {
        segment(2000 + 100 * i, {20});
        line.push_back(1);
    }
    const RoomWanted wanted{.place = {}, .window_bytes = 60 * kUnit, .driver_bytes = 60 * kUnit};
    const std::vector<Room> rooms = room_without(heap, line, 2, wanted);
    CHECK(rooms[0].bytes() == 40 * kUnit);
    CHECK_FALSE(rooms[0].serves(wanted));
    CHECK(rooms[1].driver_bytes == 80 * kUnit);
    CHECK(rooms[1].serves(wanted));
}
