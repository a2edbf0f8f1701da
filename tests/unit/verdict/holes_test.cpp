// The largest request that each hole can serve, and where free memory lies.
#include "analyzer/analysis/verdict/holes.h"

#include "analyzer/analysis/verdict/culprits.h"
#include "analyzer/analysis/verdict/free_places.h"
#include "analyzer/pools/pytorch/pytorch_config.h"
#include "analyzer/pools/pytorch/pytorch_rules.h"
#include "analyzer/support/units.h"

#include <catch2/catch.hpp>

namespace fragtrace::analyzer {
namespace {

// A segment of adjacent blocks. Sizes below zero are free blocks.
void add_segment(HeapSnapshot* heap,
                 DeviceAddress address,
                 SizeClass size_class,
                 const std::vector<std::int64_t>& sizes) {
    heap->segments.push_back({.address = address,
                              .first_block = static_cast<std::uint32_t>(heap->blocks.size()),
                              .block_count = static_cast<std::uint32_t>(sizes.size()),
                              .stream = 0,
                              .size_class = size_class});
    for (const std::int64_t size : sizes) {
        const auto bytes = static_cast<std::uint64_t>(std::abs(size));
        heap->blocks.push_back({.address = address + heap->segments.back().size_bytes,
                                .size_bytes = bytes,
                                .state = size < 0 ? BlockState::kFree : BlockState::kLive});
        heap->segments.back().size_bytes += bytes;
    }
}

constexpr auto mib = static_cast<std::int64_t>(kMiB);

}  // namespace

TEST_CASE("a hole serves a request of exactly its size, if its size class allows it") {
    HeapSnapshot heap;
    add_segment(&heap, 0x100000000, SizeClass::kLarge, {-20 * mib});
    add_segment(&heap, 0x200000000, SizeClass::kLarge, {10 * mib, -10 * mib});
    add_segment(&heap, 0x300000000, SizeClass::kLarge, {19 * mib, -mib});
    add_segment(&heap, 0x400000000, SizeClass::kSmall, {512, -2 * mib + 512});
    const std::vector<Hole> holes = holes_of(heap, PytorchConfig{}, PytorchRules{});
    REQUIRE(holes.size() == 4);
    CHECK(holes[0].largest_request_bytes == 20 * kMiB);
    CHECK(holes[0].whole_segment);
    CHECK(holes[1].largest_request_bytes == 10 * kMiB);
    CHECK_FALSE(holes[1].whole_segment);
    CHECK(holes[2].size_class == SizeClass::kSmall);
    CHECK(holes[2].largest_request_bytes == kMiB);
    CHECK(holes[3].largest_request_bytes == 0);  // large requests are larger than 1 MiB
}

TEST_CASE("a page that ends beyond its range counts only the part inside") {
    HeapSnapshot heap;
    add_segment(&heap, 0x100000000, SizeClass::kLarge, {-25 * mib, 5 * mib});
    heap.segments[0].expandable = true;
    heap.segments[0].page_bytes = 20 * kMiB;
    heap.segments[0].reservation = 0x100000000;
    CHECK(held_open_bytes(heap) == std::vector<std::uint64_t>{0, 5 * kMiB});
}

TEST_CASE("the largest free block of a place is the largest of all its segments") {
    HeapSnapshot heap;
    add_segment(&heap, 0x100000000, SizeClass::kLarge, {-8 * mib, mib, -11 * mib});
    add_segment(&heap, 0x200000000, SizeClass::kLarge, {mib, -4 * mib});
    const FreePlaces places =
        free_by_stream(heap, {.stream = 0, .private_pool = 0, .size_class = SizeClass::kLarge});
    CHECK(places.own.free_bytes == 23 * kMiB);
    CHECK(places.own.largest_bytes == 11 * kMiB);
}

}  // namespace fragtrace::analyzer
