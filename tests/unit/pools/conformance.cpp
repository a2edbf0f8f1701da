#include "tests/unit/pools/conformance.h"

#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/replay/validation/placement_check.h"
#include "analyzer/support/units.h"
#include "tests/unit/pools/random_bytes.h"

#include <catch2/catch.hpp>

#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <vector>

namespace fragtrace::analyzer {
namespace {

constexpr unsigned kScripts = 200;
constexpr int kCalls = 250;
constexpr std::uint64_t kPageBytes = 256;
const std::vector<std::uint64_t> kStreams = {0, 77, 33};

std::unique_ptr<Pool> make(const std::string& name,
                           const std::string& config,
                           std::uint64_t card_bytes) {
    auto pool = make_pool(
        name, config, std::make_unique<FixedDevice>(card_bytes, card_bytes, kPageBytes), kStreams);
    if (!pool.ok()) {
        FAIL(pool.error().message);
    }
    return std::move(pool).value();
}

struct Script {
    Script(const std::string& name, const std::string& config, unsigned seed)
        : random(seed),
          card_bytes((64 + random() % 512) * kMiB),
          pool(make(name, config, card_bytes)),
          check(find_pool(name)->streams, card_bytes) {}

    Request random_request() {
        return {.block = next_block++,
                .requested_bytes = random_bytes(&random, card_bytes / 3),
                .stream = static_cast<StreamId>(random() % kStreams.size()),
                .upper_end = random() % 2 == 0};
    }

    void call() {
        const auto kind = random() % 100;
        if (kind < 2) {
            pool->empty_cache();
            check.emptied(*pool);
            events.clear();
        } else if (kind < 10 && !events.empty()) {
            const std::size_t at = random() % events.size();
            pool->complete(events[at]);
            check.completed(events[at]);
            events.erase(events.begin() + static_cast<std::ptrdiff_t>(at));
        } else if (kind < 45 && !live.empty()) {
            release();
        } else {
            const Request request = random_request();
            const AllocateResult result = pool->allocate(request);
            check.allocated(request, result, *pool);
            if (result.outcome != Outcome::kOutOfMemory && result.outcome != Outcome::kRejected) {
                live.push_back(request.block);
            }
        }
        REQUIRE(check.violation().empty());
    }

    void release() {
        const std::size_t at = random() % live.size();
        std::vector<Pool::PendingOn> pending;
        for (StreamId stream = 1; stream < kStreams.size(); ++stream) {
            if (random() % 8 == 0) {
                pending.push_back({next_event, stream});
                events.push_back(next_event++);
            }
        }
        REQUIRE(pool->release(live[at], pending));
        check.released(live[at], pending, *pool);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
    }

    void compare() {
        check.compare(*pool);
        REQUIRE(check.violation().empty());
        const PoolStatistics& statistics = pool->statistics();
        // Without a pool, requests are not multiples of the size to which the driver rounds.
        const std::uint64_t accounted = statistics.reserved.current + pool->device().free_bytes();
        REQUIRE(accounted <= card_bytes);
        REQUIRE((accounted == card_bytes || pool->name() == "none"));
        REQUIRE(statistics.requested.peak <= statistics.allocated.peak);
        REQUIRE(statistics.allocated.peak <= statistics.active.peak);
        REQUIRE(statistics.active.peak <= statistics.reserved.peak);
        const std::uint64_t free_bytes = statistics.reserved.current - statistics.active.current;
        REQUIRE(pool->releasable_bytes() <= free_bytes);
        REQUIRE(pool->largest_free_bytes({.requested_bytes = kMiB}) <= free_bytes);
    }

    std::mt19937 random;
    std::uint64_t card_bytes;
    std::unique_ptr<Pool> pool;
    PlacementCheck check;
    std::vector<BlockId> live;
    std::vector<PendingId> events;
    BlockId next_block = 1;
    PendingId next_event = 1;
};

void run(Script* script, int calls) {
    for (int call = 0; call < calls; ++call) {
        script->call();
        if (call % 10 == 0) {
            script->compare();
        }
    }
}

// Checks which block size this pool would give to a request, without a trace.
void check_rounding(const Pool& pool) {
    for (const std::uint64_t bytes : {std::uint64_t{1}, 511 * kKiB + 1, 3 * kMiB, 100 * kMiB + 7}) {
        REQUIRE(pool.rounded_bytes(bytes) >= bytes);
        REQUIRE(pool.rounded_bytes(pool.rounded_bytes(bytes)) == pool.rounded_bytes(bytes));
    }
}

void check_refusals(Script* script) {
    const PoolStatistics before = script->pool->statistics();
    REQUIRE_FALSE(script->pool->release(script->next_block + 1000, {}));
    REQUIRE_FALSE(script->pool->find(script->next_block + 1000).has_value());
    script->compare();
    for (const std::uint64_t bytes : {script->card_bytes + 1, std::uint64_t{1} << 60}) {
        const Request request = {.block = script->next_block++, .requested_bytes = bytes};
        const AllocateResult result = script->pool->allocate(request);
        REQUIRE((result.outcome == Outcome::kOutOfMemory || result.outcome == Outcome::kRejected));
        script->check.allocated(request, result, *script->pool);
        script->compare();
    }
    REQUIRE(script->pool->statistics().requested.current == before.requested.current);
    REQUIRE(script->pool->statistics().ooms > before.ooms);
}

void check_clone(Script* script) {
    const std::unique_ptr<Pool> copy = script->pool->clone();
    const std::unique_ptr<Pool> untouched = script->pool->clone();
    REQUIRE(copy->name() == script->pool->name());
    REQUIRE(copy->config() == script->pool->config());
    const std::uint64_t free_bytes = copy->device().free_bytes();
    for (int i = 0; i < 60; ++i) {
        const Request request = script->random_request();
        const AllocateResult here = script->pool->allocate(request);
        const AllocateResult there = copy->allocate(request);
        script->check.allocated(request, here, *script->pool);
        REQUIRE(here.outcome == there.outcome);
        REQUIRE(here.placement.segment == there.placement.segment);
        REQUIRE(here.placement.offset_bytes == there.placement.offset_bytes);
        if (i % 3 == 0) {
            REQUIRE(script->pool->release(request.block, {}) == copy->release(request.block, {}));
            script->check.released(request.block, {}, *script->pool);
        }
    }
    REQUIRE(script->pool->statistics().reserved.peak == copy->statistics().reserved.peak);
    REQUIRE(untouched->device().free_bytes() == free_bytes);
    script->compare();
}

// A fresh pool adopts the blocks of a PyTorch pool, then frees them one by one.
void check_adopt(const std::string& name, const std::string& config, unsigned seed) {
    Script held("pytorch", "", seed);
    run(&held, 100);
    held.pool->relax(Relaxation::kPendingComplete);
    const HeapSnapshot heap = held.pool->snapshot();
    Script heir(name, config, seed);
    heir.card_bytes *= 8;
    heir.pool = make(name, config, heir.card_bytes);
    heir.check = PlacementCheck(find_pool(name)->streams, heir.card_bytes);
    heir.pool->allocate({.block = 1, .requested_bytes = 5 * kMiB});  // adopt() discards it
    const std::uint64_t calls = heir.pool->statistics().segments_allocated;
    if (!heir.pool->adopt(heap)) {
        REQUIRE_FALSE(config.empty());  // settings may limit it below the adopted memory
        REQUIRE(heir.pool->statistics().ooms != 0);
        return;
    }
    heir.check.adopted(heap, *heir.pool);
    REQUIRE(heir.check.violation().empty());
    REQUIRE(heir.pool->statistics().requested.current == held.pool->statistics().requested.current);
    REQUIRE(heir.pool->statistics().segments_allocated == calls);
    for (const HeapBlock& block : heap.blocks) {
        if (block.state != BlockState::kFree) {
            REQUIRE(heir.pool->release(block.allocated_by, {}));
            heir.check.released(block.allocated_by, {}, *heir.pool);
        }
    }
    heir.next_block = held.next_block;
    run(&heir, 50);
}

// Checks that every byte which the address map calls free can be allocated: requests for the
// largest free block are served from existing segments until nothing is left. (Not for PyTorch's
// pool, whose size classes keep some requests from some blocks.)
void check_free_blocks_serve(Script* script) {
    if (find_pool(script->pool->name())->streams == StreamRule::kSegments) {
        return;
    }
    const std::uint64_t reserved = script->pool->statistics().reserved.current;
    for (;;) {
        const HeapSnapshot heap = script->pool->snapshot();
        const HeapBlock* largest = nullptr;
        for (const HeapBlock& block : heap.blocks) {
            if (block.state == BlockState::kFree &&
                (largest == nullptr || block.size_bytes > largest->size_bytes)) {
                largest = &block;
            }
        }
        if (largest == nullptr) {
            break;
        }
        Request request = {.block = script->next_block++,
                           .requested_bytes = largest->size_bytes,
                           .stream = largest->stream == kNoStream ? StreamId{0} : largest->stream};
        // A pool with two ends may keep the block for one of them.
        request.upper_end = script->pool->largest_free_bytes(request) < largest->size_bytes;
        REQUIRE(script->pool->largest_free_bytes(request) >= largest->size_bytes);
        const AllocateResult result = script->pool->allocate(request);
        REQUIRE(result.outcome == Outcome::kHit);
        script->check.allocated(request, result, *script->pool);
        REQUIRE(script->check.violation().empty());
        REQUIRE(script->pool->statistics().reserved.current == reserved);
        script->live.push_back(request.block);
    }
    REQUIRE(script->pool->statistics().allocated.current == reserved);
}

// Checks that a pool can release exactly the bytes that it calls releasable.
void check_trim(const Pool& pool) {
    const std::unique_ptr<Pool> copy = pool.clone();
    const std::uint64_t reserved = copy->statistics().reserved.current;
    const std::uint64_t device_free = copy->device().free_bytes();
    const std::uint64_t releasable = copy->releasable_bytes();
    if (copy->relax(Relaxation::kReleaseFree)) {
        REQUIRE(copy->statistics().reserved.current == reserved - releasable);
        REQUIRE(copy->device().free_bytes() == device_free + releasable);
        REQUIRE(copy->releasable_bytes() == 0);
    }
}

void release_all(Script* script) {
    for (const BlockId block : script->live) {
        REQUIRE(script->pool->release(block, {}));
        script->check.released(block, {}, *script->pool);
    }
    script->live.clear();
    for (const PendingId event : script->events) {
        script->pool->complete(event);
        script->check.completed(event);
    }
    script->events.clear();
    script->compare();
}

// Frees everything. All segments must then be free blocks that can serve requests. After
// empty_cache the device must have all its memory, or as much as before the script.
void check_end(Script* script) {
    check_trim(*script->pool);
    release_all(script);
    check_free_blocks_serve(script);
    release_all(script);
    check_trim(*script->pool);
    const std::uint64_t held = script->pool->statistics().reserved.current;
    script->pool->empty_cache();
    script->check.emptied(*script->pool);
    script->compare();
    const bool keeps = find_pool(script->pool->name())->keeps;
    REQUIRE(script->pool->statistics().reserved.current == (keeps ? held : 0));
    REQUIRE(script->pool->device().free_bytes() == script->card_bytes - (keeps ? held : 0));
    REQUIRE(script->pool->statistics().active.current == 0);
    REQUIRE(script->pool->statistics().allocated.current == 0);
    REQUIRE(script->pool->statistics().requested.current == 0);
    REQUIRE(script->pool->statistics().rounding_bytes == 0);
    REQUIRE(script->pool->statistics().slack_bytes == 0);
}

}  // namespace

void check_conformance(const std::string& pool, const std::string& config) {
    for (unsigned seed = 0; seed < kScripts; ++seed) {
        INFO("pool " << pool << ", settings '" << config << "', seed " << seed);
        Script script(pool, config, seed);
        check_rounding(*script.pool);
        run(&script, kCalls);
        check_refusals(&script);
        if (seed % 4 == 0) {
            Script copied(pool, config, seed);
            run(&copied, kCalls / 2);
            check_clone(&copied);
            check_adopt(pool, config, seed);
        }
        check_end(&script);
    }
}

}  // namespace fragtrace::analyzer
