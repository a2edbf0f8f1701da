// Properties of the simulated pytorch pool for any script: random calls under random settings.
// After every few calls everything is recomputed from the address map.
#include "analyzer/pools/pytorch/pytorch_pool.h"
#include "analyzer/support/units.h"
#include "tests/unit/pools/random_bytes.h"

#include <catch2/catch.hpp>

#include <map>
#include <random>
#include <string>
#include <vector>

namespace fragtrace::analyzer {
namespace {

constexpr int kScripts = 600;
constexpr int kCalls = 250;

const std::vector<std::string> configs = {
    "",
    "expandable_segments:True",
    "max_split_size_mb:30",
    "garbage_collection_threshold:0.4,per_process_memory_fraction:0.8",
    "roundup_power2_divisions:4",
    "expandable_segments:True,per_process_memory_fraction:0.7,roundup_power2_divisions:[1:2,>:8]",
    "large_segment_size_mb:12,max_split_size_mb:20,max_non_split_rounding_mb:40",
    "throw_on_cudamalloc_oom:True",
};

struct Live {
    std::uint64_t requested_bytes = 0;
    bool pending = false;
};

struct Script {
    explicit Script(unsigned seed)
        : random(seed),
          card_bytes((64 + random() % 512) * kMiB),
          pool(*parse_pytorch_config(configs[seed % configs.size()]),
               std::make_unique<FixedDevice>(card_bytes, card_bytes, 512),
               {0, 77, 33}) {
        pool.count_blocks();
    }

    void call() {
        const auto kind = random() % 100;
        if (kind < 2) {
            pool.empty_cache();
            events.clear();
            std::erase_if(live, [](const auto& entry) { return entry.second.pending; });
        } else if (kind < 3) {
            pool.set_private_pool(2, {.freeable = random() % 2 == 0});
        } else if (kind < 12 && !events.empty()) {
            const std::size_t at = random() % events.size();
            pool.complete(events[at]);
            events.erase(events.begin() + static_cast<std::ptrdiff_t>(at));
        } else if (kind < 45 && !live.empty()) {
            release();
        } else {
            allocate();
        }
    }

    void allocate() {
        const Request request = {.block = next_block++,
                                 .requested_bytes = random_bytes(&random, card_bytes / 2),
                                 .stream = static_cast<StreamId>(random() % 3),
                                 .private_pool = random() % 5 == 0 ? 2U : 0U};
        const AllocateResult result = pool.allocate(request);
        if (result.outcome == Outcome::kOutOfMemory || result.outcome == Outcome::kRejected) {
            REQUIRE_FALSE(pool.find(request.block).has_value());
            return;
        }
        live[request.block] = {request.requested_bytes, false};
        REQUIRE(result.placement.block_bytes >= pool.rounded_bytes(request.requested_bytes));
        const auto found = pool.find(request.block);
        REQUIRE(found.has_value());
        REQUIRE(found->segment == result.placement.segment);
        REQUIRE(found->offset_bytes == result.placement.offset_bytes);
    }

    void release() {
        auto chosen = live.begin();
        std::advance(chosen, static_cast<std::ptrdiff_t>(random() % live.size()));
        if (chosen->second.pending) {
            REQUIRE_FALSE(pool.release(chosen->first, {}));
            return;
        }
        std::vector<Pool::PendingOn> pending;
        for (StreamId stream = 1; stream < 3; ++stream) {
            if (random() % 8 == 0) {
                pending.push_back({next_event, stream});
                events.push_back(next_event++);
            }
        }
        REQUIRE(pool.release(chosen->first, pending));
        if (pending.empty()) {
            live.erase(chosen);
        } else {
            chosen->second.pending = true;
        }
    }

    std::mt19937 random;
    std::uint64_t card_bytes;
    PytorchPool pool;
    std::map<BlockId, Live> live;
    std::vector<PendingId> events;
    BlockId next_block = 1;
    PendingId next_event = 1;
};

// Sums from the address map, compared with the pool's counters.
struct Sums {
    std::uint64_t requested = 0;
    std::uint64_t requested_and_pending = 0;
    std::uint64_t allocated = 0;
    std::uint64_t active = 0;
    std::uint64_t reserved = 0;
    std::uint64_t releasable = 0;
    std::uint64_t inactive_split = 0;
    std::uint64_t inactive_split_bytes = 0;
    std::uint64_t segments = 0;
    std::uint64_t live_blocks = 0;
};

Sums recompute(const HeapSnapshot& heap) {
    Sums sums;
    DeviceAddress end = 0;
    for (const HeapSegment& segment : heap.segments) {
        REQUIRE(segment.address >= end);
        REQUIRE(segment.block_count > 0);
        end = segment.address;
        sums.segments += segment.expandable ? 0 : 1;
        bool free_before = false;
        for (std::uint32_t i = 0; i < segment.block_count; ++i) {
            const HeapBlock& block = heap.blocks[segment.first_block + i];
            REQUIRE(block.address == end);
            REQUIRE(block.size_bytes > 0);
            REQUIRE(block.size_bytes % 512 == 0);
            end += block.size_bytes;
            const bool free = block.state == BlockState::kFree;
            REQUIRE_FALSE((free && free_before));
            free_before = free;
            if (free) {
                const bool split = segment.block_count > 1;
                if (segment.expandable) {
                    // Ranges begin at whole pages, so pages can be counted from the start of the
                    // range.
                    const std::uint64_t page = segment.page_bytes;
                    const std::uint64_t from = (block.address - segment.address + page - 1) / page;
                    const std::uint64_t to = (end - segment.address) / page;
                    sums.releasable += segment.may_release && to > from ? (to - from) * page : 0;
                } else if (split) {
                    ++sums.inactive_split;
                    sums.inactive_split_bytes += block.size_bytes;
                } else if (segment.may_release) {
                    sums.releasable += block.size_bytes;
                }
                continue;
            }
            sums.active += block.size_bytes;
            sums.requested_and_pending += block.requested_bytes;
            if (block.state == BlockState::kLive) {
                ++sums.live_blocks;
                sums.allocated += block.size_bytes;
                sums.requested += block.requested_bytes;
            }
        }
        REQUIRE(end - segment.address == segment.size_bytes);
        sums.reserved += segment.size_bytes;
    }
    return sums;
}

void check(const Script& script) {
    const PytorchPool& pool = script.pool;
    const HeapSnapshot heap = pool.snapshot();
    const Sums sums = recompute(heap);
    const PoolStatistics& statistics = pool.statistics();
    const PytorchStatistics& detail = pool.pytorch_statistics();
    REQUIRE(statistics.requested.current == sums.requested);
    REQUIRE(statistics.allocated.current == sums.allocated);
    REQUIRE(statistics.active.current == sums.active);
    REQUIRE(statistics.reserved.current == sums.reserved);
    REQUIRE(detail.requested_bytes.all.current == sums.requested_and_pending);
    REQUIRE(detail.allocated_bytes.all.current == sums.allocated);
    REQUIRE(detail.active_bytes.all.current == sums.active);
    REQUIRE(detail.reserved_bytes.all.current == sums.reserved);
    REQUIRE(detail.allocation.all.current == sums.live_blocks);
    REQUIRE(detail.segment.all.current == sums.segments);
    REQUIRE(detail.inactive_split.all.current == sums.inactive_split);
    REQUIRE(detail.inactive_split_bytes.all.current == sums.inactive_split_bytes);
    REQUIRE(pool.releasable_bytes() == sums.releasable);
    REQUIRE(sums.allocated == sums.requested + statistics.rounding_bytes + statistics.slack_bytes);
    REQUIRE(sums.reserved + heap.device_free_bytes == script.card_bytes);
    REQUIRE(statistics.requested.peak <= statistics.allocated.peak);
    REQUIRE(statistics.allocated.peak <= statistics.active.peak);
    REQUIRE(statistics.active.peak <= statistics.reserved.peak);
    REQUIRE(statistics.reserved.peak <= script.card_bytes);
    for (StreamId stream = 0; stream < 3; ++stream) {
        REQUIRE(pool.largest_free_bytes({1, 5 * kMiB, stream, 0}) <= sums.reserved - sums.active);
    }
    std::uint64_t requested = 0;
    for (const auto& [id, block] : script.live) {
        requested += block.pending ? 0 : block.requested_bytes;
        REQUIRE((pool.find(id).has_value() || block.pending));
    }
    REQUIRE(requested == sums.requested);
}

TEST_CASE("the pool agrees with its own address map") {
    for (unsigned seed = 0; seed < kScripts; ++seed) {
        INFO("seed " << seed);
        Script script(seed);
        for (int call = 0; call < kCalls; ++call) {
            script.call();
            if (call % 10 == 0) {
                check(script);
            }
        }
        check(script);
    }
}

TEST_CASE("a clone behaves like the original") {
    for (unsigned seed = 0; seed < 40; ++seed) {
        INFO("seed " << seed);
        Script script(seed);
        for (int call = 0; call < 150; ++call) {
            script.call();
        }
        const std::unique_ptr<Pool> copy = script.pool.clone();
        for (int i = 0; i < 60; ++i) {
            const Request request = {
                .block = script.next_block++,
                .requested_bytes = random_bytes(&script.random, script.card_bytes / 2),
                .stream = static_cast<StreamId>(i % 3)};
            const AllocateResult here = script.pool.allocate(request);
            const AllocateResult there = copy->allocate(request);
            REQUIRE(here.outcome == there.outcome);
            REQUIRE(here.placement.segment == there.placement.segment);
            REQUIRE(here.placement.offset_bytes == there.placement.offset_bytes);
            if (i % 3 == 0) {
                REQUIRE(script.pool.release(request.block, {}) == copy->release(request.block, {}));
            }
        }
        REQUIRE(script.pool.statistics().reserved.peak == copy->statistics().reserved.peak);
    }
}

TEST_CASE("a pool that adopts another pool's memory serves requests like that pool") {
    for (unsigned seed = 0; seed < 300; ++seed) {
        const std::string config = configs[seed % configs.size()];
        if (config.find("garbage") != std::string::npos) {
            continue;  // depends on the age of blocks, which is not in the map
        }
        INFO("seed " << seed << ", " << config);
        Script script(seed);
        for (int call = 0; call < 200; ++call) {
            script.call();
        }
        script.pool.relax(Relaxation::kPendingComplete);
        HeapSnapshot heap = script.pool.snapshot();
        std::stable_sort(heap.segments.begin(),
                         heap.segments.end(),
                         [](const HeapSegment& a, const HeapSegment& b) {
                             return a.obtained_by < b.obtained_by;
                         });
        PytorchPool heir(*parse_pytorch_config(config),
                         std::make_unique<FixedDevice>(script.card_bytes, script.card_bytes, 512),
                         {0, 77, 33});
        heir.allocate({.block = 1, .requested_bytes = 5 * kMiB});  // adopt() discards it
        REQUIRE(heir.adopt(heap));
        for (const HeapSegment& segment : heap.segments) {
            heir.set_private_pool(segment.private_pool, {.freeable = segment.may_release});
        }
        const PoolStatistics& was = script.pool.statistics();
        REQUIRE(heir.statistics().reserved.current == was.reserved.current);
        REQUIRE(heir.statistics().allocated.current == was.allocated.current);
        REQUIRE(heir.statistics().requested.current == was.requested.current);
        REQUIRE(heir.statistics().rounding_bytes == was.rounding_bytes);
        REQUIRE(heir.releasable_bytes() == script.pool.releasable_bytes());
        REQUIRE(heir.device().free_bytes() == script.pool.device().free_bytes());
        for (int i = 0; i < 80; ++i) {
            const Request request = {
                .block = script.next_block++,
                .requested_bytes = random_bytes(&script.random, script.card_bytes / 2),
                .stream = static_cast<StreamId>(i % 3),
                .private_pool = i % 7 == 0 ? 2U : 0U};
            const AllocateResult here = script.pool.allocate(request);
            const AllocateResult there = heir.allocate(request);
            REQUIRE(here.outcome == there.outcome);
            REQUIRE(here.placement.offset_bytes == there.placement.offset_bytes);
            REQUIRE(here.placement.block_bytes == there.placement.block_bytes);
            if (i % 3 == 0) {
                REQUIRE(script.pool.release(request.block, {}) == heir.release(request.block, {}));
            }
            if (i % 5 == 0 && !script.live.empty()) {
                const BlockId old = script.live.begin()->first;
                REQUIRE(script.pool.release(old, {}) == heir.release(old, {}));
                script.live.erase(script.live.begin());
            }
        }
        REQUIRE(heir.statistics().reserved.current == was.reserved.current);
    }
}

TEST_CASE("the pool stays consistent under relaxations in any order") {
    for (unsigned seed = 0; seed < 200; ++seed) {
        INFO("seed " << seed);
        Script script(seed);
        for (int call = 0; call < 150; ++call) {
            script.call();
        }
        const std::unique_ptr<Pool> copy = script.pool.clone();
        for (int i = 0; i < 4; ++i) {
            copy->relax(static_cast<Relaxation>(script.random() % 6));
            const Sums sums = recompute(copy->snapshot());
            REQUIRE(copy->statistics().reserved.current == sums.reserved);
            REQUIRE(copy->statistics().active.current == sums.active);
            copy->allocate({.block = script.next_block++,
                            .requested_bytes = random_bytes(&script.random, script.card_bytes / 2),
                            .stream = static_cast<StreamId>(i % 3)});
        }
        for (const auto& [id, block] : script.live) {
            copy->release(id, {});
        }
        REQUIRE(copy->relax(Relaxation::kPendingComplete));
        REQUIRE(copy->relax(Relaxation::kOnePool));
        copy->empty_cache();
        const Sums sums = recompute(copy->snapshot());
        REQUIRE(copy->statistics().reserved.current == sums.reserved);
        REQUIRE(sums.releasable == 0);
        REQUIRE(copy->device().free_bytes() + sums.reserved == script.card_bytes);
    }
}

}  // namespace
}  // namespace fragtrace::analyzer
