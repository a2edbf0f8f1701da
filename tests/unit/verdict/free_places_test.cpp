#include "analyzer/analysis/verdict/free_places.h"

#include "analyzer/analysis/verdict/diagnosis.h"
#include "analyzer/analysis/verdict/verdict_text.h"
#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/support/units.h"

#include <catch2/catch.hpp>

#include <random>

using namespace fragtrace::analyzer;

namespace {

std::unique_ptr<Pool> pytorch(std::uint64_t capacity_bytes) {
    auto pool = make_pool("pytorch",
                          "",
                          std::make_unique<FixedDevice>(capacity_bytes, capacity_bytes, 2 * kMiB),
                          {0, 64, 96, 128});
    REQUIRE(pool.ok());
    return std::move(pool).value();
}

Outcome allocate(Pool& pool, BlockId block, std::uint64_t bytes, StreamId stream = 0) {
    return pool.allocate({.block = block, .requested_bytes = bytes, .stream = stream}).outcome;
}

}  // namespace

TEST_CASE("for a stream-bound request each stream's free blocks of its size class are listed") {
    const auto pool = pytorch(232 * kMiB);
    allocate(*pool, 0, 90 * kMiB, 1);
    pool->release(0, {});
    allocate(*pool, 1, 10 * kMiB, 1);  // uses the beginning of a free block: 80 MiB stay free
    allocate(*pool, 2, 30 * kMiB, 2);
    pool->release(2, {});
    allocate(*pool, 3, 12 * kMiB, 2);
    allocate(*pool, 4, 100 * kMiB, 0);
    allocate(*pool, 5, 1000, 3);  // small blocks, which cannot serve a large request
    const Request request{.block = 9, .requested_bytes = 70 * kMiB};
    REQUIRE(pool->allocate(request).outcome == Outcome::kOutOfMemory);
    const Verdict verdict = judge(*pool, request, 0);
    REQUIRE(verdict.id == "stream_bound");
    REQUIRE(verdict.places);
    CHECK(verdict.places->own.stream == 0);
    CHECK(verdict.places->own.free_bytes == 0);
    REQUIRE(verdict.places->elsewhere.size() == 2);
    CHECK(verdict.places->elsewhere[0].stream == 1);
    CHECK(verdict.places->elsewhere[0].free_bytes == 80 * kMiB);
    CHECK(verdict.places->elsewhere[0].largest_bytes == 80 * kMiB);
    CHECK(verdict.places->elsewhere[1].stream == 2);
    CHECK(verdict.places->elsewhere[1].free_bytes == 18 * kMiB);
    CHECK(verdict.places->elsewhere_bytes == 98 * kMiB);
    CHECK(serving_place(verdict) == &verdict.places->elsewhere[0]);
    CHECK(verdict_sentence(verdict, Outcome::kOutOfMemory).find("(of another stream)") !=
          std::string::npos);
}

TEST_CASE("free memory is listed by private pool, pools left out do not count") {
    const auto pool = pytorch(400 * kMiB);
    const auto ask = [&](BlockId block, std::uint64_t bytes, std::uint32_t private_pool) {
        pool->allocate({.block = block, .requested_bytes = bytes, .private_pool = private_pool});
    };
    pool->set_private_pool(1, {});
    pool->set_private_pool(2, {.graph = true});
    ask(0, 60 * kMiB, 1);
    ask(1, 40 * kMiB, 2);
    ask(2, 50 * kMiB, 0);
    ask(3, 1000, 0);
    for (BlockId block = 0; block < 3; ++block) {
        pool->release(block, {});
    }
    const HeapSnapshot heap = pool->snapshot();
    const FreePlace own{.stream = 0, .size_class = SizeClass::kLarge};
    const FreePlaces all = free_by_pool(heap, own, {});
    CHECK(all.own.free_bytes == 50 * kMiB);
    REQUIRE(all.elsewhere.size() == 3);
    CHECK(all.elsewhere[0].private_pool == 1);
    CHECK(all.elsewhere[0].free_bytes == 60 * kMiB);
    CHECK(all.elsewhere[1].private_pool == 2);
    CHECK(all.elsewhere[2].size_class == SizeClass::kSmall);
    CHECK(all.elsewhere[2].free_bytes == 2 * kMiB - 1024);
    const FreePlaces without = free_by_pool(heap, own, {2});
    REQUIRE(without.elsewhere.size() == 2);
    CHECK(without.elsewhere_bytes == all.elsewhere_bytes - 40 * kMiB);
}

TEST_CASE("with very many streams the list is short, the sums include all streams") {
    HeapSnapshot heap;
    std::mt19937_64 random(3);
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < 100; ++i) {
        const std::uint64_t bytes = 512 * (1 + random() % 1000);
        heap.segments.push_back({.size_bytes = bytes,
                                 .first_block = i,
                                 .block_count = 1,
                                 .stream = static_cast<StreamId>(i),
                                 .size_class = SizeClass::kLarge});
        heap.blocks.push_back({.size_bytes = bytes, .stream = static_cast<StreamId>(i)});
        sum += i == 7 ? 0 : bytes;
    }
    const FreePlaces places = free_by_stream(heap, {.stream = 7, .size_class = SizeClass::kLarge});
    CHECK(places.elsewhere_bytes == sum);
    CHECK(places.elsewhere.size() == kMostFreePlaces);
    CHECK(places.places_left_out == 99 - kMostFreePlaces);
    for (std::size_t i = 1; i < places.elsewhere.size(); ++i) {
        CHECK(places.elsewhere[i - 1].free_bytes >= places.elsewhere[i].free_bytes);
    }
}
