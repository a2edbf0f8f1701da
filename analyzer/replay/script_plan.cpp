#include "analyzer/replay/script_plan.h"

#include "analyzer/model/pair_map.h"
#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/replay/replayer.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

struct PlannedBuffer {
    Lifetime life;
    StreamId stream = 0;
    std::uint32_t private_pool = 0;
};

// A block and the buffer that contains it. Most buffers have one block.
struct BlockBuffer {
    BlockId block = 0;
    std::uint32_t buffer = 0;
};

// Collects the buffers and their lifetimes.
class Collector {
  public:
    Collector(const ReplayScript& script, const ScriptPlanOptions& options)
        : script_(script), options_(options) {}

    void collect() {
        // Most steps come in pairs. Growing would copy the buffers.
        buffers.reserve(script_.steps.size() / 2 + 1);
        blocks.reserve(script_.steps.size() / 2 + 1);
        for (std::size_t i = 0; i < script_.steps.size(); ++i) {
            take(script_.steps[i], i);
        }
    }

    std::vector<PlannedBuffer> buffers;
    std::vector<BlockBuffer> blocks;

    struct GraphPool {
        bool graph = false;
        std::uint64_t freed_at = kNever;  // the step at which it lost its last user
        std::map<StreamId, std::uint64_t> adopted_bytes;
    };

    std::map<std::uint32_t, GraphPool> private_pools;

  private:
    struct Pending {
        std::uint32_t buffer = 0;
        std::uint32_t events = 0;
    };

    [[nodiscard]] StreamId stream_of(StreamId stream) const {
        return options_.one_stream ? StreamId{0} : stream;
    }

    void begin(BlockId block,
               std::uint64_t bytes,
               StreamId stream,
               std::uint32_t private_pool,
               std::size_t step) {
        const std::uint64_t size_bytes = round_up(bytes, kPlannedQuantumBytes);
        const auto buffer = static_cast<std::uint32_t>(buffers.size());
        buffers.push_back({{step, kNever, size_bytes}, stream_of(stream), private_pool});
        blocks.push_back({block, buffer});
        held_.set(block, 0, buffer);
    }

    void end(BlockId block, std::size_t step) { buffers[held_.take(block, 0)].life.end = step; }

    void take(const Step& step, std::size_t i) {
        switch (step.kind) {
            case Step::Kind::kAllocate:
                if (!step.recorded_oom || options_.with_failed) {
                    begin(step.block, step.value, step.stream, step.private_pool, i);
                    if (step.recorded_oom) {
                        end(step.block, i + 1);
                    }
                }
                break;
            case Step::Kind::kPlace:
                place_again(step, i);
                break;
            case Step::Kind::kRelease:
                release(step, i);
                break;
            case Step::Kind::kComplete:
                complete(step.value, i);
                break;
            case Step::Kind::kAdopt:
                adopt(script_.checkpoints[step.value], i);
                break;
            case Step::Kind::kPoolOptions: {
                GraphPool& pool = private_pools[step.private_pool];
                pool.graph = pool.graph || (step.value & kPoolOfGraph) != 0;
                pool.freed_at = (step.value & kPoolFreeable) != 0 ? i : kNever;
                break;
            }
            case Step::Kind::kEmptyCache:
            case Step::Kind::kStreamEnd:
            case Step::Kind::kMemoryFraction:
            case Step::Kind::kMemoryInfo:
            case Step::Kind::kSettings:
            case Step::Kind::kPastPool:
            case Step::Kind::kPastPoolFree:
            case Step::Kind::kSegmentUnmapped:
            case Step::Kind::kSegmentMapped:
            case Step::Kind::kUnmappedSegmentEnd:
                break;
        }
    }

    // A graph contains the addresses of its blocks, so a restored block keeps its former place.
    void place_again(const Step& step, std::size_t i) {
        const auto former = placed_.find(step.placed_as);
        if (former == placed_.end() || buffers[former->second].life.end == kNever) {
            begin(step.block, step.value, step.stream, step.private_pool, i);
        } else {
            buffers[former->second].life.end = kNever;
            blocks.push_back({step.block, former->second});
            held_.set(step.block, 0, former->second);
        }
        placed_[step.block] = held_.find(step.block, 0);
    }

    void release(const Step& step, std::size_t i) {
        const std::uint32_t buffer = held_.take(step.block, 0);
        if (buffer == PairMap::kAbsent) {
            return;
        }
        if (step.private_pool != 0 || script_.rewinds != 0) {
            placed_[step.block] = buffer;
        }
        if (step.pending_count == 0) {
            buffers[buffer].life.end = i;
            return;
        }
        for (std::uint32_t k = 0; k < step.pending_count; ++k) {
            waits_for_[script_.pending[step.first_pending + k].id] = buffer;
        }
        events_left_[buffer] += step.pending_count;
    }

    void complete(PendingId id, std::size_t i) {
        const auto found = waits_for_.find(id);
        if (found == waits_for_.end()) {
            return;
        }
        const std::uint32_t buffer = found->second;
        waits_for_.erase(found);
        if (--events_left_[buffer] == 0) {
            events_left_.erase(buffer);
            buffers[buffer].life.end = i;
        }
    }

    void adopt(const HeapSnapshot& heap, std::size_t i) {
        PairMap before = std::exchange(held_, {});
        for (const auto& [buffer, events] : events_left_) {
            buffers[buffer].life.end = i;
        }
        waits_for_.clear();
        events_left_.clear();
        for (const HeapSegment& segment : heap.segments) {
            if (segment.private_pool != 0) {
                private_pools[segment.private_pool].adopted_bytes[stream_of(segment.stream)] +=
                    segment.size_bytes;
            }
            for (std::uint32_t k = 0; k < segment.block_count; ++k) {
                const HeapBlock& block = heap.blocks[segment.first_block + k];
                if (block.state == BlockState::kFree) {
                    continue;
                }
                if (const std::uint32_t same = before.take(block.allocated_by, 0);
                    same != PairMap::kAbsent) {
                    held_.set(block.allocated_by, 0, same);
                } else {
                    begin(block.allocated_by,
                          std::min(block.requested_bytes, block.size_bytes),
                          block.stream,
                          segment.private_pool,
                          i);
                }
                placed_[block.allocated_by] = held_.find(block.allocated_by, 0);
            }
        }
        before.for_each([this, i](std::uint32_t buffer) { buffers[buffer].life.end = i; });
    }

    const ReplayScript& script_;
    const ScriptPlanOptions& options_;
    PairMap held_;  // the buffers of live blocks; key: block and 0
    std::unordered_map<PendingId, std::uint32_t> waits_for_;
    std::unordered_map<std::uint32_t, std::uint32_t> events_left_;  // per buffer
    std::unordered_map<BlockId, std::uint32_t> placed_;             // blocks that may be restored
};

// Plans each stream separately. Within a stream it first arranges the blocks of each graph's pool
// in one piece.
class ScriptPlanner {
  public:
    ScriptPlanner(Collector* collected, std::uint64_t search_work)
        : from_(*collected), search_work_(search_work), offsets_(collected->buffers.size()) {}

    PoolPlan make() {
        std::map<StreamId, std::vector<std::uint32_t>> streams;
        for (std::uint32_t i = 0; i < from_.buffers.size(); ++i) {
            streams[from_.buffers[i].stream].push_back(i);
        }
        for (const auto& [number, pool] : from_.private_pools) {
            for (const auto& [stream, bytes] : pool.adopted_bytes) {
                streams.try_emplace(stream);
            }
        }
        PoolPlan plan;
        std::vector<std::uint32_t> regions(from_.buffers.size());
        std::uint64_t highest = 0;
        for (const auto& [stream, members] : streams) {
            const Plan placed = place_stream(stream, members);
            for (const std::uint32_t buffer : members) {
                regions[buffer] = static_cast<std::uint32_t>(plan.regions.size());
            }
            plan.regions.push_back(stream);
            if (placed.height_bytes >= highest) {
                highest = placed.height_bytes;
                plan.method = placed.method;
            }
        }
        plan.blocks.reserve(from_.blocks.size());
        for (const BlockBuffer& block : from_.blocks) {
            plan.blocks.push_back({block.block, regions[block.buffer], offsets_[block.buffer]});
        }
        const auto earlier = [](const PlannedBlock& a, const PlannedBlock& b) {
            return a.block < b.block;
        };
        if (!std::is_sorted(plan.blocks.begin(), plan.blocks.end(), earlier)) {
            std::sort(plan.blocks.begin(), plan.blocks.end(), earlier);
        }
        return plan;
    }

  private:
    [[nodiscard]] std::uint32_t graph_of(std::uint32_t buffer) const {
        const std::uint32_t number = from_.buffers[buffer].private_pool;
        const auto found = from_.private_pools.find(number);
        return found != from_.private_pools.end() && found->second.graph ? number : 0;
    }

    Plan place_stream(StreamId stream, const std::vector<std::uint32_t>& members) {
        std::vector<Lifetime> lifetimes;
        std::vector<std::uint32_t> buffers;  // buffers of the first lifetimes
        std::map<std::uint32_t, std::vector<std::uint32_t>> graphs;
        for (const auto& [number, pool] : from_.private_pools) {
            if (pool.graph && pool.adopted_bytes.contains(stream)) {
                graphs[number] = {};
            }
        }
        for (const std::uint32_t buffer : members) {
            if (const std::uint32_t graph = graph_of(buffer); graph != 0) {
                graphs[graph].push_back(buffer);
            } else {
                buffers.push_back(buffer);
                lifetimes.push_back(from_.buffers[buffer].life);
            }
        }
        for (const auto& [graph, inside] : graphs) {
            lifetimes.push_back(place_graph(graph, stream, inside));
        }
        Plan plan = plan_placement(lifetimes, search_work_);
        for (std::size_t i = 0; i < buffers.size(); ++i) {
            offsets_[buffers[i]] = plan.offsets[i];
        }
        std::size_t piece = buffers.size();
        for (const auto& [graph, inside] : graphs) {
            for (const std::uint32_t buffer : inside) {
                offsets_[buffer] += plan.offsets[piece];
            }
            ++piece;
        }
        return plan;
    }

    // Places the buffers of a graph's pool within one piece and returns that piece.
    Lifetime place_graph(std::uint32_t graph,
                         StreamId stream,
                         const std::vector<std::uint32_t>& inside) {
        const Collector::GraphPool& pool = from_.private_pools.at(graph);
        std::vector<Lifetime> lifetimes;
        Lifetime piece{kNever, pool.freed_at, 0};
        for (const std::uint32_t buffer : inside) {
            const Lifetime& life = from_.buffers[buffer].life;
            lifetimes.push_back(life);
            piece.begin = std::min(piece.begin, life.begin);
            piece.end = std::max(piece.end, life.end);
        }
        const Plan plan = plan_placement(lifetimes, search_work_);
        for (std::size_t i = 0; i < inside.size(); ++i) {
            offsets_[inside[i]] = plan.offsets[i];
        }
        piece.size_bytes = plan.height_bytes;
        if (const auto adopted = pool.adopted_bytes.find(stream);
            adopted != pool.adopted_bytes.end()) {
            piece.begin = 0;
            piece.size_bytes = std::max(piece.size_bytes, adopted->second);
        }
        return piece;
    }

    Collector& from_;
    std::uint64_t search_work_;
    std::vector<std::uint64_t> offsets_;
};

// Whether a replay of the plan fits the device. Always true if no recorded request failed.
bool fits(const ReplayScript& script,
          const std::shared_ptr<const PoolPlan>& plan,
          const Device& device) {
    bool any_oom = false;
    for (std::size_t i = 0; i < script.steps.size() && !any_oom; ++i) {
        any_oom = script.steps[i].recorded_oom;
    }
    if (!any_oom) {
        return true;
    }
    OfflinePool pool("", plan, device.clone());
    return replay(script, pool).troubles.empty();
}

}  // namespace

PoolPlan plan_script(const ReplayScript& script, const ScriptPlanOptions& options) {
    Collector collector(script, options);
    collector.collect();
    return ScriptPlanner(&collector, options.search_work).make();
}

Result<std::unique_ptr<Pool>> make_pool_for(const ReplayScript& script,
                                            std::string_view name,
                                            std::string_view config,
                                            std::unique_ptr<Device> device) {
    const PoolDescription* pool = find_pool(name);
    if (pool == nullptr || !pool->planned) {
        return make_pool(name, config, std::move(device), script.streams, script.rules);
    }
    ScriptPlanOptions options;
    options.one_stream = config == "one_stream:True" || config == "one_stream=True";
    if (!options.one_stream && !config.empty()) {
        return Error{
            ErrorCode::kUsage,
            fmt::format("pool 'offline' has one setting, one_stream:True, got '{}'", config)};
    }
    auto plan = std::make_shared<const PoolPlan>(plan_script(script, options));
    if (!fits(script, plan, *device)) {
        options.with_failed = false;
        plan = std::make_shared<const PoolPlan>(plan_script(script, options));
    }
    return pool->make({config, std::move(device), script.streams, script.rules, std::move(plan)});
}

}  // namespace fragtrace::analyzer
