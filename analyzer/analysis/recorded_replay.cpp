#include "analyzer/analysis/recorded_replay.h"

#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/analysis/replay_setups.h"
#include "analyzer/model/recorded_state.h"
#include "analyzer/model/unknown_segments.h"
#include "analyzer/replay/block_sizes.h"
#include "analyzer/replay/unmapped_segments.h"

#include <algorithm>
#include <functional>
#include <future>
#include <memory>

namespace fragtrace::analyzer {
namespace {

// Further refused requests of libraries are ignored, since every replay tries each of them again.
constexpr std::size_t kMostLibraryRequests = 4096;

// Takes the address maps right after the requests (or checkpoints) at which reserved and allocated
// first reached their maximum.
Status map_at_peaks(const ReplayResult& result, DeviceAnalysis* device) {
    auto setup = recorded_setup(*device);
    if (!setup) {
        return setup.error();
    }
    const std::uint64_t at_peak_allocated = result.statistics.allocated.peak;
    Diagnosis peak;
    peak.trouble.event = result.peak_event;
    bool done = false;
    ReplayHooks hooks;
    hooks.before_step = [&](std::size_t, Pool&) {
        return !done || device->at_peak_allocated.event == kNoEvent;
    };
    const auto look = [&](std::size_t i, Pool& pool) {
        const EventIndex event = device->script.steps[i].event;
        if (device->at_peak_allocated.event == kNoEvent &&
            pool.statistics().allocated.current == at_peak_allocated) {
            device->at_peak_allocated = {event, pool.snapshot()};
            device->at_peak_allocated.heap.unmapped_bytes = unmapped_before(device->script, event);
        }
        if (done || event != result.peak_event) {
            return;
        }
        done = true;
        peak.heap = pool.snapshot();
        peak.heap.unmapped_bytes = unmapped_before(device->script, event);
        peak.held_open = held_open_bytes(peak.heap);
        peak.verdict.reserved_bytes = pool.statistics().reserved.current;
        peak.verdict.active_bytes = pool.statistics().active.current;
        peak.verdict.allocated_bytes = pool.statistics().allocated.current;
        peak.verdict.free_bytes = peak.verdict.reserved_bytes - peak.verdict.active_bytes;
        peak.verdict.device_free_bytes = pool.device().free_bytes();
        for (const HeapBlock& block : peak.heap.blocks) {
            if (block.state == BlockState::kFree) {
                peak.verdict.largest_hole_bytes =
                    std::max(peak.verdict.largest_hole_bytes, block.size_bytes);
            }
        }
    };
    hooks.after_adopt = look;
    hooks.after_request = [&look](std::size_t i, const AllocateResult&, Pool& pool) {
        look(i, pool);
    };
    replay(device->script, *setup->pool, setup->recorded, hooks);
    if (segments_known(device->recorded)) {
        device->peak = std::move(peak);
    }
    return Ok{};
}

// Limits sizes of a damaged trace: no card has this much memory.
std::int64_t within_card(std::uint64_t bytes) {
    return static_cast<std::int64_t>(std::min(bytes, std::uint64_t{1} << 60));
}

// Adds requests to the driver that libraries made outside a pool.
Status add_libraries(const Timeline& timeline,
                     DeviceAnalysis* device,
                     std::size_t limit,
                     CoverBudget* budget) {
    if (device->script.source != ScriptSource::kBlocks || limit == 0) {
        return Ok{};
    }
    auto requests = refused_libraries(timeline, device->device, kMostLibraryRequests);
    if (requests.empty()) {
        return Ok{};
    }
    auto setup = recorded_setup(*device);
    if (!setup) {
        return setup.error();
    }
    if (device->capacity_known) {
        device->script.libraries = requests;
        for (LibraryRequest& request : device->script.libraries) {
            request.beside_bytes =
                within_card(device->capacity_bytes) - within_card(request.pool_bytes) -
                within_card(request.past_pool_bytes) - within_card(request.device_free_bytes);
        }
    }
    device->troubles += requests.size();
    // All are tried in replays, but only these are diagnosed.
    requests.resize(std::min(requests.size(), limit));
    for (Diagnosis& diagnosis : diagnose_libraries(
             device->script, requests, std::move(setup).value(), others_to_go(*device), budget)) {
        device->diagnoses.push_back(std::move(diagnosis));
    }
    std::stable_sort(
        device->diagnoses.begin(),
        device->diagnoses.end(),
        [](const Diagnosis& a, const Diagnosis& b) { return a.trouble.event < b.trouble.event; });
    return Ok{};
}

// The driver's report that follows an event directly: the recorder asks for one after a refusal.
// Else the event itself.
EventIndex report_after(const EventTable& events, EventIndex event, DeviceId device) {
    constexpr EventIndex kNear = 4;
    for (EventIndex i = event + 1; i < events.size() && i <= event + kNear; ++i) {
        if (events.device(i) == device) {
            return events.kind(i) == EventKind::kMemoryInfo ? i + 1 : event;
        }
    }
    return event;
}

// The capacity at a failure, by the driver's report right after it, else by the last one before it.
// The replay has one capacity for the whole run, that of the last report.
std::function<std::uint64_t(EventIndex)> recorded_capacity(const Timeline& timeline,
                                                           const DeviceAnalysis& device) {
    if (!device.capacity_known) {
        return {};
    }
    const auto state = std::make_shared<RecordedState>(timeline);
    return [state, &timeline, &device](EventIndex event) {
        state->advance_to(report_after(timeline.events, event, device.device));
        const MemorySample& sample = state->sample(device.device);
        return sample.event == kNoEvent || sample.total_bytes != device.total_bytes
                   ? device.capacity_bytes
                   : std::min(sample.total_bytes,
                              sample.free_bytes + sample.own_pool_bytes + sample.past_pool_bytes);
    };
}

// The first out-of-memory of the pool after which it served no request; kNoEvent = none.
EventIndex final_oom(const ReplayScript& script) {
    EventIndex found = kNoEvent;
    for (std::size_t i = 0; i < script.steps.size(); ++i) {
        const Step step = script.steps[i];
        if (step.kind == Step::Kind::kAllocate) {
            found = !step.recorded_oom ? kNoEvent : found == kNoEvent ? step.event : found;
        }
    }
    return found;
}

}  // namespace

std::uint64_t others_to_go(const DeviceAnalysis& device) {
    const std::uint64_t context = device.context.bytes;
    if (context != 0) {
        return device.others_bytes - std::min(device.others_bytes, context);
    }
    std::uint64_t known =
        device.other_processes.empty() ? 0 : device.other_processes.front().other_bytes;
    const MemorySample& sample = device.last_sample;
    const std::uint64_t no_others = sample.own_pool_bytes + sample.past_pool_bytes;
    known += sample.own_bytes - std::min(sample.own_bytes, no_others);
    return std::min(device.others_bytes, known);
}

Status add_replay(const Timeline& timeline,
                  DeviceAnalysis* device,
                  ReplayResult* result,
                  OtherSizes* sizes) {
    auto setup = recorded_setup(*device);
    if (!setup) {
        return setup.error();
    }
    if (device->script.source == ScriptSource::kBlocks && shows_reserved(timeline.facts)) {
        device->fidelity = measure_fidelity(timeline,
                                            device->script,
                                            *setup->pool,
                                            *setup->recorded,
                                            result,
                                            needs_replayed_sizes(timeline) ? sizes : nullptr);
    } else {
        *result = replay(device->script, *setup->pool, setup->recorded);
    }
    return Ok{};
}

Status add_diagnoses(const Timeline& timeline,
                     DeviceAnalysis* device,
                     const ReplayResult& result,
                     const AnalyzeOptions& options,
                     CoverBudget* budget) {
    const std::size_t limit = options.max_diagnoses;
    if (!segments_known(device->recorded)) {  // no cause can be found
        return options.holders && result.peak_event != kNoEvent ? map_at_peaks(result, device)
                                                                : Status(Ok{});
    }
    // The maps do not depend on the diagnoses: two replays, side by side.
    const bool maps = options.holders && result.peak_event != kNoEvent;
    std::future<Status> mapped;
    if (maps) {
        const auto how = result.troubles.empty() ? std::launch::deferred : std::launch::async;
        mapped = std::async(how, [&result, device] { return map_at_peaks(result, device); });
    }
    device->troubles = result.troubles.size();
    device->final_oom = final_oom(device->script);
    if (!result.troubles.empty()) {
        auto setup = recorded_setup(*device);
        if (!setup) {
            return setup.error();
        }
        if (!options.capacity_bytes) {
            setup->capacity_at = recorded_capacity(timeline, *device);
        }
        device->diagnoses = diagnose(device->script,
                                     result.troubles,
                                     std::move(setup).value(),
                                     others_to_go(*device),
                                     limit,
                                     device->final_oom,
                                     budget);
    }
    if (maps) {
        if (const Status done = mapped.get(); !done) {
            return done.error();
        }
    }
    return add_libraries(timeline, device, limit, budget);
}

}  // namespace fragtrace::analyzer
