#include "analyzer/analysis/culprit.h"

#include "analyzer/analysis/absent_lines.h"
#include "analyzer/analysis/verdict/verdict_text.h"

#include <algorithm>
#include <map>
#include <utility>

namespace fragtrace::analyzer {
namespace {

Culprit who_blocks(std::optional<CulpritGroup> most) {
    return most ? Culprit(BlocksFreeMemory{std::move(*most)}) : Culprit();
}

// The place with most memory among those whose absence makes room; else the place with most memory.
// Places are by line and kind.
const HoldingLine& holds_most(const Analysis& analysis,
                              const Diagnosis& oom,
                              const std::vector<HoldingLine>& places) {
    LineNumbers lines;
    for (const HoldingLine& place : places) {
        lines.try_emplace(place.held.label, static_cast<std::uint32_t>(lines.size()));
    }
    const std::vector<Room> rooms = rooms_without_lines(analysis, oom, lines);
    const auto found = std::find_if(places.begin(), places.end(), [&](const HoldingLine& place) {
        return rooms[lines.at(place.held.label)].serves(oom.wanted);
    });
    return found == places.end() ? places.front() : *found;
}

std::optional<HoldsMost> who_holds(const Analysis& analysis,
                                   const Diagnosis& oom,
                                   const Holders* holders) {
    if (holders == nullptr || holders->places.empty()) {
        return std::nullopt;
    }
    return HoldsMost{.place = holds_most(analysis, oom, holders->places),
                     .in_use_bytes = holders->allocated_bytes};
}

// An earlier step of the same shape did fit, so the line that holds more than at the same point of
// that step is why this one does not.
std::optional<HoldsMost> who_grew(const DeviceAnalysis& device, const Holders* holders) {
    const IterationDifference* since =
        holders == nullptr ? nullptr : difference_at(device.held, holders->event);
    if (since == nullptr || since->against != device.forecast->basis) {
        return std::nullopt;
    }
    const HoldingLine* most = nullptr;
    for (const HoldingLine& line : since->places) {
        if (most == nullptr || line.held.bytes > most->held.bytes) {
            most = &line;
        }
    }
    if (most == nullptr || most->held.bytes <= 0) {
        return std::nullopt;
    }
    const HoldingLine* const now = same_line(holders->places, *most);
    if (now == nullptr) {
        return std::nullopt;
    }
    return HoldsMost{.place = *now,
                     .in_use_bytes = holders->allocated_bytes,
                     .grown_bytes = static_cast<std::uint64_t>(most->held.bytes),
                     .since = since->against};
}

// The context does not count, since the program needs it. If its size is not known, it is part of
// the memory with unknown owner.
std::optional<HeldOutside> who_is_outside(const Holders* holders) {
    if (holders == nullptr) {
        return std::nullopt;
    }
    using By = HeldOutside::By;
    const OutsideMemory& outside = holders->outside;
    const std::pair<By, std::uint64_t> all[] = {
        {By::kProcesses, outside.processes},
        {By::kLibraries, outside.libraries},
        {By::kPastPool, outside.past_pool},
        {By::kOther, outside.other},
        {By::kNotKnown, outside.context == 0 ? 0 : outside.not_known}};
    const auto* const most = std::max_element(
        std::begin(all), std::end(all), [](auto& a, auto& b) { return a.second < b.second; });
    if (most->second == 0) {
        return std::nullopt;
    }
    return HeldOutside{.by = most->first, .bytes = most->second, .process = {}, .inside = {}};
}

// How long before the failure the processes were listed; 0 = during it. Failures that follow each
// other closely share one list. `sequence`: the refusal that caused it, as the recorder numbers it.
std::uint64_t listed_before_ns(const Analysis& analysis,
                               const DeviceAnalysis& device,
                               std::uint64_t sequence,
                               EventIndex failed) {
    const auto& events = analysis.timeline.events;
    const bool of_another =
        std::any_of(device.diagnoses.begin(), device.diagnoses.end(), [&](const Diagnosis& other) {
            return other.trouble.event + std::uint64_t{1} >= sequence &&
                   other.trouble.event < failed;
        });
    if (!of_another || sequence == 0) {
        return 0;
    }
    const std::uint64_t listed_ns = events[static_cast<EventIndex>(sequence - 1)].time_ns;
    return events[failed].time_ns - std::min(events[failed].time_ns, listed_ns);
}

// The line whose requests caused most segments. If the cache cannot be reused, this is the line
// whose sizes change.
Culprit who_made_it_grow(const Analysis& analysis, const DeviceAnalysis& device) {
    // Per origin: bytes, segments.
    std::map<OriginId, std::pair<std::uint64_t, std::uint64_t>> origins;
    std::uint64_t all = 0;
    for (const ObtainedSegment& segment : device.script.obtained) {
        if (segment.request < analysis.timeline.events.size()) {
            auto& [bytes, segments] = origins[analysis.timeline.events[segment.request].origin];
            bytes += segment.size_bytes;
            ++segments;
            all += segment.size_bytes;
        }
    }
    std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> lines;
    for (const auto& [origin, sum] : origins) {
        auto& [bytes, segments] = lines[analysis.symbols->describe(origin)];
        bytes += sum.first;
        segments += sum.second;
    }
    const auto most =
        std::max_element(lines.begin(), lines.end(), [](const auto& a, const auto& b) {
            return a.second.first < b.second.first;
        });
    if (most == lines.end()) {
        return {};
    }
    return MadePoolGrow{.line = most->first,
                        .bytes = most->second.first,
                        .segments = most->second.second,
                        .all_bytes = all,
                        .some_freed = all > device.recorded.peak_reserved};
}

// Finds the stream or pool with free blocks that the request could not use, and the line that keeps
// them there.
Culprit who_has_it_free(const Analysis& analysis, const Diagnosis& oom) {
    const FreePlace* place = serving_place(oom.verdict);
    if (place == nullptr) {
        return {};
    }
    FreeElsewhere found = {
        .place = *place, .of_stream = oom.verdict.id == "stream_bound", .keeper = {}};
    if (found.of_stream) {
        std::vector<CulpritGroup> groups =
            group_culprits(analysis, oom, false, CulpritKey::kLine, place->stream);
        if (!groups.empty()) {
            found.keeper = std::move(groups.front());
        }
    }
    return found;
}

Culprit who_grows(const Growth& growth) {
    const GrowingLine* found = nullptr;
    for (const GrowingLine& place : growth.places) {
        if (!place.freed_before_failure && (found == nullptr || (found->slows && !place.slows))) {
            found = &place;
        }
    }
    return found == nullptr ? Culprit()
                            : GrowsEachIteration{found->place, growth.first, growth.last};
}

bool is_known(const Culprit& culprit) {
    return !std::holds_alternative<std::monostate>(culprit);
}

// Growth filled the card if a tenth more growth would have taken all free memory. Where that free
// memory lies does not matter then.
constexpr std::uint64_t kMoreOfThat = 10;

}  // namespace

bool failed_by_growth(const Analysis& analysis,
                      const DeviceAnalysis& device,
                      const Diagnosis& oom) {
    LineNumbers growing;
    std::int64_t grown = 0;
    for (const GrowingLine& place : device.held.growth.places) {
        if (!place.freed_before_failure) {
            growing.emplace(place.place.held.label, 0);
            grown += place.place.held.bytes;
        }
    }
    const auto bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(grown, 0));
    const Verdict& verdict = oom.verdict;
    const std::uint64_t card =
        device.capacity_known ? device.capacity_bytes : verdict.reserved_bytes;
    const std::uint64_t free = verdict.free_bytes + verdict.device_free_bytes;
    const std::uint64_t asked = oom.wanted.driver_bytes;
    return !growing.empty() && device.held.growth.repeats && bytes >= card / kForecastTimes &&
           free + bytes >= asked && free <= asked + bytes / kMoreOfThat &&
           rooms_without_lines(analysis, oom, growing).front().serves(oom.wanted);
}

bool step_needs_more(const DeviceAnalysis& device, const Diagnosis& oom) {
    const std::optional<Forecast>& forecast = device.forecast;
    if (!forecast || !forecast->known() || forecast->in_use_fits ||
        forecast->failed != oom.trouble.event) {
        return false;
    }
    if (oom.verdict.id != "outside_pool") {
        return true;
    }
    const std::optional<HeldOutside> outside =
        who_is_outside(holders_at(device, oom.trouble.event));
    return !outside || device.capacity_bytes + outside->bytes < forecast->peak_allocated_bytes;
}

Culprit culprit_of_failure(const Analysis& analysis,
                           const DeviceAnalysis& device,
                           const Diagnosis& oom) {
    const Verdict& verdict = oom.verdict;
    if (verdict.requester == "library" && verdict.id == "releasable") {
        return CachedByPool{verdict.steps.back().frees_bytes};
    }
    if (failed_by_growth(analysis, device, oom)) {
        return who_grows(device.held.growth);
    }
    if (verdict.despite_free_memory() && !step_needs_more(device, oom)) {
        Culprit elsewhere = who_has_it_free(analysis, oom);
        return is_known(elsewhere) ? elsewhere : who_blocks(most_blocking(analysis, oom));
    }
    const Holders* holders = holders_at(device, oom.trouble.event);
    std::optional<HoldsMost> inside =
        step_needs_more(device, oom) ? who_grew(device, holders) : std::nullopt;
    if (!inside) {
        inside = who_holds(analysis, oom, holders);
    }
    if (inside && verdict.requested_bytes > inside->in_use_bytes) {
        inside->larger_request_bytes = verdict.requested_bytes;
    }
    if (verdict.id == "outside_pool") {
        if (std::optional<HeldOutside> outside = who_is_outside(holders)) {
            const OtherProcesses* others = report_at(device.other_processes, oom.trouble.event);
            if (outside->by == HeldOutside::By::kProcesses && others != nullptr &&
                others->largest_pid != 0) {
                outside->process = {.pid = others->largest_pid,
                                    .bytes = std::min(others->largest_bytes, outside->bytes),
                                    .program = others->largest_program};
                outside->listed_before_ns =
                    listed_before_ns(analysis, device, others->sequence, oom.trouble.event);
            }
            outside->inside = std::move(inside);
            return std::move(*outside);
        }
    }
    return inside ? Culprit(std::move(*inside)) : Culprit();
}

// Considers only models that were trained. Two models used for inference may be kept on purpose.
const Survivors* kept_model(const DeviceAnalysis& device) {
    for (const Survivors& survivors : device.held.survivors) {
        const bool trained = std::any_of(
            survivors.places.begin(), survivors.places.end(), [](const HoldingLine& place) {
                return place.category == Category::kOptimizerState ||
                       place.category == Category::kGradients;
            });
        if (survivors.of == Survivors::Of::kModel && trained &&
            survivors.bytes >= device.recorded.peak_reserved / kSmallPart) {
            return &survivors;
        }
    }
    return nullptr;
}

const Holders* holders_at(const DeviceAnalysis& device, EventIndex event) {
    for (const Holders& holders : device.held.holders) {
        if (holders.event == event) {
            return &holders;
        }
    }
    return nullptr;
}

// The pool released cached memory, no line's absence would make room, and no line blocks as much as
// was released. Then the cached sizes are no longer requested, and the line whose sizes change is
// the culprit.
Culprit culprit_of_retry(const Analysis& analysis,
                         const DeviceAnalysis& device,
                         const Diagnosis& retry) {
    const Verdict& verdict = retry.verdict;
    auto most = most_blocking(analysis, retry);
    if (most && most->too_little && verdict.id == "releasable" && !verdict.steps.empty() &&
        most->held_open_bytes < verdict.steps.back().frees_bytes) {
        if (Culprit culprit = who_made_it_grow(analysis, device); is_known(culprit)) {
            return culprit;
        }
    }
    return who_blocks(std::move(most));
}

Culprit culprit_without_failure(const Analysis& analysis, const DeviceAnalysis& device) {
    if (device.growth_forecast && device.growth_forecast->matters) {
        return who_grows(device.held.growth);
    }
    if (const Survivors* kept = kept_model(device)) {
        return EarlierModel{kept->places.front()};
    }
    if (!device.diagnoses.empty()) {
        if (Culprit culprit = culprit_of_retry(analysis, device, device.diagnoses.front());
            is_known(culprit)) {
            return culprit;
        }
    }
    const WasteSplit& waste = device.recorded.waste_at_peak;
    const std::uint64_t unused =
        device.recorded.peak_reserved -
        std::min(device.recorded.peak_reserved, device.recorded.peak_allocated);
    // Of one moment, nothing shows whether its free memory was missing.
    if (!device.state_only && unused >= device.recorded.peak_reserved / kSmallPart) {
        if (waste.releasable > waste.inactive_split) {
            return who_made_it_grow(analysis, device);
        }
        if (device.peak && waste.inactive_split != 0) {
            return who_blocks(most_blocking(analysis, *device.peak));
        }
    }
    const auto& held = device.held.holders;
    if (held.empty() || held.front().places.empty()) {
        return {};
    }
    return HoldsMost{.place = held.front().places.front(),
                     .in_use_bytes = held.front().allocated_bytes,
                     .pending_bytes = device.state_only ? waste.pending : 0};
}

}  // namespace fragtrace::analyzer
