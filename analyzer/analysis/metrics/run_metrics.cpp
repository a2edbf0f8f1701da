#include "analyzer/analysis/metrics/run_metrics.h"

#include "analyzer/analysis/metrics/phase_metrics.h"
#include "analyzer/trace/stack_limit.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace fragtrace::analyzer {
namespace {

// Nearly all events of a run.
bool is_block(EventKind kind) {
    return kind == EventKind::kBlockAlloc || kind == EventKind::kBlockFree;
}

// Live allocations of one family, by address.
class SideSum {
  public:
    void begin(const Event& event, EventIndex i) {
        ++memory_.allocations;
        if (event.size_bytes == kUnknown64) {
            return;
        }
        end(event.address);
        live_[event.address] = {event.size_bytes, event.origin};
        bytes_ += event.size_bytes;
        if (bytes_ > memory_.peak_bytes) {
            memory_.peak_bytes = bytes_;
            memory_.peak_event = i;
        }
    }

    void end(DeviceAddress address) {
        const auto found = live_.find(address);
        if (found != live_.end()) {
            bytes_ -= found->second.first;
            live_.erase(found);
        }
    }

    void end_all() {
        live_.clear();
        bytes_ = 0;
    }

    void take_holders() {
        std::map<OriginId, std::uint64_t> by_origin;
        for (const auto& [address, held] : live_) {
            by_origin[held.second] += held.first;
        }
        memory_.holders.assign(by_origin.begin(), by_origin.end());
        std::stable_sort(memory_.holders.begin(),
                         memory_.holders.end(),
                         [](const auto& a, const auto& b) { return a.second > b.second; });
    }

    [[nodiscard]] const SideMemory& memory() const { return memory_; }

  private:
    std::unordered_map<DeviceAddress, std::pair<std::uint64_t, OriginId>> live_;
    std::uint64_t bytes_ = 0;
    SideMemory memory_;
};

// Both families of memory beside the devices', over events in their order.
struct Sides {
    SideSum pinned;
    SideSum managed;

    void visit(const Event& event, EventIndex i) {
        switch (event.kind) {
            case EventKind::kHostAlloc:
            case EventKind::kHostRegister:
                return pinned.begin(event, i);
            case EventKind::kHostFree:
            case EventKind::kHostUnregister:
                return pinned.end(event.address);
            case EventKind::kManagedAlloc:
                return managed.begin(event, i);
            case EventKind::kDeviceFree:
                return managed.end(event.address);
            case EventKind::kCheckpointBegin:
                pinned.end_all();
                return managed.end_all();
            default:
                return;
        }
    }
};

// Who held it at its peak: the same events once more, up to there.
SideMemory with_holders(const Timeline& timeline, const SideMemory& memory, bool pinned) {
    if (memory.peak_event == kNoEvent) {
        return memory;
    }
    Sides sides;
    for (EventIndex i = 0; i <= memory.peak_event; ++i) {
        if (!is_block(timeline.events.kind(i))) {
            sides.visit(timeline.events[i], i);
        }
    }
    SideSum& sum = pinned ? sides.pinned : sides.managed;
    sum.take_holders();
    SideMemory result = memory;
    result.holders = sum.memory().holders;
    return result;
}

void count_calls(const Timeline& timeline, RunMetrics* metrics) {
    std::map<EventKind, CallCosts> by_kind;
    std::size_t next_duration = 0;
    std::size_t next_checkpoint = 0;
    std::unordered_map<std::uint32_t, std::uint64_t> refused;  // per device, ns so far
    for (EventIndex i = 0; i < timeline.events.size(); ++i) {
        std::uint64_t ns = 0;
        if (next_duration < timeline.durations.size() &&
            timeline.durations[next_duration].first == i) {
            ns = timeline.durations[next_duration++].second;
        }
        if (next_checkpoint < timeline.checkpoints.size() &&
            i >= timeline.checkpoints[next_checkpoint].begin) {
            next_checkpoint += i >= timeline.checkpoints[next_checkpoint].end ? 1 : 0;
            continue;
        }
        if (refused.empty() && is_block(timeline.events.kind(i))) {
            continue;
        }
        const Event event = timeline.events[i];
        if (has_trait(event.kind, kCall)) {
            CallCosts& costs = by_kind[event.kind];
            costs.kind = event.kind;
            ++costs.count;
            costs.total_ns += ns;
            costs.max_ns = std::max(costs.max_ns, ns);
        }
        // Maps and unmaps name no device: they count for whoever is being served.
        const bool from_allocator = (event.flags & kFlagFromAllocator) != 0;
        if (event.kind == EventKind::kAllocRefused && from_allocator) {
            refused.try_emplace(event.device, 0);
        }
        if (from_allocator && has_trait(event.kind, kCall)) {
            for (auto& [device, sum] : refused) {
                sum += device == event.device || event.device == kMaxDevices ? ns : 0;
            }
        }
        if (event.kind == EventKind::kBlockAlloc || event.kind == EventKind::kBlockOutOfMemory) {
            const auto found = refused.find(event.device);
            if (found != refused.end()) {
                metrics->retries.push_back({i, found->second});
                refused.erase(found);
            }
        }
    }
    for (const auto& [kind, costs] : by_kind) {
        metrics->calls.push_back(costs);
    }
    std::stable_sort(
        metrics->calls.begin(), metrics->calls.end(), [](const CallCosts& a, const CallCosts& b) {
            return a.total_ns > b.total_ns;
        });
}

void count_kinds(const Timeline& timeline, RunMetrics* metrics) {
    Sides sides;
    for (EventIndex i = 0; i < timeline.events.size(); ++i) {
        if (is_block(timeline.events.kind(i))) {
            continue;
        }
        const Event event = timeline.events[i];
        sides.visit(event, i);
        switch (event.kind) {
            case EventKind::kArrayAlloc:
                ++metrics->arrays;
                metrics->arrays_unknown += event.size_bytes == kUnknown64 ? 1 : 0;
                break;
            case EventKind::kAsyncAlloc:
                ++metrics->stream_ordered;
                break;
            case EventKind::kImport:
                ++metrics->imports;
                break;
            case EventKind::kModuleLoad:
                ++metrics->modules;
                break;
            case EventKind::kGraphMemory:
                if (event.extra != kUnknown64) {
                    metrics->graph_peak_bytes = std::max(metrics->graph_peak_bytes, event.extra);
                }
                break;
            default:
                break;
        }
    }
    metrics->pinned = with_holders(timeline, sides.pinned.memory(), true);
    metrics->managed = with_holders(timeline, sides.managed.memory(), false);
}

}  // namespace

RunMetrics measure_run(const Timeline& timeline) {
    RunMetrics metrics;
    count_calls(timeline, &metrics);
    count_kinds(timeline, &metrics);
    add_phase_metrics(timeline, &metrics);
    metrics.cut_stacks = events_with_cut_stacks(timeline);
    return metrics;
}

}  // namespace fragtrace::analyzer
