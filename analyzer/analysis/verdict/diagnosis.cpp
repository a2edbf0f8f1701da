#include "analyzer/analysis/verdict/diagnosis.h"

#include "analyzer/analysis/verdict/library_verdict.h"
#include "analyzer/model/recorded_state.h"
#include "analyzer/model/request_outcomes.h"
#include "analyzer/pools/pytorch/pytorch_sizes.h"
#include "analyzer/replay/past_pool.h"
#include "analyzer/replay/unmapped_segments.h"

#include <algorithm>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// OOMs come first, so that a limit never drops an OOM in favour of a retry. `always` is never
// dropped.
std::vector<Trouble> select(const std::vector<Trouble>& troubles,
                            std::size_t limit,
                            EventIndex always) {
    std::vector<Trouble> chosen;
    for (const bool retries : {false, true}) {
        for (const Trouble& trouble : troubles) {
            if ((trouble.outcome == Outcome::kRetryOk) == retries && chosen.size() < limit) {
                chosen.push_back(trouble);
            }
        }
    }
    const auto is_always = [always](const Trouble& trouble) { return trouble.event == always; };
    const auto needed = std::find_if(troubles.begin(), troubles.end(), is_always);
    if (needed != troubles.end() && !chosen.empty() &&
        std::none_of(chosen.begin(), chosen.end(), is_always)) {
        chosen.back() = *needed;
    }
    std::sort(chosen.begin(), chosen.end(), [](const Trouble& a, const Trouble& b) {
        return a.step < b.step;
    });
    return chosen;
}

// Only PyTorch has size classes; other pools ignore them.
WindowPlace place_of(const Request& request, std::uint64_t rounded_bytes) {
    return {.stream = request.stream,
            .private_pool = request.private_pool,
            .size_class =
                rounded_bytes <= pytorch::kSmallSizeBytes ? SizeClass::kSmall : SizeClass::kLarge};
}

void fill(Pool& state,
          const Request& request,
          std::uint64_t others_bytes,
          std::uint64_t waited_for_bytes,
          CoverBudget* budget,
          Diagnosis* diagnosis) {
    diagnosis->verdict = judge(state, request, others_bytes, waited_for_bytes);
    diagnosis->heap = state.snapshot();
    diagnosis->heap.device_free_bytes = state.device().free_bytes();
    const std::uint64_t rounded = diagnosis->verdict.rounded_bytes;
    diagnosis->wanted = {.place = place_of(request, rounded),
                         .window_bytes = rounded,
                         .driver_bytes = state.driver_bytes(rounded)};
    diagnosis->cheapest = find_cheapest_set(
        diagnosis->heap, rounded, diagnosis->wanted.driver_bytes, diagnosis->wanted.place, budget);
    diagnosis->held_open = held_open_bytes(diagnosis->heap);
}

void name_streams(const std::vector<std::uint64_t>& handles, Verdict* verdict) {
    const auto name = [&handles](FreePlace* place) {
        if (place->stream < handles.size()) {
            place->stream_handle = handles[place->stream];
        }
    };
    if (verdict->places) {
        name(&verdict->places->own);
        std::for_each(verdict->places->elsewhere.begin(),
                      verdict->places->elsewhere.end(),
                      [&name](FreePlace& place) { name(&place); });
    }
}

// Counts bytes that the pool returned and that it had before the request. The request may have
// mapped pages before a later one was refused. Those pages return too, but do not count.
std::uint64_t given_to_driver(Pool& pool) {
    std::uint64_t given = 0;
    std::uint64_t of_request = 0;
    for (const DriverCall& call : pool.take_driver_calls()) {
        const bool gives =
            call.kind == DriverCall::Kind::kSegmentFree || call.kind == DriverCall::Kind::kUnmap;
        if (call.refused) {
            continue;
        }
        given += gives ? call.size_bytes : 0;
        of_request += !gives && given == 0 ? call.size_bytes : 0;
    }
    return given - std::min(given, of_request);
}

std::uint64_t pending_bytes(const Pool& pool) {
    return pool.statistics().active.current - pool.statistics().allocated.current;
}

// A relaxed pool makes driver requests that were never recorded, so the device decides by capacity.
void by_capacity(Pool& pool) {
    if (auto* recorded = dynamic_cast<RecordedDevice*>(&pool.device())) {
        recorded->decide_by_capacity();
    }
}

// Gives the device the capacity that it had at an event. Returns how much memory was outside the
// pool then.
std::uint64_t set_capacity(Pool& pool, std::uint64_t capacity_bytes, std::uint64_t outside_bytes) {
    auto* recorded = dynamic_cast<RecordedDevice*>(&pool.device());
    if (recorded == nullptr) {
        return outside_bytes;
    }
    const std::uint64_t before = recorded->capacity_bytes();
    recorded->set_capacity(capacity_bytes);
    return capacity_bytes < before
               ? outside_bytes + (before - capacity_bytes)
               : outside_bytes - std::min(outside_bytes, capacity_bytes - before);
}

}  // namespace

std::vector<Diagnosis> diagnose(const ReplayScript& script,
                                const std::vector<Trouble>& troubles,
                                ReplaySetup setup,
                                std::uint64_t others_bytes,
                                std::size_t limit,
                                EventIndex always,
                                CoverBudget* budget) {
    const std::vector<Trouble> chosen = select(troubles, limit, always);
    std::vector<Diagnosis> diagnoses;
    if (chosen.empty()) {
        return diagnoses;
    }
    diagnoses.reserve(chosen.size());
    const auto asked = [&script](const Trouble& trouble) {
        return request_of(script.steps[trouble.step]);
    };
    const auto outside = [&script, others_bytes](std::size_t step) {
        return others_bytes + past_pool_bytes(script, step);
    };
    std::size_t next = 0;
    std::uint64_t pending_before = 0;
    ReplayHooks hooks;
    hooks.before_step = [&](std::size_t i, Pool& pool) {
        pending_before = pending_bytes(pool);
        if (next < chosen.size() && chosen[next].step == i &&
            chosen[next].outcome == Outcome::kRetryOk) {
            const std::unique_ptr<Pool> before = pool.clone();
            by_capacity(*before);
            diagnoses.emplace_back();
            diagnoses.back().trouble = chosen[next];
            fill(*before, asked(chosen[next]), outside(i), 0, budget, &diagnoses.back());
            pool.take_driver_calls();  // drop calls before the request
        }
        return next < chosen.size();
    };
    hooks.after_request = [&](std::size_t i, const AllocateResult&, Pool& pool) {
        if (next == chosen.size() || chosen[next].step != i) {
            return;
        }
        if (chosen[next].outcome == Outcome::kRetryOk) {
            diagnoses.back().released_bytes = given_to_driver(pool);
        } else {
            const std::unique_ptr<Pool> after = pool.clone();
            by_capacity(*after);
            std::uint64_t outside_bytes = outside(i);
            if (setup.capacity_at) {
                outside_bytes =
                    set_capacity(*after, setup.capacity_at(chosen[next].event), outside_bytes);
            }
            diagnoses.emplace_back();
            diagnoses.back().trouble = chosen[next];
            const std::uint64_t pending = pending_bytes(*after);
            fill(*after,
                 asked(chosen[next]),
                 outside_bytes,
                 pending_before > pending ? pending_before - pending : 0,
                 budget,
                 &diagnoses.back());
        }
        ++next;
    };
    replay(script, *setup.pool, setup.recorded, hooks);
    for (Diagnosis& diagnosis : diagnoses) {
        name_streams(script.streams, &diagnosis.verdict);
        diagnosis.heap.unmapped_bytes = unmapped_before(script, diagnosis.trouble.event);
        diagnosis.verdict.requester = script.source == ScriptSource::kBlocks ? "pool" : "program";
    }
    return diagnoses;
}

std::vector<LibraryRequest> refused_libraries(const Timeline& timeline,
                                              DeviceId device,
                                              std::size_t limit) {
    std::vector<LibraryRequest> requests;
    RequestOutcomes outcomes([device](DeviceId id) { return id == device; });
    for (EventIndex i = 0; i < timeline.events.size() && requests.size() < limit; ++i) {
        if (timeline.events.kind(i) != EventKind::kAllocRefused) {
            continue;
        }
        const Event& event = timeline.events[i];
        if (outcomes.visit(i, event) == RequestOutcome::kLibraryRefused && event.device == device) {
            LibraryRequest request;
            request.event = i;
            request.asked_bytes = event.size_bytes;
            requests.push_back(request);
        }
    }
    if (requests.empty()) {
        return requests;
    }
    RecordedState state(timeline);
    for (LibraryRequest& request : requests) {
        state.advance_to(request.event);
        // An earlier report may show more free memory, but the driver just refused this size.
        const std::uint64_t most = request.asked_bytes == 0 ? 0 : request.asked_bytes - 1;
        request.device_free_bytes = std::min(state.device_free_bytes(device), most);
        request.pool_bytes = state.totals(device).own_pool();
        request.past_pool_bytes = state.totals(device).past_pool;
    }
    return requests;
}

std::vector<Diagnosis> diagnose_libraries(const ReplayScript& script,
                                          const std::vector<LibraryRequest>& requests,
                                          ReplaySetup setup,
                                          std::uint64_t others_bytes,
                                          CoverBudget* budget) {
    std::vector<Diagnosis> diagnoses;
    const auto diagnose_one = [&](const LibraryRequest& request, std::size_t step, Pool& pool) {
        const std::unique_ptr<Pool> state = pool.clone();
        by_capacity(*state);
        Diagnosis diagnosis;
        diagnosis.trouble = {.step = step,
                             .event = request.event,
                             .outcome = Outcome::kOutOfMemory,
                             .requested_bytes = request.asked_bytes};
        diagnosis.verdict = judge_library(*state,
                                          request.asked_bytes,
                                          request.device_free_bytes,
                                          others_bytes + request.past_pool_bytes);
        diagnosis.heap = state->snapshot();
        diagnosis.heap.device_free_bytes = request.device_free_bytes;
        diagnosis.heap.unmapped_bytes = unmapped_before(script, request.event);
        diagnosis.wanted = {
            .place = {}, .window_bytes = kNoWindow, .driver_bytes = request.asked_bytes};
        diagnosis.cheapest =
            find_cheapest_set(diagnosis.heap, kNoWindow, request.asked_bytes, {}, budget);
        diagnosis.held_open = held_open_bytes(diagnosis.heap);
        diagnoses.push_back(std::move(diagnosis));
    };
    std::size_t next = 0;
    ReplayHooks hooks;
    hooks.before_step = [&](std::size_t i, Pool& pool) {
        while (next < requests.size() && requests[next].event < script.steps[i].event) {
            diagnose_one(requests[next++], i, pool);
        }
        return next < requests.size();
    };
    if (!requests.empty()) {
        replay(script, *setup.pool, setup.recorded, hooks);
    }
    for (; next < requests.size(); ++next) {
        diagnose_one(requests[next], script.steps.size(), *setup.pool);
    }
    return diagnoses;
}

}  // namespace fragtrace::analyzer
