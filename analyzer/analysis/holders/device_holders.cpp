#include "analyzer/analysis/holders/device_holders.h"

#include "analyzer/model/device_layer.h"

#include <algorithm>

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
    outside.processes = card.processes_bytes;
    for (const Beside& one : allocations) {
        if (one.event < event && timeline.partner[one.event] > event) {
            outside.*one.whose += one.size_bytes;
        }
    }
    const std::uint64_t known =
        outside.libraries + outside.other + outside.context + outside.processes;
    outside.not_known = card.others_bytes - std::min(card.others_bytes, known);
    return outside;
}

}  // namespace

DeviceHolders find_holders(const Timeline& timeline,
                           DeviceId device,
                           bool blocks,
                           std::vector<HeapInstant> instants,
                           const std::vector<EventIndex>& failed,
                           const CardMemory& card,
                           const PeakHistory& peaks) {
    Symbolizer symbols(timeline);
    StackMarks marks(timeline, &symbols);
    const RunHistory history = run_history(timeline, device, blocks, &marks);
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
            holders_of(timeline, *instant.heap, instant.event, history, &marks, &symbols));
        result.holders.back().at_peak = at_peak;
        if (blocks) {
            result.holders.back().outside = outside_at(timeline, beside, instant.event, card);
        }
        result.differences.push_back(
            instant.kind == HeapInstant::Kind::kOutOfMemory
                ? difference_to_last_good(timeline, instant.event, failed, history, &symbols)
                : IterationDifference{});
    }
    result.growth = growth_of(history, failed.empty() ? kNoEvent : failed.front(), &symbols);
    result.parts = part_growth(timeline, history, result.growth.first);
    result.survivors = survivors_of(timeline, failed, history, &symbols);
    result.peaks = iteration_peaks(peaks, history.iterations);
    return result;
}

}  // namespace fragtrace::analyzer
