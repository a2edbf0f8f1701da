#include "analyzer/replay/replayer.h"

#include "analyzer/replay/past_pool.h"
#include "analyzer/replay/unmapped_segments.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace fragtrace::analyzer {

bool RecordedDevice::take(std::uint64_t size_bytes) {
    if (by_capacity_) {
        obtained_ = {};
        if (size_bytes > free_bytes()) {
            return false;
        }
    } else if (!refusals_.empty() && refusals_.front().size_bytes == size_bytes &&
               refusals_.front().granted_before <= granted_) {
        refusals_ = refusals_.subspan(1);
        return false;
    }
    ++granted_;
    used_bytes_ += size_bytes;
    address_ = 0;
    if (!obtained_.empty() && obtained_.front().size_bytes == size_bytes) {
        address_ = obtained_.front().address;
        obtained_ = obtained_.subspan(1);
    }
    return true;
}

Request request_of(const Step& step) {
    return {.block = step.block,
            .requested_bytes = step.value,
            .stream = step.stream,
            .private_pool = step.private_pool,
            .in_capture = step.in_capture,
            .upper_end = step.upper_end};
}

WasteSplit waste_split(const Pool& pool) {
    const PoolStatistics& statistics = pool.statistics();
    WasteSplit split;
    split.reserved = statistics.reserved.current;
    split.requested = statistics.requested.current;
    split.rounding = statistics.rounding_bytes;
    split.slack = statistics.slack_bytes;
    split.pending = statistics.active.current - statistics.allocated.current;
    split.releasable = pool.releasable_bytes();
    split.inactive_split =
        statistics.reserved.current - statistics.active.current - split.releasable;
    return split;
}

namespace {

// Positions of blocks in private pools: a checkpoint restores them at the same place.
using Places = std::unordered_map<BlockId, Placement>;

void place(const Step& step, Pool& pool, Places* places) {
    const auto former = places->find(step.placed_as);
    if (former != places->end() && pool.allocate_at(request_of(step), former->second)) {
        const Placement same = former->second;
        (*places)[step.block] = same;
        return;
    }
    const AllocateResult served = pool.allocate(request_of(step));
    if (served.outcome != Outcome::kOutOfMemory && served.outcome != Outcome::kRejected) {
        (*places)[step.block] = served.placement;
    }
}

// Returns false if the checkpoint's memory does not fit. The replay then ends, because nothing is
// known about later steps.
bool adopt(const ReplayScript& script,
           std::size_t step,
           Pool& pool,
           Places* places,
           ReplayResult* result) {
    const HeapSnapshot& heap = script.checkpoints[script.steps[step].value];
    if (!pool.adopt(heap)) {
        std::uint64_t held = 0;
        for (const HeapSegment& segment : heap.segments) {
            held += segment.size_bytes;
        }
        result->troubles.push_back({step, script.steps[step].event, Outcome::kOutOfMemory, held});
        return false;
    }
    if (script.rewinds != 0) {
        for (const HeapBlock& block : heap.blocks) {
            if (block.state != BlockState::kFree) {
                (*places)[block.allocated_by] = pool.find(block.allocated_by).value_or(Placement{});
            }
        }
    }
    return true;
}

void diverge(ReplayResult* result, Divergence::Kind kind, EventIndex event, const Pool& pool) {
    if (!result->divergence) {
        result->divergence =
            Divergence{kind, event, pool.statistics(), result->ooms(), result->retries()};
    }
}

// Tests whether the driver could have served a library's request in this replay.
void try_library(const LibraryRequest& request, bool goes_on, Pool& pool, ReplayResult* result) {
    // Limits sizes of damaged traces. Any size above all cards has the same effect.
    constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 61;
    const auto free = static_cast<std::int64_t>(std::min(pool.device().free_bytes(), kMostBytes));
    const auto asked = static_cast<std::int64_t>(std::min(request.asked_bytes, kMostBytes));
    const std::int64_t spare = free - request.beside_bytes - asked;
    result->libraries_spare = std::min(result->libraries_spare, spare);
    if (spare < 0) {
        ++result->libraries_failed;
        return;
    }
    diverge(result,
            goes_on ? Divergence::Kind::kGoesOn : Divergence::Kind::kIsServed,
            request.event,
            pool);
}

// Index after the last request to the pool; 0 if there is none.
std::size_t end_of_requests(const ReplayScript& script) {
    for (std::size_t i = script.steps.size(); i-- > 0;) {
        if (script.steps[i].kind == Step::Kind::kAllocate) {
            return i + 1;
        }
    }
    return 0;
}

std::uint64_t count(const std::vector<Trouble>& troubles, bool retries) {
    return static_cast<std::uint64_t>(
        std::count_if(troubles.begin(), troubles.end(), [retries](const Trouble& trouble) {
            return (trouble.outcome == Outcome::kRetryOk) == retries;
        }));
}

}  // namespace

std::uint64_t ReplayResult::ooms() const {
    return count(troubles, false) + libraries_failed;
}

std::uint64_t ReplayResult::retries() const {
    return count(troubles, true);
}

ReplayResult replay(const ReplayScript& script,
                    Pool& pool,
                    RecordedDevice* recorded,
                    const ReplayHooks& hooks) {
    ReplayResult result;
    const PoolStatistics& statistics = pool.statistics();
    const bool watched = hooks.before_step != nullptr;
    std::uint64_t peak_reserved = 0;
    std::size_t next_obtained = 0;
    std::vector<Pool::PendingOn> pending;
    Places places;
    std::size_t next_library = 0;
    const std::size_t requests_end = end_of_requests(script);
    PastPool past_pool(pool);
    UnmappedSegments unmapped_segments(pool);
    // Rare, and therefore not inline: the loop over all steps below stays small, which makes it
    // faster.
    const auto note_free_memory = [&]() __attribute__((noinline)) {
        const Device& device = pool.device();
        const std::uint64_t unsure = device.unsure_bytes();
        if (unsure != 0 && !result.divergence && device.free_bytes() < unsure) {
            result.pages_decide = true;
        }
        if (past_pool.holds_any()) {
            result.least_free_bytes = std::min(result.least_free_bytes, device.free_bytes());
        }
    };
    const auto take_peak = [&](EventIndex event) __attribute__((noinline)) {
        peak_reserved = statistics.reserved.current;
        result.waste_at_peak = waste_split(pool);
        result.peak_event = event;
    };
    const auto note_peak = [&](EventIndex event) {
        if (statistics.reserved.current > peak_reserved) {
            take_peak(event);
        }
    };
    // Returns false if the replay ends here. By value: a step whose address is not taken stays in
    // registers.
    const auto rare_step = [&](std::size_t i, Step step) __attribute__((noinline)) {
        switch (step.kind) {
            case Step::Kind::kAllocate:
            case Step::Kind::kRelease:
                break;  // in the loop
            case Step::Kind::kComplete:
                pool.complete(step.value);
                break;
            case Step::Kind::kEmptyCache:
                if (step.private_pool != 0) {
                    pool.empty_private_pool(step.private_pool);
                } else {
                    pool.empty_cache();
                }
                break;
            case Step::Kind::kStreamEnd:
                pool.end_stream(step.stream);
                break;
            case Step::Kind::kMemoryFraction:
                pool.set_memory_fraction(std::bit_cast<double>(step.value));
                break;
            case Step::Kind::kAdopt:
                if (!adopt(script, i, pool, &places, &result)) {
                    return false;
                }
                note_peak(step.event);
                if (hooks.after_adopt) {
                    hooks.after_adopt(i, pool);
                }
                break;
            case Step::Kind::kPlace:
                place(step, pool, &places);
                break;
            case Step::Kind::kPoolOptions:
                pool.set_private_pool(step.private_pool,
                                      {.freeable = (step.value & kPoolFreeable) != 0,
                                       .no_split = (step.value & kPoolNoSplit) != 0,
                                       .use_on_oom = (step.value & kPoolUseOnOom) != 0,
                                       .graph = (step.value & kPoolOfGraph) != 0});
                break;
            case Step::Kind::kMemoryInfo:
                if (pool.device().free_bytes() != step.value) {
                    diverge(&result, Divergence::Kind::kFreeMemory, step.event, pool);
                }
                break;
            case Step::Kind::kSettings:
                pool.change_settings(script.settings[step.value]);
                break;
            case Step::Kind::kPastPool:
                if (recorded != nullptr) {
                    recorded->expect({}, {});  // refusals of these requests are recorded separately
                }
                if (!past_pool.take(step)) {
                    ++result.libraries_failed;
                    diverge(&result, Divergence::Kind::kFails, step.event, pool);
                }
                note_free_memory();
                break;
            case Step::Kind::kPastPoolFree:
                past_pool.give_back(step);
                break;
            case Step::Kind::kSegmentUnmapped:
                unmapped_segments.unmap(step);
                break;
            case Step::Kind::kSegmentMapped:
            case Step::Kind::kUnmappedSegmentEnd:
                if (recorded != nullptr) {
                    recorded->expect({}, {});
                }
                if (!unmapped_segments.map(step) && step.kind == Step::Kind::kSegmentMapped) {
                    ++result.libraries_failed;
                    diverge(&result, Divergence::Kind::kFails, step.event, pool);
                }
                break;
        }
        return true;
    };
    const auto try_libraries = [&](std::size_t i, EventIndex event) __attribute__((noinline)) {
        while (next_library < script.libraries.size() &&
               script.libraries[next_library].event < event) {
            try_library(script.libraries[next_library++], i < requests_end, pool, &result);
        }
    };
    const bool libraries = !script.libraries.empty();
    const std::size_t steps = script.steps.size();
    const std::vector<Pool::PendingOn> none_pending;
    for (std::size_t i = 0; i < steps; ++i) {
        const Step step = script.steps[i];
        if (libraries) {
            try_libraries(i, step.event);
        }
        if (watched && !hooks.before_step(i, pool)) {
            break;
        }
        switch (step.kind) {
            case Step::Kind::kAllocate: {
                if (recorded != nullptr) {
                    const std::size_t first = next_obtained;
                    while (next_obtained < script.obtained.size() &&
                           script.obtained[next_obtained].request <= step.event) {
                        ++next_obtained;
                    }
                    recorded->expect(
                        std::span(script.refusals).subspan(step.first_refusal, step.refusal_count),
                        std::span(script.obtained).subspan(first, next_obtained - first));
                }
                const Request request = request_of(step);
                const AllocateResult served = pool.allocate(request);
                const bool failed =
                    served.outcome == Outcome::kOutOfMemory || served.outcome == Outcome::kRejected;
                if (failed || served.outcome == Outcome::kRetryOk) {
                    result.troubles.push_back({i, step.event, served.outcome, step.value});
                }
                result.requests_served += failed ? 0 : 1;
                if (served.outcome != Outcome::kHit) {  // a hit takes nothing from the device
                    note_free_memory();
                }
                note_peak(step.event);
                if (step.private_pool != 0 && script.rewinds != 0 && !failed) {
                    places[step.block] = served.placement;
                }
                if (hooks.after_request) {
                    hooks.after_request(i, served, pool);
                }
                if (failed && !step.recorded_oom) {
                    diverge(&result, Divergence::Kind::kFails, step.event, pool);
                }
                if (step.recorded_oom && !failed) {
                    if (!result.divergence) {
                        diverge(&result,
                                i + 1 < requests_end ? Divergence::Kind::kGoesOn
                                                     : Divergence::Kind::kIsServed,
                                step.event,
                                pool);
                    }
                    pool.release(step.block, {});
                }
                break;
            }
            case Step::Kind::kRelease:
                if (step.pending_count == 0) {
                    pool.release(step.block, none_pending);
                    break;
                }
                pending.assign(script.pending.begin() + step.first_pending,
                               script.pending.begin() + step.first_pending + step.pending_count);
                pool.release(step.block, pending);
                break;
            default:
                if (!rare_step(i, step)) {
                    result.statistics = statistics;
                    return result;
                }
                break;
        }
        if (statistics.pool_lost) {
            diverge(&result, Divergence::Kind::kPoolLost, step.event, pool);
        }
    }
    while (next_library < script.libraries.size()) {
        try_library(script.libraries[next_library++], false, pool, &result);
    }
    result.statistics = statistics;
    return result;
}

}  // namespace fragtrace::analyzer
