#include "analyzer/analysis/program_pools.h"

#include "analyzer/analysis/holders/holders.h"
#include "analyzer/analysis/program_pool_walk.h"
#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/replay/replayer.h"
#include "analyzer/replay/script.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// A program has a few pools. More than these are not simulated.
constexpr std::size_t kMostReplayed = 16;
constexpr std::size_t kMostMoments = 3;
constexpr std::size_t kMostOutOfMemories = 256;

using Key = ProgramPoolWalk::Key;

// The settings of the program's pool are unknown, but its first segment shows the initial size.
std::string config_of(const std::string& pool, std::uint64_t first_segment_bytes) {
    constexpr std::uint64_t kQuantumBytes = 256;
    const std::uint64_t initial = round_up(first_segment_bytes, kQuantumBytes);
    if (pool == "bfc") {
        return "preallocate:0,limit:1";
    }
    if (pool == "rmm-pool") {
        return "initial_pool_size:" + std::to_string(initial);
    }
    return pool == "rmm-arena" ? "arena_size:" + std::to_string(std::max(initial, kMiB)) : "";
}

// The requests of one pool. Its segments are chosen by the simulated pool.
ReplayScript script_of(const Timeline& timeline, const Key& key, const ProgramPoolWalk& walk) {
    ReplayScript script;
    script.source = ScriptSource::kBlocks;
    script.streams = timeline.streams;
    const auto zero = std::find(script.streams.begin(), script.streams.end(), 0u);
    const auto default_stream = static_cast<StreamId>(zero - script.streams.begin());
    if (zero == script.streams.end()) {
        script.streams.push_back(0);
    }
    for (const auto& [event, alloc] : walk.steps(key)) {
        Step step{.event = event, .block = alloc};
        if (event == alloc) {
            const Event request = timeline.events[alloc];
            step.kind = Step::Kind::kAllocate;
            step.value = request.size_bytes == kUnknown64 || request.size_bytes == 0
                             ? request.extra
                             : request.size_bytes;
            step.stream = request.stream == kNoStream ? default_stream : request.stream;
        } else {
            step.kind = Step::Kind::kRelease;
        }
        script.steps.push_back(step);
    }
    return script;
}

void add_replays(const Timeline& timeline,
                 const Key& key,
                 const ProgramPoolWalk& walk,
                 ProgramPool* pool) {
    const PoolDescription* own = find_pool(pool->kind);
    if (own == nullptr || !own->bound.empty() || own->planned || own->name == "pytorch") {
        own = nullptr;
    }
    const ReplayScript script = script_of(timeline, key, walk);
    std::vector<std::string> names;
    if (own != nullptr) {
        names.push_back(pool->kind);
    }
    if (pool->kind != "best-fit") {
        names.emplace_back("best-fit");
    }
    for (const std::string& name : names) {
        auto simulated = make_pool(
            name,
            config_of(name, walk.first_segment_bytes(key)),
            std::make_unique<FixedDevice>(kUnlimitedBytes, kUnlimitedBytes, std::uint64_t{2} << 20),
            script.streams);
        if (simulated) {
            const ReplayResult result = replay(script, **simulated);
            pool->replays.push_back({name, result.statistics.reserved.peak});
        }
    }
}

// Finds the moments to describe in the first walk; the second one describes them.
class Moments {
  public:
    Moments(const Timeline& timeline,
            const std::vector<std::pair<EventIndex, DeviceId>>& out_of_memory)
        : timeline_(timeline), out_of_memory_(out_of_memory) {}

    // After each event of the first walk.
    void look(const ProgramPoolWalk& walk, EventIndex i) {
        const EventKind kind = timeline_.events.kind(i);
        if (kind == EventKind::kProgramBlockAlloc && walk.changed() != nullptr) {
            const auto& [key, state] = *walk.changed();
            ProgramPool& pool = pools_[key];
            ++pool.allocations;
            if (state.allocated_bytes > pool.peak_allocated_bytes) {
                pool.peak_allocated_bytes = state.allocated_bytes;
                pool.at_peak.event = i;
            }
            pool.peak_reserved_bytes = std::max(pool.peak_reserved_bytes, state.reserved_bytes);
            pool.shares_memory = pool.shares_memory || state.shares_memory;
        } else if (kind == EventKind::kProgramRequestFailed) {
            const std::uint32_t number = timeline_.event_pools.at(i);
            ++failed_[number];
            for (auto part =
                     walk.pools().lower_bound(Key{.number = number, .memory = {}, .device = 0});
                 part != walk.pools().end() && part->first.number == number;
                 ++part) {
                std::vector<ProgramPoolMoment>& failures = pools_[part->first].failures;
                if (failures.size() < kMostMoments) {
                    failures.push_back({.event = i});
                }
            }
        }
        const std::size_t most = std::min(out_of_memory_.size(), kMostOutOfMemories);
        for (; next_ < most && out_of_memory_[next_].first <= i; ++next_) {
            for (const auto& [key, state] : walk.pools()) {
                ProgramPool& pool = pools_[key];
                if (key.device == out_of_memory_[next_].second &&
                    key.memory == PoolMemory::kDevice && state.reserved_bytes != 0 &&
                    pool.at_out_of_memory.size() < kMostMoments) {
                    pool.at_out_of_memory.push_back({.event = i});
                }
            }
        }
    }

    // After the first walk.
    std::map<Key, ProgramPool> take(const ProgramPoolWalk& walk) {
        for (auto& [key, pool] : pools_) {
            pool.number = key.number;
            pool.memory = key.memory;
            pool.device = key.device;
            pool.failed = failed_[key.number];
            const auto identity = timeline_.pools.find(key.number);
            if (identity != timeline_.pools.end()) {
                pool.name = identity->second.name;
                pool.kind = identity->second.kind;
                pool.limit_bytes = identity->second.limit_bytes;
            }
            if (pool.kind.empty()) {
                pool.kind = "other";
            }
            if (pool.name.empty()) {
                pool.name = "pool " + std::to_string(key.number);
            }
            if (const auto state = walk.pools().find(key); state != walk.pools().end()) {
                pool.live_bytes = state->second.allocated_bytes;
                pool.live_blocks = state->second.blocks.size();
            }
        }
        return std::move(pools_);
    }

  private:
    const Timeline& timeline_;
    const std::vector<std::pair<EventIndex, DeviceId>>& out_of_memory_;
    std::map<Key, ProgramPool> pools_;
    std::map<std::uint32_t, std::uint64_t> failed_;
    std::size_t next_ = 0;
};

void describe(const Timeline& timeline,
              const ProgramPoolState& state,
              Symbolizer* symbols,
              ProgramPoolMoment* moment) {
    if (timeline.events.kind(moment->event) == EventKind::kProgramRequestFailed) {
        moment->requested_bytes = timeline.events[moment->event].size_bytes;
    }
    moment->reserved_bytes = state.reserved_bytes;
    moment->allocated_bytes = state.allocated_bytes;
    moment->blocks = state.blocks.size();
    const HeapSnapshot heap = snapshot_of(state);
    for (const HeapBlock& block : heap.blocks) {
        if (block.state == BlockState::kFree) {
            moment->largest_free_bytes = std::max(moment->largest_free_bytes, block.size_bytes);
        }
    }
    moment->lines = held_lines(timeline, heap, symbols);
}

}  // namespace

std::vector<ProgramPool> find_program_pools(
    const Timeline& timeline,
    const std::vector<std::pair<EventIndex, DeviceId>>& out_of_memory,
    Symbolizer* symbols) {
    if (!has_program_blocks(timeline)) {
        return {};
    }
    ProgramPoolWalk first(timeline);
    Moments moments(timeline, out_of_memory);
    for (EventIndex i = 0; i < timeline.events.size(); ++i) {
        first.advance();
        moments.look(first, i);
    }
    std::map<Key, ProgramPool> pools = moments.take(first);
    std::multimap<EventIndex, std::pair<Key, ProgramPoolMoment*>> wanted;
    for (auto& [key, pool] : pools) {
        wanted.emplace(pool.at_peak.event, std::pair(key, &pool.at_peak));
        for (ProgramPoolMoment& moment : pool.failures) {
            wanted.emplace(moment.event, std::pair(key, &moment));
        }
        for (ProgramPoolMoment& moment : pool.at_out_of_memory) {
            wanted.emplace(moment.event, std::pair(key, &moment));
        }
    }
    ProgramPoolWalk second(timeline);
    for (const auto& [event, at] : wanted) {
        if (event == kNoEvent) {
            continue;
        }
        while (second.position() <= event) {
            second.advance();
        }
        const auto state = second.pools().find(at.first);
        if (state != second.pools().end()) {
            describe(timeline, state->second, symbols, at.second);
        }
    }
    std::vector<ProgramPool> result;
    for (auto& [key, pool] : pools) {
        if (result.size() < kMostReplayed) {
            add_replays(timeline, key, first, &pool);
        }
        result.push_back(std::move(pool));
    }
    std::stable_sort(result.begin(), result.end(), [](const ProgramPool& a, const ProgramPool& b) {
        return a.peak_allocated_bytes > b.peak_allocated_bytes;
    });
    return result;
}

}  // namespace fragtrace::analyzer
