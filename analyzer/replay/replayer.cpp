#include "analyzer/replay/replayer.h"

#include "analyzer/replay/past_pool.h"
#include "analyzer/replay/unmapped_segments.h"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

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

// One replay. Members that rarely run are not inline: the loop over all steps stays small, which
// makes it faster.
class Replay {
  public:
    Replay(const ReplayScript& script,
           Pool& pool,
           RecordedDevice* recorded,
           const ReplayHooks& hooks)
        : script_(script),
          pool_(pool),
          statistics_(pool.statistics()),
          recorded_(recorded),
          hooks_(hooks),
          requests_end_(end_of_requests(script)),
          past_pool_(pool),
          unmapped_segments_(pool) {}

    ReplayResult run() {
        if (run_steps()) {
            try_libraries_until(script_.steps.size(), kNoEvent);
        }
        result_.statistics = statistics_;
        return std::move(result_);
    }

  private:
    // Returns false if the script's last steps were not replayed, because nothing is known about
    // them.
    bool run_steps();
    void allocate(std::size_t i, const Step& step);
    void release(const Step& step);
    [[gnu::noinline]] bool rare_step(std::size_t i, Step step);
    bool adopt(std::size_t i, const Step& step);
    void place(const Step& step);
    void map_segment(const Step& step);
    void take_from_past_pool(const Step& step);
    void set_private_pool(const Step& step);

    void expect_as_recorded(const Step& step);
    void serve_recorded_oom(std::size_t i, const Step& step);
    void diverge(Divergence::Kind kind, EventIndex event);
    [[gnu::noinline]] void try_libraries_until(std::size_t i, EventIndex event);
    void try_library(const LibraryRequest& request, bool goes_on);
    [[gnu::noinline]] void note_free_memory();
    [[gnu::noinline]] void take_peak(EventIndex event);

    void note_peak(EventIndex event) {
        if (statistics_.reserved.current > peak_reserved_) {
            take_peak(event);
        }
    }

    const ReplayScript& script_;
    Pool& pool_;
    const PoolStatistics& statistics_;
    RecordedDevice* recorded_;  // nullptr: the device is not the recorded one
    const ReplayHooks& hooks_;
    const std::size_t requests_end_;
    PastPool past_pool_;
    UnmappedSegments unmapped_segments_;
    // Positions of blocks in private pools: a checkpoint restores them at the same place.
    std::unordered_map<BlockId, Placement> places_;
    std::vector<Pool::PendingOn> pending_;
    const std::vector<Pool::PendingOn> none_pending_;
    std::size_t next_obtained_ = 0;
    std::size_t next_library_ = 0;
    std::uint64_t peak_reserved_ = 0;
    ReplayResult result_;
};

bool Replay::run_steps() {
    const bool watched = hooks_.before_step != nullptr;
    const bool libraries = !script_.libraries.empty();
    const std::size_t steps = script_.steps.size();
    for (std::size_t i = 0; i < steps; ++i) {
        // By value: a step whose address is not taken stays in registers.
        const Step step = script_.steps[i];
        if (libraries) {
            try_libraries_until(i, step.event);
        }
        if (watched && !hooks_.before_step(i, pool_)) {
            break;
        }
        if (step.kind == Step::Kind::kAllocate) {
            allocate(i, step);
        } else if (step.kind == Step::Kind::kRelease) {
            release(step);
        } else if (!rare_step(i, step)) {
            return false;
        }
        if (statistics_.pool_lost) {
            diverge(Divergence::Kind::kPoolLost, step.event);
        }
    }
    return true;
}

inline void Replay::allocate(std::size_t i, const Step& step) {
    if (recorded_ != nullptr) {
        expect_as_recorded(step);
    }
    const AllocateResult served = pool_.allocate(request_of(step));
    const bool failed =
        served.outcome == Outcome::kOutOfMemory || served.outcome == Outcome::kRejected;
    if (failed || served.outcome == Outcome::kRetryOk) {
        result_.troubles.push_back({i, step.event, served.outcome, step.value});
    }
    result_.requests_served += failed ? 0 : 1;
    if (served.outcome != Outcome::kHit) {  // a hit takes nothing from the device
        note_free_memory();
    }
    note_peak(step.event);
    if (step.private_pool != 0 && script_.rewinds != 0 && !failed) {
        places_[step.block] = served.placement;
    }
    if (hooks_.after_request) {
        hooks_.after_request(i, served, pool_);
    }
    if (failed && !step.recorded_oom) {
        diverge(Divergence::Kind::kFails, step.event);
    }
    if (step.recorded_oom && !failed) {
        serve_recorded_oom(i, step);
    }
}

void Replay::expect_as_recorded(const Step& step) {
    const std::size_t first = next_obtained_;
    while (next_obtained_ < script_.obtained.size() &&
           script_.obtained[next_obtained_].request <= step.event) {
        ++next_obtained_;
    }
    recorded_->expect(std::span(script_.refusals).subspan(step.first_refusal, step.refusal_count),
                      std::span(script_.obtained).subspan(first, next_obtained_ - first));
}

// The program never had this block: nothing frees it later.
void Replay::serve_recorded_oom(std::size_t i, const Step& step) {
    diverge(i + 1 < requests_end_ ? Divergence::Kind::kGoesOn : Divergence::Kind::kIsServed,
            step.event);
    pool_.release(step.block, {});
}

inline void Replay::release(const Step& step) {
    if (step.pending_count == 0) {
        pool_.release(step.block, none_pending_);
        return;
    }
    const auto first = script_.pending.begin() + step.first_pending;
    pending_.assign(first, first + step.pending_count);
    pool_.release(step.block, pending_);
}

// Returns false if the replay ends here.
bool Replay::rare_step(std::size_t i, Step step) {
    switch (step.kind) {
        case Step::Kind::kAllocate:
        case Step::Kind::kRelease:
            break;  // not rare
        case Step::Kind::kComplete:
            pool_.complete(step.value);
            break;
        case Step::Kind::kEmptyCache:
            if (step.private_pool != 0) {
                pool_.empty_private_pool(step.private_pool);
            } else {
                pool_.empty_cache();
            }
            break;
        case Step::Kind::kStreamEnd:
            pool_.end_stream(step.stream);
            break;
        case Step::Kind::kMemoryFraction:
            pool_.set_memory_fraction(std::bit_cast<double>(step.value));
            break;
        case Step::Kind::kAdopt:
            return adopt(i, step);
        case Step::Kind::kPlace:
            place(step);
            break;
        case Step::Kind::kPoolOptions:
            set_private_pool(step);
            break;
        case Step::Kind::kMemoryInfo:
            if (pool_.device().free_bytes() != step.value) {
                diverge(Divergence::Kind::kFreeMemory, step.event);
            }
            break;
        case Step::Kind::kSettings:
            pool_.change_settings(script_.settings[step.value]);
            break;
        case Step::Kind::kPastPool:
            take_from_past_pool(step);
            break;
        case Step::Kind::kPastPoolFree:
            past_pool_.give_back(step);
            break;
        case Step::Kind::kSegmentUnmapped:
            unmapped_segments_.unmap(step);
            break;
        case Step::Kind::kSegmentMapped:
        case Step::Kind::kUnmappedSegmentEnd:
            map_segment(step);
            break;
    }
    return true;
}

// Returns false if the checkpoint's memory does not fit. The replay then ends, because nothing is
// known about later steps.
bool Replay::adopt(std::size_t i, const Step& step) {
    const HeapSnapshot& heap = script_.checkpoints[step.value];
    if (!pool_.adopt(heap)) {
        std::uint64_t held = 0;
        for (const HeapSegment& segment : heap.segments) {
            held += segment.size_bytes;
        }
        result_.troubles.push_back({i, step.event, Outcome::kOutOfMemory, held});
        return false;
    }
    if (script_.rewinds != 0) {
        for (const HeapBlock& block : heap.blocks) {
            if (block.state != BlockState::kFree) {
                places_[block.allocated_by] = pool_.find(block.allocated_by).value_or(Placement{});
            }
        }
    }
    note_peak(step.event);
    if (hooks_.after_adopt) {
        hooks_.after_adopt(i, pool_);
    }
    return true;
}

void Replay::place(const Step& step) {
    const auto former = places_.find(step.placed_as);
    if (former != places_.end() && pool_.allocate_at(request_of(step), former->second)) {
        const Placement same = former->second;
        places_[step.block] = same;
        return;
    }
    const AllocateResult served = pool_.allocate(request_of(step));
    if (served.outcome != Outcome::kOutOfMemory && served.outcome != Outcome::kRejected) {
        places_[step.block] = served.placement;
    }
}

void Replay::set_private_pool(const Step& step) {
    pool_.set_private_pool(step.private_pool,
                           {.freeable = (step.value & kPoolFreeable) != 0,
                            .no_split = (step.value & kPoolNoSplit) != 0,
                            .use_on_oom = (step.value & kPoolUseOnOom) != 0,
                            .graph = (step.value & kPoolOfGraph) != 0});
}

void Replay::take_from_past_pool(const Step& step) {
    if (recorded_ != nullptr) {
        recorded_->expect({}, {});  // refusals of these requests are recorded separately
    }
    if (!past_pool_.take(step)) {
        ++result_.libraries_failed;
        diverge(Divergence::Kind::kFails, step.event);
    }
    note_free_memory();
}

void Replay::map_segment(const Step& step) {
    if (recorded_ != nullptr) {
        recorded_->expect({}, {});
    }
    if (!unmapped_segments_.map(step) && step.kind == Step::Kind::kSegmentMapped) {
        ++result_.libraries_failed;
        diverge(Divergence::Kind::kFails, step.event);
    }
}

void Replay::diverge(Divergence::Kind kind, EventIndex event) {
    if (!result_.divergence) {
        result_.divergence =
            Divergence{kind, event, statistics_, result_.ooms(), result_.retries()};
    }
}

// Tries the requests that libraries made before the event. `i`: the step to which it belongs.
void Replay::try_libraries_until(std::size_t i, EventIndex event) {
    while (next_library_ < script_.libraries.size() &&
           script_.libraries[next_library_].event < event) {
        try_library(script_.libraries[next_library_++], i < requests_end_);
    }
}

// Tests whether the driver could have served a library's request in this replay.
void Replay::try_library(const LibraryRequest& request, bool goes_on) {
    // Limits sizes of damaged traces. Any size above all cards has the same effect.
    constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 61;
    const auto free = static_cast<std::int64_t>(std::min(pool_.device().free_bytes(), kMostBytes));
    const auto asked = static_cast<std::int64_t>(std::min(request.asked_bytes, kMostBytes));
    const std::int64_t spare = free - request.beside_bytes - asked;
    result_.libraries_spare = std::min(result_.libraries_spare, spare);
    if (spare < 0) {
        ++result_.libraries_failed;
        return;
    }
    diverge(goes_on ? Divergence::Kind::kGoesOn : Divergence::Kind::kIsServed, request.event);
}

void Replay::note_free_memory() {
    const Device& device = pool_.device();
    const std::uint64_t unsure = device.unsure_bytes();
    if (unsure != 0 && !result_.divergence && device.free_bytes() < unsure) {
        result_.pages_decide = true;
    }
    if (past_pool_.holds_any()) {
        result_.least_free_bytes = std::min(result_.least_free_bytes, device.free_bytes());
    }
}

void Replay::take_peak(EventIndex event) {
    peak_reserved_ = statistics_.reserved.current;
    result_.waste_at_peak = waste_split(pool_);
    result_.peak_event = event;
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
    return Replay(script, pool, recorded, hooks).run();
}

}  // namespace fragtrace::analyzer
