// Who it is: the words of culprit.h.
#include "analyzer/report/culprit.h"

#include "analyzer/report/text.h"
#include "analyzer/report/text_parts.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace fragtrace::analyzer {
namespace {

std::string who_pins(const Analysis& analysis, const Diagnosis& diagnosis) {
    const auto most = most_pinning(analysis, diagnosis);
    return most ? fmt::format("{}: {} in {} {} {} of holes open",
                              most->label,
                              format_bytes(most->live_bytes),
                              format_counted(most->blocks, "block", "blocks"),
                              most->blocks == 1 ? "keeps" : "keep",
                              format_bytes(most->held_open_bytes))
                : "";
}

std::string who_holds(const Holders* found) {
    if (found == nullptr || found->places.empty()) {
        return "";
    }
    const Holders& holders = *found;
    const HoldingPlace& most = holders.places.front();
    const std::string kind = most.category == Category::kOther
                                 ? std::string()
                                 : fmt::format(" ({})", category_name(most.category));
    return fmt::format("{} holds {} of the {} in use{}",
                       most.label,
                       format_bytes(static_cast<std::uint64_t>(most.bytes)),
                       format_bytes(holders.allocated_bytes),
                       kind);
}

std::string who_is_outside(const Holders* holders) {
    if (holders == nullptr) {
        return "";
    }
    const OutsideMemory& outside = holders->outside;
    const std::pair<const char*, std::uint64_t> all[] = {
        {"other processes hold", outside.processes},
        {"libraries hold", outside.libraries},
        {"the context holds", outside.context},
        {"other allocations hold", outside.other},
        {"not known who holds", outside.not_known}};
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
    return fmt::format(
        "{} made the pool obtain {} of the {} that it obtained over the run{}, in {}",
        most->first,
        format_bytes(most->second.first),
        format_bytes(all),
        all > device.recorded.peak_reserved ? " (some of it again)" : "",
        format_counted(most->second.second, "segment", "segments"));
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

}  // namespace

std::string culprit_of_failure(const Analysis& analysis,
                               const DeviceAnalysis& device,
                               const Diagnosis& oom) {
    const Verdict& verdict = oom.verdict;
    if (verdict.requester == "library" && verdict.id == "releasable") {
        return fmt::format("the pool's cache: {} in wholly free segments",
                           format_bytes(verdict.steps.back().frees_bytes));
    }
    if (verdict.despite_free_memory()) {
        const std::string who = who_has_it_free(analysis, oom);
        return who.empty() ? who_pins(analysis, oom) : who;
    }
    const Holders* holders = holders_at(device, oom.trouble.event);
    const std::string outside = verdict.id == "outside_pool" ? who_is_outside(holders) : "";
    const std::string inside = who_holds(holders);
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

std::string culprit_of_retry(const Analysis& analysis, const Diagnosis& retry) {
    return who_pins(analysis, retry);
}

std::string culprit_without_failure(const Analysis& analysis, const DeviceAnalysis& device) {
    if (!device.held.growth.places.empty()) {
        const Growth& growth = device.held.growth;
        const HoldingPlace& most = growth.places.front().place;
        return fmt::format("{}: {} more with each iteration, never less",
                           most.label,
                           format_bytes(static_cast<std::uint64_t>(most.bytes) /
                                        std::max<std::size_t>(growth.last - growth.first, 1)));
    }
    if (const Survivors* kept = kept_model(device)) {
        const HoldingPlace& most = kept->places.front();
        return fmt::format("{}: {} ({}) of an earlier model that another one took the place of",
                           most.label,
                           format_bytes(static_cast<std::uint64_t>(most.bytes)),
                           category_name(most.category));
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
    return who_holds(device.held.holders.empty() ? nullptr : &device.held.holders.front());
}

}  // namespace fragtrace::analyzer
