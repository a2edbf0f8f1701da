#include "analyzer/replay/script.h"

#include "analyzer/model/device_layer.h"
#include "analyzer/model/recorded_state.h"
#include "analyzer/model/unknown_segments.h"
#include "analyzer/replay/driver_answers.h"
#include "analyzer/replay/past_pool.h"
#include "analyzer/replay/private_pools.h"
#include "analyzer/replay/unmapped_segments.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// Builds the steps of one device. The two sources differ only in which events they use.
class Builder {
  public:
    Builder(const Timeline& timeline, DeviceId device, ScriptSource source)
        : timeline_(timeline),
          pools_(timeline, &script_),
          past_pool_(&script_),
          unmapped_segments_(&script_),
          answers_(&script_) {
        script_.device = device;
        script_.source = source;
        script_.streams = timeline.streams;
        script_.records_empty_cache = timeline.fact("torch.vtable") == "verified";
        script_.rules = PytorchRules::for_release(timeline.fact("torch_version"));
    }

    ReplayScript build() {
        for (EventIndex i = 0; i < timeline_.events.size(); ++i) {
            const Event& event = timeline_.events[i];
            pools_.look_at(event.kind, i);
            if (next_checkpoint_ < timeline_.checkpoints.size() &&
                i == timeline_.checkpoints[next_checkpoint_].begin) {
                adopt(timeline_.checkpoints[next_checkpoint_++]);
            }
            if (script_.source == ScriptSource::kDeviceLayer) {
                follow_device_layer(event, i);
            }
            follow_unmapped_segments(event, i);
            if (i < checkpoint_end_ && !PastPoolSteps::is_one(event) &&
                (asks_for_memory(event.kind) || event.kind == EventKind::kMap)) {
                continue;  // part of the checkpoint's state, which the replay adopts
            }
            if (event.kind == EventKind::kEventComplete) {
                add_completion(event, i);  // events of this kind have no device
            } else if (event.kind == EventKind::kEmptyCache) {
                pools_.empty_cache(event, i);
            } else if (asks_for_free_memory(event)) {
                if (event.device == script_.device) {
                    script_.steps.push_back(
                        {.kind = Step::Kind::kMemoryInfo, .event = i, .value = event.size_bytes});
                }
            } else if (concerns_pools(event)) {
                if (event.device == script_.device || event.device == kMaxDevices) {
                    add_pool_event(event, i);
                }
            } else if (event.device == script_.device) {
                if (script_.source == ScriptSource::kBlocks) {
                    add_block_event(event, i);
                } else {
                    add_device_event(event, i);
                }
            }
        }
        add_waited_for(0);
        return std::move(script_);
    }

  private:
    // Adds the state at the start of a trace that began mid-run, or after a reset. Pending blocks
    // are adopted as live, because their frees are in the checkpoint, too.
    void adopt(const EventSpan& checkpoint) {
        checkpoint_end_ = checkpoint.end;
        if (!state_) {
            state_.emplace(timeline_);
        }
        state_->advance_to(
            std::min(checkpoint.end, static_cast<EventIndex>(timeline_.events.size())));
        HeapSnapshot heap = state_->snapshot(script_.device);
        const auto obtained = [this](const HeapSegment& segment) {
            const EventIndex by = segment.obtained_by;
            return std::pair(by == kNoEvent ? ~std::uint64_t{0} : timeline_.events[by].time_ns, by);
        };
        std::stable_sort(heap.segments.begin(),
                         heap.segments.end(),
                         [&obtained](const HeapSegment& a, const HeapSegment& b) {
                             return obtained(a) < obtained(b);
                         });
        for (HeapBlock& block : heap.blocks) {
            block.stream = block.stream == kNoStream ? default_stream() : block.stream;
        }
        for (HeapSegment& segment : heap.segments) {
            segment.stream = segment.stream == kNoStream ? default_stream() : segment.stream;
        }
        past_pool_.end_all(checkpoint.begin);
        unmapped_segments_.end_all(checkpoint.begin);
        script_.steps.push_back({.kind = Step::Kind::kAdopt,
                                 .event = checkpoint.begin,
                                 .value = script_.checkpoints.size()});
        pools_.adopt(heap, checkpoint.begin);
        answers_.forget_grants();
        script_.checkpoints.push_back(std::move(heap));
    }

    void follow_unmapped_segments(const Event& event, EventIndex i) {
        if (script_.source == ScriptSource::kBlocks &&
            (event.device == script_.device || event.device == kMaxDevices)) {
            unmapped_segments_.look_at(event, i, pools_.pool());
        }
    }

    void add_block_event(const Event& event, EventIndex i) {
        switch (event.kind) {
            case EventKind::kBlockAlloc:
                pools_.know(event, i);
                add_allocation(event, i, event.extra, false);
                break;
            case EventKind::kBlockOutOfMemory:
                pools_.know(event, i);
                if (is_without_segment(event)) {
                    // Nothing shows what the pool asked of the driver. Without a pool, it is the
                    // request.
                    script_.refusals.push_back({event.size_bytes, 0});
                }
                add_allocation(event, i, 0, true);
                break;
            case EventKind::kBlockFree:
                add_release(i);
                break;
            case EventKind::kPendingEvent:
                add_pending(event);
                break;
            case EventKind::kDeviceAlloc:
                if (PastPoolSteps::is_one(event)) {
                    past_pool_.add(event, i, default_stream());
                } else {
                    answers_.look_at(event);
                }
                break;
            case EventKind::kDeviceFree:
                past_pool_.end(timeline_.partner[i], i);
                break;
            case EventKind::kMemoryFraction:
                script_.steps.push_back(
                    {.kind = Step::Kind::kMemoryFraction, .event = i, .value = event.size_bytes});
                break;
            default:
                answers_.look_at(event);
                break;
        }
    }

    static bool concerns_pools(const Event& event) {
        return event.kind == EventKind::kPoolUse || event.kind == EventKind::kPoolRelease ||
               event.kind == EventKind::kPoolRewind || event.kind == EventKind::kSettings;
    }

    // Adds events of private pools and settings. Without a device they apply to every device.
    void add_pool_event(const Event& event, EventIndex i) {
        switch (event.kind) {
            case EventKind::kPoolUse:
                if (event.size_bytes != 0) {
                    pools_.use(i);
                }
                break;
            case EventKind::kPoolRelease:
                pools_.give_up(i);
                break;
            case EventKind::kPoolRewind:
                pools_.rewind(i);
                break;
            case EventKind::kSettings:
                add_settings(timeline_.fact("text." + std::to_string(event.size_bytes)), i);
                break;
            default:
                break;
        }
    }

    void add_settings(std::string text, EventIndex i) {
        if (!any_request_) {
            script_.first_settings = std::move(text);
            return;
        }
        script_.steps.push_back(
            {.kind = Step::Kind::kSettings, .event = i, .value = script_.settings.size()});
        script_.settings.push_back(std::move(text));
    }

    void add_device_event(const Event& event, EventIndex i) {
        switch (event.kind) {
            case EventKind::kAsyncAlloc:
                ++script_.stream_ordered;
                [[fallthrough]];
            case EventKind::kDeviceAlloc:
            case EventKind::kPhysicalCreate:
            case EventKind::kArrayAlloc:
            case EventKind::kGraphMemory:
                if (device_bytes(event) != kUnknown64) {
                    add_allocation(event, i, 0, false);
                }
                break;
            case EventKind::kAllocRefused:
                script_.refusals.push_back({event.size_bytes, 0});
                add_allocation(event, i, 0, true);
                break;
            default:
                break;
        }
    }

    // One event (a reset, an unmap) may end many allocations. It is recorded as the partner of
    // each.
    void follow_device_layer(const Event& event, EventIndex i) {
        if (const auto ended = ends_.find(i); ended != ends_.end()) {
            for (const EventIndex alloc : ended->second) {
                release(alloc, i);
            }
            ends_.erase(ended);
        }
        const EventIndex end = timeline_.partner[i];
        const bool allocates = is_device_allocation(event.kind) && event.device == script_.device &&
                               device_bytes(event) != 0 && device_bytes(event) != kUnknown64;
        // A checkpoint replaces all earlier state.
        if (allocates && end != kNoEvent &&
            timeline_.events[end].kind != EventKind::kCheckpointBegin) {
            ends_[end].push_back(i);
        }
    }

    void add_allocation(const Event& event, EventIndex i, std::uint64_t block_bytes, bool oom) {
        Step step{.kind = Step::Kind::kAllocate, .recorded_oom = oom, .event = i, .block = i};
        step.value = oom ? event.size_bytes : requested_bytes(event);
        step.stream = event.stream;
        if (script_.source == ScriptSource::kBlocks) {
            pools_.allocate(event, i, oom, &step);
        }
        if (step.value == kUnknown64) {
            step.value = block_bytes;
            ++script_.requested_unknown;
        }
        if (step.stream == kNoStream) {
            step.stream = default_stream();
            script_.stream_unknown += script_.source == ScriptSource::kBlocks ? 1 : 0;
        }
        answers_.end_request(&step);
        step.private_pool = pools_.pool();
        if (step.value != 0) {
            any_request_ = true;
            script_.steps.push_back(step);
        }
        add_waited_for(i);
    }

    static std::uint64_t requested_bytes(const Event& event) {
        return event.kind == EventKind::kBlockAlloc ? event.size_bytes : device_bytes(event);
    }

    // After a refusal the allocator waits for pending blocks. By then it has already searched for a
    // free block, so these blocks were not reusable at the start of the request.
    void add_waited_for(EventIndex request) {
        for (const auto& [pending, i] : waited_for_) {
            script_.steps.push_back(
                {.kind = Step::Kind::kComplete, .event = std::max(i, request), .value = pending});
        }
        waited_for_.clear();
    }

    void add_release(EventIndex i) {
        const EventIndex alloc = timeline_.partner[i];
        if (alloc != kNoEvent) {  // the reader counts unmatched releases as trace damage
            release(alloc, i);
        }
    }

    void release(EventIndex alloc, EventIndex i) {
        pools_.release(alloc);
        Step step{.kind = Step::Kind::kRelease, .event = i, .block = alloc};
        step.first_pending = static_cast<std::uint32_t>(script_.pending.size());
        script_.steps.push_back(step);
    }

    // Pending events directly follow the release that they belong to.
    void add_pending(const Event& event) {
        if (script_.steps.empty() || script_.steps.back().kind != Step::Kind::kRelease) {
            return;
        }
        Step release = script_.steps.back();
        if (release.pending_count == 0) {  // the table does not store the begin of an empty range
            release.first_pending = static_cast<std::uint32_t>(script_.pending.size());
        }
        ++release.pending_count;
        const std::uint64_t id = ++next_pending_;
        outstanding_[event.extra] = id;
        script_.pending.push_back(
            {id, event.stream == kNoStream ? default_stream() : event.stream});
        script_.steps.set(script_.steps.size() - 1, release);
    }

    void add_completion(const Event& event, EventIndex i) {
        const auto found = outstanding_.find(event.extra);
        if (found == outstanding_.end()) {
            return;
        }
        // The handle may be reused by a later event, so resolve it now.
        if (answers_.refused()) {
            waited_for_.emplace_back(found->second, i);
        } else {
            script_.steps.push_back(
                {.kind = Step::Kind::kComplete, .event = i, .value = found->second});
        }
        outstanding_.erase(found);
    }

    StreamId default_stream() {
        const auto found = std::find(script_.streams.begin(), script_.streams.end(), 0u);
        if (found != script_.streams.end()) {
            return static_cast<StreamId>(found - script_.streams.begin());
        }
        script_.streams.push_back(0);
        return static_cast<StreamId>(script_.streams.size() - 1);
    }

    const Timeline& timeline_;
    ReplayScript script_;
    PrivatePoolSteps pools_;
    PastPoolSteps past_pool_;
    UnmappedSegmentSteps unmapped_segments_;
    DriverAnswers answers_;
    std::uint64_t next_pending_ = 0;
    std::unordered_map<std::uint64_t, std::uint64_t> outstanding_;  // event handle -> pending id
    // Events that completed since a refusal: pending id, event.
    std::vector<std::pair<std::uint64_t, EventIndex>> waited_for_;

    // kDeviceLayer: by the event that ends them.
    std::unordered_map<EventIndex, std::vector<EventIndex>> ends_;
    bool any_request_ = false;
    std::size_t next_checkpoint_ = 0;
    EventIndex checkpoint_end_ = 0;
    std::optional<RecordedState> state_;  // only if there are checkpoints
};

}  // namespace

bool asks_for_free_memory(const Event& event) {
    return event.kind == EventKind::kMemoryInfo &&
           (event.flags & (kFlagByPool | kFlagFromAllocator)) == 0;
}

std::vector<DeviceId> replayable_devices(const Timeline& timeline) {
    const RecordedDevices devices(timeline);
    std::vector<DeviceId> used;
    for (DeviceId device = 0; device < kMaxDevices; ++device) {
        if (devices.used[device]) {
            used.push_back(device);
        }
    }
    return used;
}

ReplayScript make_script(const Timeline& timeline, DeviceId device) {
    const bool has_blocks =
        std::any_of(timeline.events.begin(), timeline.events.end(), [device](const Event& event) {
            return event.device == device && (event.kind == EventKind::kBlockAlloc ||
                                              event.kind == EventKind::kBlockOutOfMemory);
        });
    return Builder(
               timeline, device, has_blocks ? ScriptSource::kBlocks : ScriptSource::kDeviceLayer)
        .build();
}

std::uint64_t adopted_bytes(const ReplayScript& script) {
    std::uint64_t most = 0;
    for (const HeapSnapshot& heap : script.checkpoints) {
        std::uint64_t held = 0;
        for (const HeapSegment& segment : heap.segments) {
            held += segment.size_bytes;
        }
        most = std::max(most, held);
    }
    return most;
}

double least_memory_fraction(const ReplayScript& script) {
    double least = 1;
    if (!script.steps.may_have({Step::Kind::kMemoryFraction})) {
        return least;
    }
    for (std::size_t i = 0; i < script.steps.size(); ++i) {
        const Step step = script.steps[i];
        if (step.kind == Step::Kind::kMemoryFraction) {
            least = std::min(least, std::bit_cast<double>(step.value));
        }
    }
    return least;
}

}  // namespace fragtrace::analyzer
