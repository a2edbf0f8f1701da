#include "analyzer/analysis/metrics/run_metrics.h"

#include "analyzer/trace/stack_limit.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace fragtrace::analyzer {
namespace {

// Block events are nearly all events of a run, so others are handled apart.
bool is_block(EventKind kind) {
    return kind == EventKind::kBlockAlloc || kind == EventKind::kBlockFree;
}

// Adds the lines that had the memory at its peak, by a second walk up to there.
SideMemory with_holders(const Timeline& timeline, const Sides& whole, SideSum Sides::*side) {
    SideMemory result = (whole.*side).memory();
    if (result.peak_event == kNoEvent) {
        return result;
    }
    Sides sides;
    for (EventIndex i = 0; i <= result.peak_event; ++i) {
        if (!is_block(timeline.events.kind(i))) {
            sides.visit(timeline.events[i], i);
        }
    }
    result.holders = (sides.*side).holders();
    return result;
}

}  // namespace

class RunMeasurement::Progress {
  public:
    explicit Progress(const Timeline& timeline) : timeline_(timeline), cut_(timeline) {}

    void visit(EventIndex i, const Event& event) {
        std::uint64_t ns = 0;
        if (next_duration_ < timeline_.durations.size() &&
            timeline_.durations[next_duration_].first == i) {
            ns = timeline_.durations[next_duration_++].second;
        }
        metrics_.cut_stacks += cut_.contains(event.origin) ? 1 : 0;
        if (!in_checkpoint(i)) {
            count_call(i, event, ns);
        }
        if (!is_block(event.kind)) {
            sides_.visit(event, i);
            count_kind(event);
        }
    }

    RunMetrics finish() {
        for (const auto& [kind, costs] : by_kind_) {
            metrics_.calls.push_back(costs);
        }
        std::stable_sort(
            metrics_.calls.begin(),
            metrics_.calls.end(),
            [](const CallCosts& a, const CallCosts& b) { return a.total_ns > b.total_ns; });
        metrics_.pinned = with_holders(timeline_, sides_, &Sides::pinned);
        metrics_.managed = with_holders(timeline_, sides_, &Sides::managed);
        return std::move(metrics_);
    }

  private:
    // Includes both ends of the checkpoint.
    bool in_checkpoint(EventIndex i) {
        if (next_checkpoint_ == timeline_.checkpoints.size() ||
            i < timeline_.checkpoints[next_checkpoint_].begin) {
            return false;
        }
        next_checkpoint_ += i >= timeline_.checkpoints[next_checkpoint_].end ? 1 : 0;
        return true;
    }

    void count_call(EventIndex i, const Event& event, std::uint64_t ns) {
        if (refused_.empty() && is_block(event.kind)) {
            return;
        }
        if (has_trait(event.kind, kCall)) {
            CallCosts& costs = by_kind_[event.kind];
            costs.kind = event.kind;
            ++costs.count;
            costs.total_ns += ns;
            costs.max_ns = std::max(costs.max_ns, ns);
        }
        // Maps and unmaps name no device, so they count for every device with a refused request.
        const bool from_allocator = (event.flags & kFlagFromAllocator) != 0;
        if (event.kind == EventKind::kAllocRefused && from_allocator) {
            refused_.try_emplace(event.device, 0);
        }
        if (from_allocator && has_trait(event.kind, kCall)) {
            for (auto& [device, sum] : refused_) {
                sum += device == event.device || event.device == kMaxDevices ? ns : 0;
            }
        }
        if (event.kind == EventKind::kBlockAlloc || event.kind == EventKind::kBlockOutOfMemory) {
            const auto found = refused_.find(event.device);
            if (found != refused_.end()) {
                metrics_.retries.push_back({i, found->second});
                refused_.erase(found);
            }
        }
    }

    void count_kind(const Event& event) {
        switch (event.kind) {
            case EventKind::kArrayAlloc:
                ++metrics_.arrays;
                metrics_.arrays_unknown += event.size_bytes == kUnknown64 ? 1 : 0;
                break;
            case EventKind::kAsyncAlloc:
                ++metrics_.stream_ordered;
                break;
            case EventKind::kImport:
                ++metrics_.imports;
                break;
            case EventKind::kModuleLoad:
                ++metrics_.modules;
                break;
            case EventKind::kGraphMemory:
                if (event.extra != kUnknown64) {
                    metrics_.graph_peak_bytes = std::max(metrics_.graph_peak_bytes, event.extra);
                }
                break;
            default:
                break;
        }
    }

    const Timeline& timeline_;
    CutStacks cut_;
    RunMetrics metrics_;
    std::map<EventKind, CallCosts> by_kind_;
    // Per device with a refused request: ns in driver calls since.
    std::unordered_map<std::uint32_t, std::uint64_t> refused_;
    Sides sides_;
    std::size_t next_duration_ = 0;
    std::size_t next_checkpoint_ = 0;
};

RunMeasurement::RunMeasurement(const Timeline& timeline)
    : progress_(std::make_unique<Progress>(timeline)) {}

RunMeasurement::~RunMeasurement() = default;

void RunMeasurement::after(EventIndex i, const Event& event, const RecordedState& /*state*/) {
    progress_->visit(i, event);
}

RunMetrics RunMeasurement::finish() {
    return progress_->finish();
}

}  // namespace fragtrace::analyzer
