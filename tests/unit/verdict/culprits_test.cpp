// The cheapest set against brute force over all sets, on small random heaps.
#include "analyzer/verdict/culprits.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>

using namespace fragtrace::analyzer;

namespace {

constexpr std::uint64_t kUnit = std::uint64_t{2} << 20;

// Segments of random sizes, each cut into random blocks of whole units.
HeapSnapshot random_heap(std::mt19937& random, std::uint32_t segments) {
    HeapSnapshot heap;
    std::uint64_t address = 0;
    for (std::uint32_t s = 0; s < segments; ++s) {
        HeapSegment segment{.address = address,
                            .first_block = static_cast<std::uint32_t>(heap.blocks.size())};
        const std::uint64_t units = 1 + random() % 6;
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

struct Answer {
    std::uint64_t cost = ~std::uint64_t{0};
    double sets = 0;
};

Answer cover_by_brute_force(const HeapSnapshot& heap, std::uint64_t missing_bytes) {
    Answer best;
    for (std::uint32_t set = 0; set < (1u << heap.segments.size()); ++set) {
        std::uint64_t gain = 0;
        std::uint64_t cost = 0;
        for (std::uint32_t s = 0; s < heap.segments.size(); ++s) {
            if ((set >> s & 1) != 0) {
                gain += heap.segments[s].size_bytes;
                cost +=
                    live_bytes(heap, heap.segments[s].first_block, heap.segments[s].block_count);
            }
        }
        if (gain < missing_bytes) {
            continue;
        }
        if (cost < best.cost) {
            best = {cost, 1};
        } else if (cost == best.cost) {
            best.sets += 1;
        }
    }
    return best;
}

std::uint64_t window_by_brute_force(const HeapSnapshot& heap, std::uint64_t needed) {
    std::uint64_t best = ~std::uint64_t{0};
    for (const HeapSegment& segment : heap.segments) {
        for (std::uint32_t i = 0; i < segment.block_count; ++i) {
            for (std::uint32_t n = 1; i + n <= segment.block_count; ++n) {
                std::uint64_t size = 0;
                for (std::uint32_t k = i; k < i + n; ++k) {
                    size += heap.blocks[segment.first_block + k].size_bytes;
                }
                if (size >= needed) {
                    best = std::min(best, live_bytes(heap, segment.first_block + i, n));
                }
            }
        }
    }
    return best;
}

}  // namespace

TEST_CASE("the cheapest set is the cheaper of the best window and the best cover") {
    std::mt19937 random(20260101);
    int covers = 0;
    int windows = 0;
    for (int round = 0; round < 400; ++round) {
        HeapSnapshot heap = random_heap(random, 1 + random() % 8);
        heap.device_free_bytes = random() % 3 * kUnit;
        const std::uint64_t needed = (1 + random() % 8) * kUnit;
        const std::uint64_t missing =
            needed > heap.device_free_bytes ? needed - heap.device_free_bytes : 0;
        const CheapestSet found = find_cheapest_set(heap, needed, needed);
        const Answer cover = missing == 0 ? Answer{} : cover_by_brute_force(heap, missing);
        const std::uint64_t window = window_by_brute_force(heap, needed);
        const std::uint64_t expected = std::min(cover.cost, window);
        CAPTURE(round, needed / kUnit, heap.device_free_bytes / kUnit);
        if (expected == ~std::uint64_t{0}) {
            CHECK(found.kind == CheapestSet::Kind::kNone);
            continue;
        }
        REQUIRE(found.kind != CheapestSet::Kind::kNone);
        CHECK(found.bytes_to_free == expected);
        std::uint64_t listed = 0;
        for (const std::uint32_t block : found.blocks) {
            CHECK(heap.blocks[block].state != BlockState::kFree);
            listed += heap.blocks[block].size_bytes;
        }
        CHECK(listed == expected);
        covers += found.kind == CheapestSet::Kind::kSegments ? 1 : 0;
        windows += found.kind == CheapestSet::Kind::kWindow ? 1 : 0;
    }
    // Both ways must have been exercised for this test to mean anything.
    CHECK(covers > 20);
    CHECK(windows > 20);
}

TEST_CASE("equally cheap covers are counted") {
    // Four alike segments of which two are needed: six sets.
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

TEST_CASE("segments that may not be released are no way out") {
    HeapSnapshot heap;
    heap.segments.push_back({.size_bytes = 8 * kUnit, .block_count = 1, .may_release = false});
    heap.blocks.push_back({.size_bytes = 8 * kUnit, .state = BlockState::kLive});
    CHECK(find_cheapest_set(heap, kUnit, kUnit).kind == CheapestSet::Kind::kNone);
}

TEST_CASE("held-open bytes add up to the free bytes of segments that have a live block") {
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
