// Who it is: the words of culprit.h.
#include "analyzer/report/culprit.h"

#include "analyzer/report/absent_lines.h"
#include "analyzer/report/text.h"
#include "analyzer/report/text_parts.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace fragtrace::analyzer {
namespace {

std::string pins_text(const std::optional<CulpritGroup>& most) {
    return most ? fmt::format("{}: {} in {} {} {} of holes open{}",
                              most->label,
                              format_bytes(most->live_bytes),
                              format_counted(most->blocks, "block", "blocks"),
                              most->blocks == 1 ? "keeps" : "keep",
                              format_bytes(most->held_open_bytes),
                              most->too_little ? "; no single line's absence makes room" : "")
                : "";
}

std::string who_pins(const Analysis& analysis, const Diagnosis& diagnosis) {
    return pins_text(most_pinning(analysis, diagnosis));
}

// The place whose absence makes room; of those that do the one that holds most. Places are by line
// and kind.
const HoldingPlace& holds_most(const Analysis& analysis,
                               const Diagnosis& oom,
                               const std::vector<HoldingPlace>& places) {
    LineNumbers lines;
    for (const HoldingPlace& place : places) {
        lines.try_emplace(place.label, static_cast<std::uint32_t>(lines.size()));
    }
    const std::vector<Room> rooms = rooms_without_lines(analysis, oom, lines);
    const auto found = std::find_if(places.begin(), places.end(), [&](const HoldingPlace& place) {
        return rooms[lines.at(place.label)].serves(oom.wanted);
    });
    return found == places.end() ? places.front() : *found;
}

std::string place_text(const Holders& holders, const HoldingPlace& most) {
    const std::string kind = most.category == Category::kOther
                                 ? std::string()
                                 : fmt::format(" ({})", category_name(most.category));
    return fmt::format("{} holds {} of the {} in use{}",
                       most.label,
                       format_bytes(static_cast<std::uint64_t>(most.bytes)),
                       format_bytes(holders.allocated_bytes),
                       kind);
}

std::string who_holds(const Analysis& analysis, const Diagnosis& oom, const Holders* holders) {
    return holders == nullptr || holders->places.empty()
               ? ""
               : place_text(*holders, holds_most(analysis, oom, holders->places));
}

// Not the context: the program cannot do without it. Where its size is not known, it is part of
// what nobody is known to hold.
std::string who_is_outside(const Holders* holders) {
    if (holders == nullptr) {
        return "";
    }
    const OutsideMemory& outside = holders->outside;
    const std::pair<const char*, std::uint64_t> all[] = {
        {"other processes hold", outside.processes},
        {"libraries hold", outside.libraries},
        {"requests while caching was off hold", outside.past_pool},
        {"other allocations hold", outside.other},
        {"not known who holds", outside.context == 0 ? 0 : outside.not_known}};
    const auto* const most = std::max_element(
        std::begin(all), std::end(all), [](auto& a, auto& b) { return a.second < b.second; });
    return most->second == 0
               ? ""
               : fmt::format("{} {} of the card", most->first, format_bytes(most->second));
}

// The line whose requests made the pool obtain most. Where the cache is not of use any more, it is
// the line whose sizes change.
std::string who_made_it_grow(const Analysis& analysis, const DeviceAnalysis& device) {
    std::map<OriginId, std::pair<std::uint64_t, std::uint64_t>> origins;  // bytes, segments
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
        return "";
    }
    return fmt::format("{} caused {} of the {} of cudaMallocs or maps, in {}{}",
                       most->first,
                       format_bytes(most->second.first),
                       format_bytes(all),
                       format_counted(most->second.second, "call", "calls"),
                       all > device.recorded.peak_reserved ? " (some was freed in between)" : "");
}

// Who owns the free blocks that the request could not take, and who keeps them where they are.
std::string who_has_it_free(const Analysis& analysis, const Diagnosis& oom) {
    const FreePlace* place = serving_place(oom.verdict);
    if (place == nullptr) {
        return "";
    }
    const bool by_stream = oom.verdict.id == "stream_bound";
    std::string text = fmt::format("{} free {} {}",
                                   format_bytes(place->free_bytes),
                                   by_stream ? "on" : "in",
                                   by_stream ? stream_text(*place) : pool_text(*place));
    const std::vector<CulpritGroup> groups =
        by_stream ? group_culprits(analysis, oom, false, CulpritKey::kLine, place->stream)
                  : std::vector<CulpritGroup>{};
    if (!groups.empty()) {
        const CulpritGroup& most = groups.front();
        text += fmt::format("; {} keeps {} of it from the driver, with {} in {}",
                            most.label,
                            format_bytes(most.held_open_bytes),
                            format_bytes(most.live_bytes),
                            format_counted(most.blocks, "block", "blocks"));
    }
    return text;
}

std::string who_grows(const Growth& growth) {
    const auto steady = std::find_if(growth.places.begin(),
                                     growth.places.end(),
                                     [](const GrowingPlace& place) { return !place.slows; });
    const HoldingPlace& most =
        (steady == growth.places.end() ? growth.places.begin() : steady)->place;
    const auto bytes = static_cast<std::uint64_t>(most.bytes);
    return fmt::format("{}: {} more with each iteration, never less; {} from iteration {} to {}",
                       most.label,
                       format_bytes(bytes / std::max<std::size_t>(growth.last - growth.first, 1)),
                       format_bytes(bytes),
                       growth.first,
                       growth.last);
}

// Where one tenth more of the same growth would have taken all that is free, it is growth that
// filled the card, however the free memory lies.
constexpr std::uint64_t kMoreOfThat = 10;

}  // namespace

bool failed_by_growth(const Analysis& analysis,
                      const DeviceAnalysis& device,
                      const Diagnosis& oom) {
    LineNumbers growing;
    std::int64_t grown = 0;
    for (const GrowingPlace& place : device.held.growth.places) {
        growing.emplace(place.place.label, 0);
        grown += place.place.bytes;
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

std::string growth_forecast_text(const GrowthForecast& forecast) {
    return forecast.at_iteration == 0
               ? ""
               : fmt::format(
                     "out of memory at about iteration {} at this rate (estimate: {} more "
                     "with each, {} left at iteration {})",
                     format_count(forecast.at_iteration),
                     format_bytes(forecast.bytes_per_iteration),
                     format_bytes(forecast.left_bytes),
                     format_count(forecast.recorded_iterations));
}

std::string culprit_of_failure(const Analysis& analysis,
                               const DeviceAnalysis& device,
                               const Diagnosis& oom) {
    const Verdict& verdict = oom.verdict;
    if (verdict.requester == "library" && verdict.id == "releasable") {
        return fmt::format("the pool's cache: {} in wholly free segments",
                           format_bytes(verdict.steps.back().frees_bytes));
    }
    if (failed_by_growth(analysis, device, oom)) {
        return who_grows(device.held.growth);
    }
    if (verdict.despite_free_memory()) {
        const std::string who = who_has_it_free(analysis, oom);
        return who.empty() ? who_pins(analysis, oom) : who;
    }
    const Holders* holders = holders_at(device, oom.trouble.event);
    const std::string outside = verdict.id == "outside_pool" ? who_is_outside(holders) : "";
    const std::string inside = who_holds(analysis, oom, holders);
    return outside.empty() || inside.empty() ? outside + inside : outside + "; " + inside;
}

// What an earlier model still holds, where that matters: one that was trained, as two models that
// are only asked may well take turns.
const Survivors* kept_model(const DeviceAnalysis& device) {
    for (const Survivors& survivors : device.held.survivors) {
        const bool trained = std::any_of(
            survivors.places.begin(), survivors.places.end(), [](const HoldingPlace& place) {
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

// Where what was released would have been free without any live block's absence, and no line's
// absence makes room, the cache is of sizes that nobody asks for any more.
std::string culprit_of_retry(const Analysis& analysis,
                             const DeviceAnalysis& device,
                             const Diagnosis& retry) {
    const Verdict& verdict = retry.verdict;
    const auto most = most_pinning(analysis, retry);
    if (most && most->too_little && verdict.id == "releasable" && !verdict.steps.empty() &&
        most->held_open_bytes < verdict.steps.back().frees_bytes) {
        if (std::string who = who_made_it_grow(analysis, device); !who.empty()) {
            return who;
        }
    }
    return pins_text(most);
}

std::string culprit_without_failure(const Analysis& analysis, const DeviceAnalysis& device) {
    if (device.growth_forecast && device.growth_forecast->matters) {
        return who_grows(device.held.growth);
    }
    if (const Survivors* kept = kept_model(device)) {
        const HoldingPlace& most = kept->places.front();
        return fmt::format("{}: {} ({}) of an earlier model that another one took the place of",
                           most.label,
                           format_bytes(static_cast<std::uint64_t>(most.bytes)),
                           category_name(most.category));
    }
    if (!device.diagnoses.empty()) {
        if (const std::string pins = culprit_of_retry(analysis, device, device.diagnoses.front());
            !pins.empty()) {
            return pins;
        }
    }
    const WasteSplit& waste = device.recorded.waste_at_peak;
    const std::uint64_t unused =
        device.recorded.peak_reserved -
        std::min(device.recorded.peak_reserved, device.recorded.peak_allocated);
    if (unused >= device.recorded.peak_reserved / kSmallPart) {
        if (waste.releasable > waste.inactive_split) {
            return who_made_it_grow(analysis, device);
        }
        if (device.peak && waste.inactive_split != 0) {
            return who_pins(analysis, *device.peak);
        }
    }
    const auto& held = device.held.holders;
    return held.empty() || held.front().places.empty()
               ? ""
               : place_text(held.front(), held.front().places.front());
}

}  // namespace fragtrace::analyzer
