#include "analyzer/analysis/program_pools.h"

#include "analyzer/analysis/holders/holders.h"
#include "analyzer/analysis/program_pool_failures.h"
#include "analyzer/analysis/program_pool_remedies.h"
#include "analyzer/analysis/program_pool_replay.h"
#include "analyzer/analysis/program_pool_walk.h"

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

// Finds the moments to describe in the first walk; the second one describes them.
class PoolMoments {
  public:
    PoolMoments(const Timeline& timeline,
                const std::vector<std::pair<EventIndex, DeviceId>>& out_of_memory)
        : timeline_(timeline), out_of_memory_(out_of_memory) {}

    // After each event of the first walk.
    void look(const ProgramPoolWalk& walk, EventIndex i) {
        const EventKind kind = timeline_.events.kind(i);
        if (kind == EventKind::kCheckpointBegin || kind == EventKind::kCheckpointEnd) {
            in_checkpoint_ = kind == EventKind::kCheckpointBegin;
        }
        if (kind == EventKind::kProgramBlockAlloc && walk.changed() != nullptr) {
            const auto& [key, state] = *walk.changed();
            ProgramPool& pool = pools_[key];
            pool.allocations += in_checkpoint_ ? 0 : 1;  // a checkpoint lists blocks again
            if (state.allocated_bytes > pool.peak_allocated_bytes) {
                pool.peak_allocated_bytes = state.allocated_bytes;
                pool.at_peak.event = i;
            }
            pool.peak_reserved_bytes = std::max(pool.peak_reserved_bytes, state.reserved_bytes);
            pool.shares_memory = pool.shares_memory || state.shares_memory;
        } else if (kind == EventKind::kProgramRequestFailed) {
            const std::uint32_t number = timeline_.event_pools.at(i);
            Failures& failures = failures_[number];
            ++failures.count;
            if (failures.first.size() < kMostMoments) {
                failures.first.push_back(
                    {.event = i, .requested_bytes = timeline_.events[i].size_bytes});
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
        // A pool without a block has a part in unknown memory.
        for (const auto& [number, failures] : failures_) {
            const auto part = pools_.lower_bound(Key{.number = number, .memory = {}, .device = 0});
            if (part == pools_.end() || part->first.number != number) {
                pools_[Key{.number = number}];
            }
        }
        for (auto& [key, pool] : pools_) {
            pool.number = key.number;
            pool.memory = key.memory;
            pool.device = key.device;
            if (const auto failures = failures_.find(key.number); failures != failures_.end()) {
                pool.failed = failures->second.count;
                pool.failures = failures->second.first;
            }
            const auto identity = timeline_.pools.find(key.number);
            if (identity != timeline_.pools.end()) {
                pool.name = identity->second.name;
                pool.kind = identity->second.kind;
                pool.limit_bytes = identity->second.limit_bytes;
                pool.settings = timeline_.fact("pool." + std::to_string(key.number) + ".settings");
            }
            if (pool.kind.empty()) {
                pool.kind = "other";
            }
            if (pool.name.empty()) {
                pool.name = key.number == kPoolOfTheRest ? "(more pools than are kept)"
                                                         : "pool " + std::to_string(key.number);
            }
            if (const auto state = walk.pools().find(key); state != walk.pools().end()) {
                pool.live_bytes = state->second.allocated_bytes;
                pool.live_blocks = state->second.blocks.size();
            }
        }
        return std::move(pools_);
    }

  private:
    struct Failures {
        std::uint64_t count = 0;
        std::vector<ProgramPoolMoment> first = {};
    };

    const Timeline& timeline_;
    const std::vector<std::pair<EventIndex, DeviceId>>& out_of_memory_;
    std::map<Key, ProgramPool> pools_;
    std::map<std::uint32_t, Failures> failures_;  // by number of the pool
    std::size_t next_ = 0;
    bool in_checkpoint_ = false;
};

void describe(const Timeline& timeline,
              const ProgramPool& pool,
              const ProgramPoolState& state,
              bool refused,
              Symbolizer* symbols,
              ProgramPoolMoment* moment) {
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
    if (moment->requested_bytes != 0) {
        explain_failure(timeline, pool, heap, refused, symbols, moment);
    }
}

// Whether the driver refused memory for this request, on any device.
bool driver_refused(const Timeline& timeline, EventIndex request) {
    for (EventIndex i = request; i-- > 0;) {
        const EventKind kind = timeline.events.kind(i);
        if (kind == EventKind::kAllocRefused) {
            return true;
        }
        if (kind == EventKind::kProgramBlockAlloc || kind == EventKind::kProgramRequestFailed) {
            return false;
        }
    }
    return false;
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
    PoolMoments moments(timeline, out_of_memory);
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
            describe(timeline,
                     pools.at(at.first),
                     state->second,
                     driver_refused(timeline, event),
                     symbols,
                     at.second);
        } else if (at.first.memory != PoolMemory::kUnknown) {
            at.second->failure = PoolFailure::kNoBlockYet;
        }
    }
    std::vector<ProgramPool> result;
    for (auto& [key, pool] : pools) {
        result.push_back(std::move(pool));
    }
    std::stable_sort(result.begin(), result.end(), [](const ProgramPool& a, const ProgramPool& b) {
        return a.peak_allocated_bytes > b.peak_allocated_bytes;
    });
    for (std::size_t i = 0; i < std::min(result.size(), kMostReplayed); ++i) {
        const Key key{result[i].number, result[i].memory, result[i].device};
        if (result[i].at_peak.event != kNoEvent) {
            const ReplayScript script = script_of(timeline, key, first);
            replay_program_pool(timeline, key, first, script, &result[i]);
            try_remedies(timeline, key, first, script, &result[i]);
        }
    }
    return result;
}

}  // namespace fragtrace::analyzer
