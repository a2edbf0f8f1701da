#include "analyzer/analysis/holders/device_holders.h"

#include "analyzer/model/device_layer.h"
#include "analyzer/model/recorded_state.h"
#include "analyzer/trace/user_frame.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace fragtrace::analyzer {
namespace {

// A device allocation outside the pool.
struct Beside {
    EventIndex event = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t OutsideMemory::*whose = nullptr;
};

std::vector<Beside> beside_the_pool(const Timeline& timeline, DeviceId device, StackMarks* marks) {
    std::vector<Beside> result;
    for (EventIndex i = 0; i < timeline.events.size(); ++i) {
        if (!is_device_allocation(timeline.events.kind(i)) || timeline.events.device(i) != device) {
            continue;
        }
        const Event asked = timeline.events[i];
        if ((asked.flags & kFlagFromAllocator) == 0 && device_bytes(asked) != kUnknown64) {
            const bool past_pool =
                asked.kind == EventKind::kDeviceAlloc && (asked.flags & kFlagPastPool) != 0;
            const bool library = (marks->of(asked.origin) & kMarkLibrary) != 0;
            result.push_back({i,
                              device_bytes(asked),
                              past_pool ? &OutsideMemory::past_pool
                              : library ? &OutsideMemory::libraries
                                        : &OutsideMemory::other});
        }
    }
    return result;
}

OutsideMemory outside_at(const Timeline& timeline,
                         const std::vector<Beside>& allocations,
                         EventIndex event,
                         const CardMemory& card) {
    OutsideMemory outside;
    outside.context = card.context_bytes;
    for (const Beside& one : allocations) {
        if (one.event < event && timeline.partner[one.event] > event) {
            outside.*one.whose += one.size_bytes;
        }
    }
    const std::uint64_t own = outside.libraries + outside.other + outside.context;
    const std::uint64_t left = card.others_bytes - std::min(card.others_bytes, own);
    // The list of processes may be older, and they may have freed memory since.
    outside.processes =
        card.others_bytes == 0 ? card.processes_bytes : std::min(card.processes_bytes, left);
    outside.not_known = left - std::min(left, outside.processes);
    return outside;
}

void name_stacks(const Timeline& timeline,
                 const RunHistory& history,
                 const RuleFinder& rules,
                 DeviceHolders* result) {
    std::map<std::string_view, std::uint32_t> known;
    const std::vector<LabelledStack>& labelled = history.requests.labelled_stacks;
    for (std::size_t i = 0; i < labelled.size(); ++i) {
        const StackHistory& stack = history.stacks[labelled[i].stack];
        const OriginId origin = labelled[i].origin;
        if (stack.requests == 0 || !has_stack(timeline.origins[origin])) {
            continue;
        }
        const Category kind = category_of(stack);
        std::string_view name;
        if (!history.rules.empty()) {
            name = rules.name_of(history.rules[i]);
        }
        if (name.empty() && kind != Category::kOther) {
            name = category_name(kind);
        }
        if (!name.empty()) {
            const auto [number, is_new] =
                known.try_emplace(name, static_cast<std::uint32_t>(known.size()));
            if (is_new) {
                result->category_names.emplace_back(name);
            }
            result->stack_categories.push_back({origin, number->second});
        }
    }
}

// Reads the events once, but only if an out-of-memory has left memory.
void add_cached(const Timeline& timeline, DeviceId device, std::vector<Survivors>* survivors) {
    if (survivors->empty() || survivors->front().of != Survivors::Of::kOutOfMemory) {
        return;
    }
    RecordedState state(timeline);
    state.advance_to(survivors->front().until);
    survivors->front().cached_bytes = state.releasable_bytes(device);
}

}  // namespace

DeviceHolders find_holders(const Timeline& timeline,
                           DeviceId device,
                           bool blocks,
                           std::vector<HeapInstant> instants,
                           const std::vector<EventIndex>& failed,
                           const PeakHistory& peaks,
                           const CategoryRules* rules) {
    Symbolizer symbols(timeline);
    StackMarks marks(timeline, &symbols);
    RuleFinder finder(timeline, &symbols, rules);
    RunHistory history = run_history(timeline, device, blocks, &marks);
    if (rules != nullptr) {
        add_user_categories(&finder, &history);
    }
    DeviceHolders result;
    result.iterations = history.iterations;
    result.stacks_left_out = history.stacks_left_out;
    const std::vector<Beside> beside =
        blocks ? beside_the_pool(timeline, device, &marks) : std::vector<Beside>();
    const bool ran_out =
        std::any_of(instants.begin(), instants.end(), [](const HeapInstant& instant) {
            return instant.kind == HeapInstant::Kind::kOutOfMemory;
        });
    std::stable_sort(instants.begin(),
                     instants.end(),
                     [](const HeapInstant& a, const HeapInstant& b) { return a.kind < b.kind; });
    for (const HeapInstant& instant : instants) {
        if (instant.kind == HeapInstant::Kind::kPeakReserved) {
            result.at_peak = held_lines(timeline, *instant.heap, &symbols);
            continue;
        }
        const bool at_peak = instant.kind == HeapInstant::Kind::kMostAllocated;
        if (at_peak && ran_out) {
            continue;
        }
        result.holders.push_back(
            holders_of(timeline, *instant.heap, instant.event, history, &marks, &finder, &symbols));
        result.holders.back().at_peak = at_peak;
        if (blocks) {
            result.holders.back().outside =
                outside_at(timeline, beside, instant.event, instant.card);
        }
        result.differences.push_back(
            instant.kind == HeapInstant::Kind::kOutOfMemory
                ? difference_to_last_good(
                      timeline, instant.event, failed, history, finder, &symbols)
                : IterationDifference{});
    }
    result.growth =
        growth_of(timeline, history, failed.empty() ? kNoEvent : failed.front(), finder, &symbols);
    result.parts = part_growth(timeline, history, result.growth.first);
    result.survivors = survivors_of(timeline, failed, history, finder, &symbols);
    if (blocks) {
        add_cached(timeline, device, &result.survivors);
    }
    result.peaks = iteration_peaks(peaks, history.iterations);
    name_stacks(timeline, history, finder, &result);
    // Last, because holders_of() tries the rules on blocks that a checkpoint lists.
    result.rule_uses = finder.uses();
    for (std::size_t i = 0; i < history.rule_uses.size(); ++i) {
        result.rule_uses[i].requests = history.rule_uses[i].requests;
    }
    result.rule_frames_left_out = finder.frames_left_out();
    return result;
}

const IterationDifference* difference_at(const DeviceHolders& held, EventIndex event) {
    for (const IterationDifference& difference : held.differences) {
        if (difference.iteration != 0 && difference.event == event) {
            return &difference;
        }
    }
    return nullptr;
}

}  // namespace fragtrace::analyzer
