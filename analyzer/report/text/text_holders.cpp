// Lines of the text report about which code holds the memory, what holds more than before, and what
// grows.
#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/report/text/conclusion_text.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kPlacesInLine = 3;
// Differences to the last good iteration below 1/100 of allocated memory are ignored.
constexpr std::int64_t kSmallChange = 100;

std::string place_list(const std::vector<HoldingLine>& places, bool differences) {
    std::string text;
    for (std::size_t i = 0; i < std::min(kPlacesInLine, places.size()); ++i) {
        const HoldingLine& place = places[i];
        text += fmt::format(
            "{}{} {}{}",
            i == 0 ? "" : ", ",
            differences ? format_bytes_difference(place.held.bytes)
                        : format_bytes(static_cast<std::uint64_t>(place.held.bytes)),
            printable(place.held.label),
            category_known(place) ? fmt::format(" ({})", printable(shown_category(place)))
                                  : std::string());
    }
    return text;
}

// " (1 GiB of it free)"; empty if none is free.
std::string free_part(const PrivatePool& pool) {
    const std::uint64_t free =
        pool.reserved_bytes - std::min(pool.reserved_bytes, pool.allocated_bytes);
    return free == 0                     ? ""
           : free == pool.reserved_bytes ? " (all of it free)"
                                         : fmt::format(" ({} of it free)", format_bytes(free));
}

// " (300 MiB of it unmapped for now)"; empty if nothing is.
std::string unmapped_part(const PrivatePool& pool) {
    return pool.unmapped_bytes == 0 ? ""
                                    : fmt::format(" ({} of it unmapped for now)",
                                                  pool.unmapped_bytes == pool.reserved_bytes
                                                      ? "all"
                                                      : format_bytes(pool.unmapped_bytes));
}

// "pool 3", with the program's name for it: "pool 3 \"weights\"".
std::string pool_name(const PrivatePool& pool) {
    return fmt::format("pool {}", pool.number) +
           (pool.name.empty() ? "" : fmt::format(" \"{}\"", printable(pool.name)));
}

std::string requested_by(const PrivatePool& pool, std::string_view words) {
    return pool.line.empty() ? "" : std::string(words) + printable(pool.line);
}

// "CUDA graphs hold 512 MiB in 2 private pools (96 MiB of it free); pool 3: 300 MiB, its oldest
// segment by train.py:41 capture; ...". Empty if there is no such pool.
std::string private_pool_text(const Holders& holders, bool of_graph) {
    constexpr std::size_t kMostPools = 3;
    std::vector<const PrivatePool*> pools;
    PrivatePool all;
    for (const PrivatePool& pool : holders.private_pools) {
        if (pool.of_graph == of_graph) {
            pools.push_back(&pool);
            all.reserved_bytes += pool.reserved_bytes;
            all.allocated_bytes += pool.allocated_bytes;
            all.unmapped_bytes += pool.unmapped_bytes;
        }
    }
    if (pools.empty()) {
        return "";
    }
    std::string text = fmt::format("{} {} in {}{}",
                                   of_graph ? "CUDA graphs hold" : "MemPools hold",
                                   format_bytes(all.reserved_bytes),
                                   format_counted(pools.size(), "private pool", "private pools"),
                                   free_part(all));
    if (pools.size() == 1) {
        text += (pools[0]->name.empty() ? "" : ", " + pool_name(*pools[0])) + unmapped_part(all);
        return text + requested_by(*pools[0], "; its oldest segment was requested by ");
    }
    text += unmapped_part(all);
    for (std::size_t i = 0; i < std::min(kMostPools, pools.size()); ++i) {
        text += fmt::format("; {}: {}{}{}{}",
                            pool_name(*pools[i]),
                            format_bytes(pools[i]->reserved_bytes),
                            free_part(*pools[i]),
                            unmapped_part(*pools[i]),
                            requested_by(*pools[i], ", its oldest segment by "));
    }
    if (pools.size() > kMostPools) {
        text += fmt::format("; and {} more", pools.size() - kMostPools);
    }
    return text;
}

// True if a step allocates this memory and the next step frees it.
bool of_a_step(const Holding& holding) {
    return holding.category == Category::kActivations || holding.category == Category::kInputs ||
           holding.category == Category::kGradients || holding.category == Category::kTemporaries;
}

std::string category_text(const Holders& holders, bool at_peak, const std::string& basis) {
    std::string text;
    for (const ShownCategory& category : shown_categories(holders)) {
        text += fmt::format("{}{} {}",
                            text.empty() ? "" : ", ",
                            printable(category.name),
                            format_bytes(category.bytes));
        if (category.says_old()) {
            text += fmt::format(" ({} older than one step)", format_bytes(category.should_be_gone));
        }
    }
    return fmt::format("{}; {} in total{} ({})",
                       text,
                       format_bytes(holders.allocated_bytes),
                       at_peak ? " at the peak of allocated memory" : "",
                       basis);
}

std::string outside_text(const OutsideMemory& outside) {
    std::string text;
    for (const auto& [what, bytes] : outside_parts(outside)) {
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, format_bytes(bytes));
    }
    return text.empty() ? "" : "the pool: " + text;
}

std::string how_found(const Iterations& iterations) {
    return iterations.source == Iterations::Source::kPhases
               ? fmt::format("phases \"{}\"", printable(shorten(iterations.phase, 30)))
               : std::string("estimate: recurring stacks");
}

// A run whose segments are unknown has no reserved memory to show.
std::string steps_text(const DeviceHolders& held, bool reserved_known) {
    if (!held.peaks.known) {
        return "";
    }
    const std::string steps = fmt::format("{} ({}, {:.0f} % alike)",
                                          format_count(held.iterations.begins.size()),
                                          how_found(held.iterations),
                                          100 * held.iterations.match_rate);
    if (!reserved_known) {
        return fmt::format("{}; peak allocated until the end of the first: {}; later: {}",
                           steps,
                           format_bytes(held.peaks.warmup_allocated),
                           format_bytes(held.peaks.steady_allocated));
    }
    return fmt::format(
        "{}; peak until the end of the first: {} allocated, {} reserved; later: {} and {}",
        steps,
        format_bytes(held.peaks.warmup_allocated),
        format_bytes(held.peaks.warmup_reserved),
        format_bytes(held.peaks.steady_allocated),
        format_bytes(held.peaks.steady_reserved));
}

// The part of a step that grows most. Empty if it does not grow faster than the memory that stays
// from step to step.
std::string part_text(const DeviceHolders& held) {
    const PartGrowth* most = nullptr;
    const auto more = [](const PartGrowth& part) {
        return static_cast<std::int64_t>(part.bytes_at_last) -
               static_cast<std::int64_t>(part.bytes_at_first);
    };
    for (const PartGrowth& part : held.parts) {
        if (part.grows() && (most == nullptr || more(part) > more(*most))) {
            most = &part;
        }
    }
    if (most == nullptr || more(*most) - held.growth.bytes <=
                               static_cast<std::int64_t>(most->bytes_at_first) / kSmallChange) {
        return "";
    }
    return fmt::format(
        "within the steps: at the end of {} {} live in step {}, {} in step {}, never less than "
        "before",
        printable(shorten(most->part, 40)),
        format_bytes(most->bytes_at_first),
        most->first,
        format_bytes(most->bytes_at_last),
        most->last);
}

// Empty if the headline already contains the forecast.
std::string later_forecast(const std::optional<GrowthForecast>& forecast) {
    if (!forecast || forecast->matters || forecast->at_iteration == 0) {
        return "";
    }
    const std::size_t times = forecast->at_iteration / forecast->recorded_iterations;
    return growth_forecast_text(*forecast) +
           (times < 2 ? ""
                      : fmt::format(": {} times as many steps as recorded", format_count(times)));
}

std::string survived_what(const Survivors& survivors) {
    const std::string phase = printable(shorten(survivors.phase, 40));
    switch (survivors.of) {
        case Survivors::Of::kOutOfMemory:
            return phase.empty() ? fmt::format("the out-of-memory of step {}", survivors.iteration)
                                 : fmt::format("the out-of-memory of phase \"{}\"", phase);
        case Survivors::Of::kModel:
            return survivors.iteration == 0
                       ? std::string("the creation of another model")
                       : fmt::format("the creation of another model after step {}",
                                     survivors.iteration);
        case Survivors::Of::kPhase:
            return fmt::format("one run of phase \"{}\" and the next one", phase);
    }
    return "";
}

}  // namespace

bool ShownCategory::says_old() const {
    return should_be_gone != 0 && should_be_gone * 10 >= bytes;
}

std::vector<ShownCategory> shown_categories(const Holders& holders) {
    std::vector<ShownCategory> shown;
    for (const Holding& holding : holders.categories) {
        const std::string_view name = shown_category(holding);
        auto found = std::find_if(shown.begin(), shown.end(), [name](const ShownCategory& one) {
            return one.name == name;
        });
        if (found == shown.end()) {
            found = shown.insert(shown.end(), {.name = name});
        }
        found->bytes += holding.bytes;
        found->should_be_gone += of_a_step(holding) ? holding.old_bytes : 0;
    }
    std::stable_sort(
        shown.begin(), shown.end(), [](const ShownCategory& a, const ShownCategory& b) {
            return a.bytes > b.bytes;
        });
    return shown;
}

std::vector<std::pair<std::string, std::uint64_t>> outside_parts(const OutsideMemory& outside) {
    std::vector<std::pair<std::string, std::uint64_t>> parts = {
        {"context", outside.context},
        {"libraries", outside.libraries},
        {"allocations made while caching was off", outside.past_pool},
        {"other allocations", outside.other},
        {"other processes", outside.processes},
        {"unknown owner", outside.not_known}};
    std::erase_if(parts, [](const auto& part) { return part.second == 0; });
    return parts;
}

bool any_category_known(const Holders& holders) {
    return std::any_of(holders.categories.begin(),
                       holders.categories.end(),
                       [](const Holding& holding) { return category_known(holding); });
}

std::string category_basis(const Analysis& analysis) {
    return analysis.categories ? fmt::format(
                                     "by the rules of {}; the rest is an estimate by stack "
                                     "and lifetime",
                                     printable(analysis.categories->file))
                               : "estimate: by stack and lifetime";
}

std::vector<ReportLine> change_lines(const DeviceHolders& held, const Holders& holders) {
    const IterationDifference* difference = difference_at(held, holders.event);
    if (difference == nullptr) {
        return {};
    }
    const std::uint64_t now = difference->asked_bytes;
    const std::uint64_t then = difference->asked_bytes_then;
    const std::string allocated =
        difference->bytes == 0
            ? "as much"
            : format_bytes(static_cast<std::uint64_t>(std::abs(difference->bytes))) +
                  (difference->bytes < 0 ? " more" : " less");
    std::string text =
        fmt::format("at the same point of step {}: {} allocated; the step had requested {} (now {}",
                    difference->against,
                    allocated,
                    format_bytes(then),
                    format_bytes(now));
    text += then == 0 ? ")"
                      : fmt::format(", {:.2f} times as much)",
                                    static_cast<double>(now) / static_cast<double>(then));
    std::vector<ReportLine> lines = {{"before", text}};
    const std::int64_t small = static_cast<std::int64_t>(holders.allocated_bytes) / kSmallChange;
    if (std::abs(difference->bytes) > small) {
        add_line(&lines,
                 difference->bytes > 0 ? "increase" : "decrease",
                 "since then: " + place_list(difference->places, true));
    }
    return lines;
}

std::vector<ReportLine> private_pool_lines(const DeviceAnalysis& device) {
    std::vector<ReportLine> lines;
    if (!device.held.holders.empty()) {
        const Holders& holders = device.held.holders.front();
        add_line(&lines, "graphs", private_pool_text(holders, true));
        add_line(&lines, "mempools", private_pool_text(holders, false));
    }
    return lines;
}

std::vector<ReportLine> step_lines(const DeviceAnalysis& device) {
    std::vector<ReportLine> lines;
    add_line(&lines, "steps", steps_text(device.held, segments_known(device.recorded)));
    return lines;
}

std::string holder_lines(const Analysis& analysis, const DeviceAnalysis& device, bool brief) {
    const DeviceHolders& held = device.held;
    const bool failed = reported_oom(device) != nullptr;
    if (held.holders.empty() || (brief && !failed)) {
        return "";
    }
    const Holders& holders = held.holders.front();
    std::vector<ReportLine> lines;
    // Even if no stack reveals a category, it still reveals the code line that holds most.
    if (any_category_known(holders)) {
        add_line(&lines,
                 "holders",
                 category_text(holders, !failed && !device.state_only, category_basis(analysis)));
    }
    if (brief) {
        return printed(lines);
    }
    if (!holders.places.empty()) {
        add_line(&lines, "most", place_list(holders.places, false));
    }
    const std::vector<ReportLine> pools = private_pool_lines(device);
    lines.insert(lines.end(), pools.begin(), pools.end());
    add_line(&lines, "outside", outside_text(holders.outside));
    return printed(lines) + printed(change_lines(held, holders)) + printed(step_lines(device));
}

// Where the reference to such memory often is. A cell of a notebook is a phase "In [5] ...".
std::string who_refers(const Survivors& survivors) {
    if (survivors.of != Survivors::Of::kOutOfMemory) {
        return "";
    }
    return survivors.phase.starts_with("In [")
               ? "; IPython's stored traceback often keeps such memory: %fragtrace forget releases "
                 "it"
               : "; an exception that is still stored often keeps such memory, by its traceback";
}

ReportLine survived_line(const Survivors& survivors) {
    return {"survived",
            fmt::format("{}: {} in total: {}{}{}",
                        survived_what(survivors),
                        format_bytes(survivors.bytes),
                        place_list(survivors.places, false),
                        who_refers(survivors),
                        survivors.cached_bytes == 0
                            ? ""
                            : fmt::format("; the pool then also kept {} cached, which it can "
                                          "return to the driver (torch.cuda.empty_cache())",
                                          format_bytes(survivors.cached_bytes)))};
}

std::vector<ReportLine> growth_lines(const DeviceAnalysis& device) {
    const Growth& growth = device.held.growth;
    std::vector<ReportLine> lines;
    if (!growth.places.empty()) {
        std::int64_t bytes = 0;
        bool slows = true;
        std::vector<HoldingLine> places;
        std::vector<std::string> freed;
        for (const GrowingLine& place : growth.places) {
            bytes += place.place.held.bytes;
            slows = slows && place.slows;
            places.push_back(place.place);
            if (place.freed_before_failure && freed.size() < kPlacesInLine) {
                freed.push_back(printable(place.place.held.label));
            }
        }
        add_line(
            &lines,
            "grows",
            fmt::format(
                "by {} per step from step {} to step {}, never shrinks{}: {}{}",
                format_bytes(static_cast<std::uint64_t>(bytes) / (growth.last - growth.first)),
                growth.first,
                growth.last,
                slows ? ", but more and more slowly" : "",
                place_list(places, true),
                freed.empty() ? ""
                              : fmt::format("; between the start of step {} and the "
                                            "out-of-memory more than half of this was freed: {}",
                                            growth.last,
                                            fmt::join(freed, ", "))));
        add_line(&lines, "", later_forecast(device.growth_forecast));
    }
    add_line(&lines, "grows", part_text(device.held));
    const Survivors* shown = nullptr;
    for (const Survivors& survivors : device.held.survivors) {
        if (shown == nullptr || shown->of != survivors.of) {  // one of each kind; --json has all
            lines.push_back(survived_line(survivors));
            shown = &survivors;
        }
    }
    return lines;
}

}  // namespace fragtrace::analyzer
