#include "analyzer/report/conclusion.h"

#include "analyzer/report/text.h"
#include "analyzer/report/text_parts.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace fragtrace::analyzer {
namespace {

// A share of the reserved bytes below which nobody needs to be told of waste.
constexpr std::uint64_t kSmallPart = 50;

// ---- who ----------------------------------------------------------------------------------------

std::string who_pins(const Analysis& analysis, const Diagnosis& diagnosis) {
    const std::vector<CulpritGroup> groups = group_culprits(analysis, diagnosis, false);
    if (groups.empty()) {
        return "";
    }
    const CulpritGroup& most = groups.front();
    return fmt::format("{}: {} in {} {} {} of holes open",
                       most.label,
                       format_bytes(most.live_bytes),
                       format_counted(most.blocks, "block", "blocks"),
                       most.blocks == 1 ? "keeps" : "keep",
                       format_bytes(most.held_open_bytes));
}

std::string who_holds(const DeviceAnalysis& device) {
    if (device.held.holders.empty() || device.held.holders.front().places.empty()) {
        return "";
    }
    const Holders& holders = device.held.holders.front();
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

std::string who_is_outside(const DeviceAnalysis& device) {
    if (device.held.holders.empty()) {
        return "";
    }
    const OutsideMemory& outside = device.held.holders.front().outside;
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
    return fmt::format("{} made the pool obtain {} of the {} that it obtained over the run, in {}",
                       most->first,
                       format_bytes(most->second.first),
                       format_bytes(all),
                       format_counted(most->second.second, "segment", "segments"));
}

std::string culprit_of_failure(const Analysis& analysis,
                               const DeviceAnalysis& device,
                               const Diagnosis& oom) {
    const Verdict& verdict = oom.verdict;
    if (verdict.requester == "library" && verdict.id == "releasable") {
        return fmt::format("the pool's cache: {} in wholly free segments",
                           format_bytes(verdict.steps.back().frees_bytes));
    }
    if (verdict.despite_free_memory()) {
        const std::string who = who_pins(analysis, oom);
        const std::uint64_t frees = verdict.steps.empty() ? 0 : verdict.steps.back().frees_bytes;
        return who.empty() && verdict.id == "other_pool" && frees != 0
                   ? fmt::format("other pools, or the other size class, keep {} free",
                                 format_bytes(frees))
                   : who;
    }
    const std::string outside = verdict.id == "outside_pool" ? who_is_outside(device) : "";
    const std::string inside = who_holds(device);
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
    return who_holds(device);
}

// ---- what to change -----------------------------------------------------------------------------

// As somebody would type it.
std::string change_text(const WhatIfRow& row) {
    const Candidate& candidate = row.candidate;
    if (candidate.remedy == Remedy::kSettings && !candidate.config.empty()) {
        return "PYTORCH_CUDA_ALLOC_CONF=" + candidate.config;
    }
    return candidate.name;
}

// Serves what the record did not, or reserves 2 % less at least without more retries.
bool is_worth_naming(const WhatIfRow& row, const WhatIfRow& recorded) {
    const std::uint64_t before = recorded.result.statistics.reserved.peak;
    const std::uint64_t after = row.result.statistics.reserved.peak;
    return row.usable &&
           (row.ooms() < recorded.ooms() ||
            (row.ooms() == 0 && recorded.ooms() == 0 && row.retries() <= recorded.retries() &&
             after + before / kSmallPart <= before));
}

// Of ranked rows the first is the best.
const WhatIfRow* first_worth_naming(const std::vector<WhatIfRow>& rows, const WhatIfRow* recorded) {
    const auto found = std::find_if(rows.begin(), rows.end(), [recorded](const WhatIfRow& row) {
        return recorded != nullptr && row.candidate.remedy != Remedy::kOthersGone &&
               is_worth_naming(row, *recorded);
    });
    return found == rows.end() ? nullptr : &*found;
}

std::string row_text(const WhatIfRow& row, const WhatIfRow& recorded) {
    const std::string reserved = format_bytes(row.result.statistics.reserved.peak);
    if (row.ooms() == 0 && recorded.ooms() != 0) {
        return fmt::format("{}: the same requests fit, in {} reserved ({})",
                           change_text(row),
                           reserved,
                           row_class_name(row.row_class));
    }
    if (row.ooms() != 0) {
        return fmt::format("{}: {} instead of {} ({})",
                           change_text(row),
                           format_counted(row.ooms(), "out-of-memory", "out-of-memories"),
                           recorded.ooms(),
                           row_class_name(row.row_class));
    }
    return fmt::format("{}: {} reserved instead of {} ({})",
                       change_text(row),
                       reserved,
                       format_bytes(recorded.result.statistics.reserved.peak),
                       row_class_name(row.row_class));
}

// A setting where one is worth it, else a change of the program; empty: nothing that was replayed.
std::string best_change(const DeviceAnalysis& device) {
    const WhatIfRow* recorded = recorded_row(device.settings);
    const WhatIfRow* row = best_remedy(device);
    row = row != nullptr ? row : first_worth_naming(device.remedies, recorded);
    return row == nullptr ? "" : row_text(*row, *recorded);
}

// The smallest card of those replayed on which the recorded settings fit.
std::string card_text(const DeviceAnalysis& device) {
    for (const WhatIfRow& row : device.capacities) {
        if (row.ooms() == 0) {
            return fmt::format(
                "{} would do ({})", row.candidate.name, row_class_name(row.row_class));
        }
    }
    return "";
}

std::string remedy_of_failure(const DeviceAnalysis& device, const Diagnosis& oom) {
    const Verdict& verdict = oom.verdict;
    if (verdict.requester == "library" && verdict.id == "releasable") {
        return "torch.cuda.empty_cache() just before (exact for that moment)";
    }
    if (const std::string change = best_change(device); !change.empty()) {
        return change;
    }
    const std::uint64_t asked = std::max(verdict.requested_bytes, verdict.rounded_bytes);
    const std::uint64_t free = verdict.free_bytes + verdict.device_free_bytes;
    std::string text = "no setting tried helps";
    if (!verdict.despite_free_memory() && asked > free) {
        text =
            fmt::format("hold or ask for at least {} less: {}", format_bytes(asked - free), text);
    } else if (oom.cheapest.bytes_to_free != 0) {
        text += fmt::format("; {} of live blocks, freed before or allocated elsewhere, make room",
                            format_bytes(oom.cheapest.bytes_to_free));
    }
    const std::string card = card_text(device);
    return card.empty() ? text : text + "; " + card;
}

std::string remedy_without_failure(const DeviceAnalysis& device) {
    if (!device.held.growth.places.empty()) {
        return "let go of what that line keeps from one iteration to the next";
    }
    if (const Survivors* kept = kept_model(device)) {
        return fmt::format(
            "let go of the earlier model and its optimizer before the next is made: at most {} "
            "less in use (bound)",
            format_bytes(kept->bytes));
    }
    if (const std::string change = best_change(device); !change.empty()) {
        return change;
    }
    return recorded_row(device.settings) == nullptr
               ? ""
               : "no setting saves 2 %: only holding less would, see holders";
}

}  // namespace

const WhatIfRow* best_remedy(const DeviceAnalysis& device) {
    return first_worth_naming(device.settings, recorded_row(device.settings));
}

Conclusion conclusion_of(const Analysis& analysis, const DeviceAnalysis& device) {
    if (!device.fidelity) {
        return {};  // no pool whose settings could be changed
    }
    if (const Diagnosis* oom = first_oom(device)) {
        return {culprit_of_failure(analysis, device, *oom), remedy_of_failure(device, *oom)};
    }
    if (device.recorded.peak_reserved == 0) {
        return {};
    }
    return {culprit_without_failure(analysis, device), remedy_without_failure(device)};
}

}  // namespace fragtrace::analyzer
