#include "analyzer/analysis/metrics/device_metrics.h"

#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/model/device_layer.h"
#include "analyzer/model/request_outcomes.h"
#include "analyzer/model/unknown_segments.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

bool changed(const MemoryTotals& a, const MemoryTotals& b) {
    return a.reserved != b.reserved || a.own != b.own || a.other != b.other;
}

}  // namespace

class DeviceMeasurement::Progress {
  public:
    Progress(DeviceId device, std::function<void(const RecordedState&)> at_peak)
        : device_(device), at_peak_(std::move(at_peak)) {}

    void before(EventIndex i, const Event& event, const RecordedState& state) {
        if (!outcomes_) {
            outcomes_.emplace([&state](DeviceId id) { return state.has_block_layer(id); });
            metrics_.block_layer = state.has_block_layer(device_);
        }
        checkpoint_ = checkpoint_ || event.kind == EventKind::kCheckpointBegin;
        if (!checkpoint_ && ends_request(event)) {
            settle_peak(state, i);
        }
        before_ = state.totals(device_);
    }

    void after(EventIndex i, const Event& event, const RecordedState& state) {
        const MemoryTotals& now = state.totals(device_);
        segments_unknown_ =
            segments_unknown_ || (event.device == device_ && is_without_segment(event));
        if (!checkpoint_) {
            measure(i, event, now);
            if (now.unmapped != 0 && event.kind == EventKind::kBlockAlloc) {
                metrics_.peak_unmapped = std::max(metrics_.peak_unmapped, now.unmapped);
            }
            if (event.kind == EventKind::kBlockAlloc && event.device == device_) {
                settle_peak(state, i + 1);
            }
        } else if (event.kind == EventKind::kCheckpointEnd) {
            // Memory that was live when the trace began was not allocated by calls of the run. Only
            // its total counts, as a peak.
            checkpoint_ = false;
            take_peaks(i, now);
            settle_peak(state, i + 1);
        }
        requested_ =
            requested_ ||
            (!checkpoint_ && event.device == device_ &&
             (event.kind == EventKind::kBlockAlloc || event.kind == EventKind::kBlockOutOfMemory));
        freed_ = freed_ ||
                 (!checkpoint_ && event.device == device_ && event.kind == EventKind::kBlockFree);
        if (event.device == device_) {
            metrics_.blocks += (metrics_.block_layer ? event.kind == EventKind::kBlockAlloc
                                                     : is_device_allocation(event.kind))
                                   ? 1
                                   : 0;
        }
        follow_beside_pool(i, now);
        if (event.kind == EventKind::kMemoryInfo && event.device == device_) {
            keep_sample(state.sample(device_));
        }
        last_ = i;
    }

    DeviceMetrics finish(const RecordedState& state) {
        if (checkpoint_) {
            take_peaks(last_, state.totals(device_));
        }
        settle_peak(state, last_ + 1);
        conclude(state);
        return std::move(metrics_);
    }

  private:
    void measure(EventIndex i, const Event& event, const MemoryTotals& now) {
        // A map names no device. It belongs to the device whose memory it changed.
        if (event.device == device_ || changed(before_, now)) {
            // A free of memory that was taken past the pool may have the allocator's flag too.
            if (metrics_.block_layer) {
                count_pool_segments(
                    event, now.reserved != before_.reserved, now.past_pool != before_.past_pool);
            } else {
                count_segments(event, now.blocks);
            }
        }
        count_trouble(i, event);
        take_peaks(i, now);
    }

    // Capacity is read from the last sample without memory past the pool, if there is one. For such
    // memory only the requested sizes are known, not the pages that they took.
    void keep_sample(const MemorySample& last) {
        const std::uint64_t others =
            last.total_bytes - std::min(last.total_bytes, last.free_bytes + last.own_bytes);
        most_others_bytes_ = requested_ ? std::max(most_others_bytes_, others) : others;
        if (sample_.event == kNoEvent || !sample_.settled || sample_.past_pool_bytes != 0 ||
            last.past_pool_bytes == 0) {
            sample_ = last;
            sampled_beside_bytes_ = beside_bytes_;
            sampled_others_bytes_ = others;
            beside_at_sample_ = {.from = beside_from_, .until = kNoEvent, .excess_bytes = 0};
        }
    }

    // Before the first request of the pool nothing depends on memory outside the pool.
    void follow_beside_pool(EventIndex i, const MemoryTotals& now) {
        const std::uint64_t beside = now.other - now.past_pool;
        if (beside != beside_bytes_) {
            beside_bytes_ = beside;
            beside_from_ = requested_ ? i : 0;
            if (requested_ && beside_at_sample_.until == kNoEvent) {
                beside_at_sample_.until = i;
            }
        }
        most_beside_bytes_ = requested_ ? std::max(most_beside_bytes_, beside) : beside;
    }

    // Events that return memory, and an OOM, come after the request that made the peak.
    [[nodiscard]] bool ends_request(const Event& event) const {
        return peak_open_ && event.device == device_ &&
               (event.kind == EventKind::kBlockFree || event.kind == EventKind::kBlockOutOfMemory ||
                has_trait(event.kind, kReturnsMemory));
    }

    void take_peaks(EventIndex i, const MemoryTotals& now) {
        RunFigures& peaks = metrics_.summary;
        request_unknown_ = request_unknown_ || now.requests_unknown != 0;
        peaks.peak_requested = std::max(peaks.peak_requested, now.requested);
        peaks.peak_allocated = std::max(peaks.peak_allocated, now.allocated);
        peaks.peak_active = std::max(peaks.peak_active, now.active());
        peaks.peak_past_pool = std::max(peaks.peak_past_pool, now.past_pool);
        peaks.peak_with_past_pool =
            std::max(peaks.peak_with_past_pool, now.reserved + now.past_pool);
        if (now.reserved > peaks.peak_reserved) {
            peaks.peak_reserved = now.reserved;
            metrics_.peak_event = i;
            peak_open_ = true;
        }
    }

    // The events before `end` have served the request that brought reserved to its maximum. So this
    // is the state to split.
    void settle_peak(const RecordedState& state, EventIndex end) {
        // Without segments there is nothing to split, and each new block would be a new maximum.
        if (peak_open_ && !segments_unknown_) {
            peak_open_ = false;
            metrics_.peak_state_end = end;
            metrics_.summary.waste_at_peak = waste_split(state, device_);
            if (at_peak_) {
                at_peak_(state);
            }
        }
    }

    // Contiguous pages that are mapped for one request count as one segment.
    void count_pool_segments(const Event& event, bool reserved_changed, bool past_pool) {
        const bool segment =
            !past_pool && ((event.flags & kFlagFromAllocator) != 0 || reserved_changed);
        RunFigures& summary = metrics_.summary;
        switch (event.kind) {
            case EventKind::kDeviceAlloc:
            case EventKind::kAsyncAlloc:
                summary.segments_allocated += segment ? 1 : 0;
                break;
            case EventKind::kDeviceFree:
            case EventKind::kAsyncFree:
                summary.segments_freed += segment ? 1 : 0;
                break;
            case EventKind::kMap:
                summary.segments_allocated += segment && event.address != map_end_ ? 1 : 0;
                map_end_ = event.address + event.size_bytes;
                break;
            case EventKind::kUnmap:
                summary.segments_freed += segment && event.address != unmap_end_ ? 1 : 0;
                unmap_end_ = event.address + event.size_bytes;
                break;
            case EventKind::kBlockAlloc:
            case EventKind::kBlockFree:
                map_end_ = 0;  // the next map serves another request
                unmap_end_ = 0;
                break;
            default:
                break;
        }
    }

    // Without a pool, each allocation counts as a segment with one block.
    void count_segments(const Event& event, std::uint64_t blocks) {
        if (event.kind == EventKind::kGraphMemory || event.kind == EventKind::kDeviceReset ||
            event.kind == EventKind::kContextDestroy) {
            return;
        }
        RunFigures& summary = metrics_.summary;
        if (event.kind == EventKind::kDeviceAlloc || event.kind == EventKind::kAsyncAlloc) {
            // Counts also if it replaces a block that vanished with its context.
            summary.segments_allocated += event.size_bytes != 0 ? 1 : 0;
            return;
        }
        summary.segments_allocated += blocks > before_.blocks ? blocks - before_.blocks : 0;
        summary.segments_freed += blocks < before_.blocks ? before_.blocks - blocks : 0;
    }

    void count_trouble(EventIndex i, const Event& event) {
        const RequestOutcome outcome = outcomes_->visit(i, event);
        if (event.device != device_ || outcome == RequestOutcome::kNone) {
            return;
        }
        const bool retry = outcome == RequestOutcome::kRetry;
        ++(retry ? metrics_.summary.retries : metrics_.summary.ooms);
        if (!retry && !metrics_.first_oom_ns) {
            metrics_.first_oom_ns = event.time_ns;
        }
        if (metrics_.troubles.size() < kMostRecordedTroubles) {
            metrics_.troubles.push_back({i, retry});
        }
    }

    void conclude(const RecordedState& state) {
        const RunFigures& peaks = metrics_.summary;
        metrics_.block_layer = state.has_block_layer(device_);
        metrics_.state_only =
            metrics_.block_layer && !requested_ && !freed_ && peaks.peak_reserved != 0;
        const MemorySample& sample = sample_.event != kNoEvent ? sample_ : state.sample(device_);
        if (sample.event != kNoEvent) {
            metrics_.total_bytes = sample.total_bytes;
            // The pool can use free memory and its own. Memory that PyTorch took past the pool
            // counts too, since the program's requests allocate and free it.
            metrics_.capacity_bytes =
                std::min(sample.total_bytes,
                         sample.free_bytes + sample.own_pool_bytes + sample.past_pool_bytes);
            metrics_.context_and_others_bytes = sample.total_bytes - metrics_.capacity_bytes;
            if (metrics_.block_layer) {
                metrics_.beside_pool = beside_at_sample_;
                metrics_.beside_pool.excess_bytes =
                    most_beside_bytes_ - std::min(most_beside_bytes_, sampled_beside_bytes_);
                // Smaller changes can come from pages of the driver that requests share.
                constexpr std::uint64_t kLittle = 8 << 20;
                if (most_others_bytes_ > sampled_others_bytes_ + kLittle) {
                    metrics_.beside_pool.excess_bytes += most_others_bytes_ - sampled_others_bytes_;
                }
            }
        }
        if (segments_unknown_) {
            forget_segments(&metrics_.summary);
            if (request_unknown_) {
                metrics_.summary.peak_requested = kUnknown64;
            }
        }
        metrics_.last_sample = state.sample(device_);
        metrics_.violations = state.violations().count;
        metrics_.after_gap = state.after_gap();
    }

    DeviceId device_;
    std::optional<RequestOutcomes> outcomes_;  // set at the first event
    DeviceMetrics metrics_;
    MemoryTotals before_;  // before the current event
    MemorySample sample_;
    std::uint64_t beside_bytes_ = 0;  // live memory of this process outside the pool
    EventIndex beside_from_ = 0;      // event since which it is unchanged
    std::uint64_t most_beside_bytes_ = 0;
    std::uint64_t sampled_beside_bytes_ = 0;
    // Memory of the card that is not this process's, in reports of the driver: contexts and other
    // processes.
    std::uint64_t most_others_bytes_ = 0;
    std::uint64_t sampled_others_bytes_ = 0;
    BesidePool beside_at_sample_;
    std::function<void(const RecordedState&)> at_peak_;
    EventIndex last_ = 0;
    bool checkpoint_ = false;  // inside a checkpoint, which lists live memory
    bool peak_open_ = false;
    bool requested_ = false;
    bool freed_ = false;
    bool segments_unknown_ = false;
    bool request_unknown_ = false;
    DeviceAddress map_end_ = 0;
    DeviceAddress unmap_end_ = 0;
};

DeviceMeasurement::DeviceMeasurement(DeviceId device,
                                     std::function<void(const RecordedState&)> at_peak)
    : progress_(std::make_unique<Progress>(device, std::move(at_peak))) {}

DeviceMeasurement::DeviceMeasurement(DeviceMeasurement&&) noexcept = default;

DeviceMeasurement::~DeviceMeasurement() = default;

void DeviceMeasurement::before(EventIndex i, const Event& event, const RecordedState& state) {
    progress_->before(i, event, state);
}

void DeviceMeasurement::after(EventIndex i, const Event& event, const RecordedState& state) {
    progress_->after(i, event, state);
}

DeviceMetrics DeviceMeasurement::finish(const RecordedState& state) {
    return progress_->finish(state);
}

std::string device_name(const Timeline& timeline, DeviceId device) {
    return timeline.fact(fmt::format("device.{}.name", device), "unknown device");
}

WasteSplit waste_split(const RecordedState& state, DeviceId device) {
    const MemoryTotals& totals = state.totals(device);
    WasteSplit split;
    split.reserved = totals.reserved;
    split.requested = totals.requested;
    split.rounding = totals.rounding;
    split.slack = totals.slack;
    split.pending = totals.pending;
    split.releasable = state.releasable_bytes(device);
    split.inactive_split = totals.free_pool() - split.releasable;
    return split;
}

}  // namespace fragtrace::analyzer
