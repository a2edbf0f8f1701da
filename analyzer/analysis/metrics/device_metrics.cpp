#include "analyzer/analysis/metrics/device_metrics.h"

#include "analyzer/model/request_outcomes.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

bool is_memory_call(EventKind kind) {
    switch (kind) {
        case EventKind::kDeviceAlloc:
        case EventKind::kDeviceFree:
        case EventKind::kAddressReserve:
        case EventKind::kAddressFree:
        case EventKind::kPhysicalCreate:
        case EventKind::kPhysicalRelease:
        case EventKind::kMap:
        case EventKind::kUnmap:
        case EventKind::kAllocRefused:
        case EventKind::kAsyncAlloc:
        case EventKind::kAsyncFree:
        case EventKind::kPoolTrim:
        case EventKind::kArrayAlloc:
        case EventKind::kArrayFree:
            return true;
        default:
            return false;
    }
}

}  // namespace

class DeviceMeasurement::State {
  public:
    State(RecordedState state, DeviceId device, std::function<void()> at_peak)
        : device_(device),
          state_(std::move(state)),
          outcomes_([this](DeviceId id) { return state_.has_block_layer(id); }),
          at_peak_(std::move(at_peak)) {
        metrics_.block_layer = state_.has_block_layer(device);
    }

    void visit(EventIndex i, const Event& event, std::uint32_t pool) {
        checkpoint_ = checkpoint_ || event.kind == EventKind::kCheckpointBegin;
        if (checkpoint_) {
            set_up(i, event, pool);
        } else {
            measure(i, event, pool);
        }
        follow_beside_pool(i);
        keep_sample(event);
        last_ = i;
    }

    void add_call_time(const Event& event, std::uint64_t duration_ns) {
        if (event.device == device_ && is_memory_call(event.kind)) {
            metrics_.driver_time_ns += duration_ns;
        }
    }

    [[nodiscard]] const RecordedState& state() const { return state_; }

    DeviceMetrics finish() {
        if (checkpoint_) {
            take_peaks(last_);
        }
        settle_peak();
        conclude();
        return std::move(metrics_);
    }

  private:
    [[nodiscard]] const MemoryTotals& totals() const { return state_.totals(device_); }

    void measure(EventIndex i, const Event& event, std::uint32_t pool) {
        if (ends_request(event)) {
            settle_peak();
        }
        const MemoryTotals before = totals();
        state_.follow(event, pool);
        // A map names no device: that the device's memory changed tells.
        const bool ours = event.device == device_ || changed(before, totals());
        if (ours) {
            // The call that frees memory taken past the pool may come from the allocator.
            if (metrics_.block_layer) {
                count_pool_segments(event,
                                    totals().reserved != before.reserved,
                                    totals().past_pool != before.past_pool);
            } else {
                count_segments(event, before.blocks);
            }
        }
        count_trouble(i, event);
        take_peaks(i);
        if (event.kind == EventKind::kBlockAlloc && event.device == device_) {
            settle_peak();
        }
        requested_ =
            requested_ ||
            ((event.kind == EventKind::kBlockAlloc || event.kind == EventKind::kBlockOutOfMemory) &&
             event.device == device_);
    }

    // What was held when the trace began is no call of the run, and a peak only as a whole.
    void set_up(EventIndex i, const Event& event, std::uint32_t pool) {
        state_.follow(event, pool);
        if (event.kind == EventKind::kCheckpointEnd) {
            checkpoint_ = false;
            take_peaks(i);
            settle_peak();
        }
    }

    // The capacity is read from the last sample taken while nothing was held past the pool, if
    // there is one: of memory past the pool the requests are known, and not the pages that they
    // took.
    void keep_sample(const Event& event) {
        if (event.kind != EventKind::kMemoryInfo || event.device != device_) {
            return;
        }
        const MemorySample& last = state_.sample(device_);
        if (sample_.event == kNoEvent || !sample_.settled || sample_.past_pool_bytes != 0 ||
            last.past_pool_bytes == 0) {
            sample_ = last;
            sampled_beside_bytes_ = beside_bytes_;
            beside_at_sample_ = {.from = beside_from_, .until = kNoEvent, .excess_bytes = 0};
        }
    }

    // Before the first request of the pool nothing depends on it.
    void follow_beside_pool(EventIndex i) {
        const std::uint64_t beside = totals().other - totals().past_pool;
        if (beside != beside_bytes_) {
            beside_bytes_ = beside;
            beside_from_ = requested_ ? i : 0;
            if (requested_ && beside_at_sample_.until == kNoEvent) {
                beside_at_sample_.until = i;
            }
        }
        most_beside_bytes_ = requested_ ? std::max(most_beside_bytes_, beside) : beside;
    }

    static bool changed(const MemoryTotals& a, const MemoryTotals& b) {
        return a.reserved != b.reserved || a.own != b.own || a.other != b.other;
    }

    // What gives memory back, or an OOM, comes after the request that made the peak.
    [[nodiscard]] bool ends_request(const Event& event) const {
        return peak_open_ && event.device == device_ &&
               (event.kind == EventKind::kBlockFree || event.kind == EventKind::kBlockOutOfMemory ||
                has_trait(event.kind, kReturnsMemory));
    }

    void take_peaks(EventIndex i) {
        const MemoryTotals& now = totals();
        MemorySummary& peaks = metrics_.summary;
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

    // The request that brought reserved to its maximum is served: this is the state to split.
    void settle_peak() {
        if (peak_open_) {
            peak_open_ = false;
            metrics_.summary.waste_at_peak = waste_split(state_, device_);
            if (at_peak_) {
                at_peak_();
            }
        }
    }

    // Contiguous pages that are mapped for one request are one segment.
    void count_pool_segments(const Event& event, bool reserved_changed, bool past_pool) {
        const bool segment =
            !past_pool && ((event.flags & kFlagFromAllocator) != 0 || reserved_changed);
        MemorySummary& summary = metrics_.summary;
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

    // Where there is no pool, each allocation is a segment with one block.
    void count_segments(const Event& event, std::uint64_t blocks_before) {
        if (event.kind == EventKind::kGraphMemory || event.kind == EventKind::kDeviceReset ||
            event.kind == EventKind::kContextDestroy) {
            return;
        }
        const std::uint64_t blocks = totals().blocks;
        MemorySummary& summary = metrics_.summary;
        if (event.kind == EventKind::kDeviceAlloc || event.kind == EventKind::kAsyncAlloc) {
            // Also where it takes the place of a block that went with its context.
            summary.segments_allocated += event.size_bytes != 0 ? 1 : 0;
            return;
        }
        summary.segments_allocated += blocks > blocks_before ? blocks - blocks_before : 0;
        summary.segments_freed += blocks < blocks_before ? blocks_before - blocks : 0;
    }

    void count_trouble(EventIndex i, const Event& event) {
        const RequestOutcome outcome = outcomes_.visit(i, event);
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

    void conclude() {
        const MemorySummary& peaks = metrics_.summary;
        metrics_.state_only = metrics_.block_layer && !requested_ && peaks.peak_reserved != 0;
        const MemorySample& sample = sample_.event != kNoEvent ? sample_ : state_.sample(device_);
        if (sample.event != kNoEvent) {
            metrics_.total_bytes = sample.total_bytes;
            // What is free and what the pool has is the pool's to use; the rest is not. What
            // PyTorch holds past the pool comes and goes with the program's requests.
            metrics_.capacity_bytes =
                std::min(sample.total_bytes,
                         sample.free_bytes + sample.own_pool_bytes + sample.past_pool_bytes);
            metrics_.context_and_others_bytes = sample.total_bytes - metrics_.capacity_bytes;
            if (metrics_.block_layer) {
                metrics_.beside_pool = beside_at_sample_;
                metrics_.beside_pool.excess_bytes =
                    most_beside_bytes_ - std::min(most_beside_bytes_, sampled_beside_bytes_);
            }
        }
        metrics_.violations = state_.violations().count;
        metrics_.after_gap = state_.after_gap();
    }

    DeviceId device_;
    RecordedState state_;
    RequestOutcomes outcomes_;
    DeviceMetrics metrics_;
    MemorySample sample_;
    std::uint64_t beside_bytes_ = 0;  // held by this process beside the pool
    EventIndex beside_from_ = 0;      // since when
    std::uint64_t most_beside_bytes_ = 0;
    std::uint64_t sampled_beside_bytes_ = 0;
    BesidePool beside_at_sample_;
    std::function<void()> at_peak_;
    EventIndex last_ = 0;
    bool checkpoint_ = false;  // what was held is being told
    bool peak_open_ = false;
    bool requested_ = false;
    DeviceAddress map_end_ = 0;
    DeviceAddress unmap_end_ = 0;
};

DeviceMeasurement::DeviceMeasurement(RecordedState state,
                                     DeviceId device,
                                     std::function<void()> at_peak)
    : state_(std::make_unique<State>(std::move(state), device, std::move(at_peak))) {}

DeviceMeasurement::DeviceMeasurement(DeviceMeasurement&&) noexcept = default;

DeviceMeasurement::~DeviceMeasurement() = default;

void DeviceMeasurement::visit(EventIndex i, const Event& event, std::uint32_t pool) {
    state_->visit(i, event, pool);
}

const RecordedState& DeviceMeasurement::recorded() const {
    return state_->state();
}

void DeviceMeasurement::add_call_time(const Event& event, std::uint64_t duration_ns) {
    state_->add_call_time(event, duration_ns);
}

DeviceMetrics DeviceMeasurement::finish() {
    return state_->finish();
}

std::string device_name(const Timeline& timeline, DeviceId device) {
    return timeline.fact(fmt::format("device.{}.name", device), "unknown device");
}

DeviceMetrics measure_device(const Timeline& timeline, DeviceId device, PeakHistory* peaks) {
    const std::size_t count = timeline.events.size();
    DeviceMeasurement measurement(RecordedState(timeline), device);
    std::size_t cursor = 0;
    for (EventIndex i = 0; i < count; ++i) {
        measurement.visit(i, timeline.events[i], timeline.event_pools.at(i, &cursor));
        if (peaks != nullptr) {
            const MemoryTotals& now = measurement.recorded().totals(device);
            peaks->add(i, now.allocated, now.reserved);
        }
    }
    for (const auto& [index, duration_ns] : timeline.durations) {
        measurement.add_call_time(timeline.events[index], duration_ns);
    }
    return measurement.finish();
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
