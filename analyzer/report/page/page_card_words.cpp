#include "analyzer/report/page/page_card_words.h"

#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/analysis/verdict/verdict_text.h"
#include "analyzer/report/json/json_run.h"
#include "analyzer/report/text/conclusion_text.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>
#include <utility>
#include <variant>

namespace fragtrace::analyzer {
namespace {

std::uint64_t less(std::uint64_t all, std::uint64_t part) {
    return all - std::min(all, part);
}

// Bytes that the pool left unreserved at its peak. Requires capacity_known.
std::uint64_t left_bytes(const DeviceAnalysis& device) {
    return less(device.capacity_bytes, device.recorded.peak_reserved);
}

// The smallest replayed card that is sufficient, and the largest one that is not.
std::string card_sentence(const DeviceAnalysis& device) {
    const auto smaller = [&device](const WhatIfRow* row) {
        return row != nullptr && row->candidate.total_bytes < device.total_bytes;
    };
    std::string text;
    if (const WhatIfRow* fits = smallest_fitting(device); smaller(fits)) {
        text = fmt::format(" It would still fit {}{} ({}).",
                           fits->candidate.name,
                           fits->retries() == 0
                               ? std::string()
                               : ", with " + format_counted(fits->retries(), "retry", "retries"),
                           fits->class_text());
    }
    if (const WhatIfRow* fails = largest_failing(device); smaller(fails)) {
        text += fmt::format(" On {} it would run out of memory{}.",
                            fails->candidate.name,
                            fails->row_class == RowClass::kEstimate ? " (estimate)" : "");
    }
    return text;
}

// Without a caching pool there are no holes and no cache.
bool has_pool(const DeviceAnalysis& device) {
    return device.fidelity || device.state_only || !segments_known(device.recorded);
}

std::uint64_t in_use_at_peak(const RunFigures& run) {
    const WasteSplit& waste = run.waste_at_peak;
    return waste.requested + waste.rounding + waste.slack;
}

// Memory that a caching pool has reserved, or memory of the driver without such a pool.
std::string peak_memory(const Analysis& analysis, const DeviceAnalysis& device) {
    const RunFigures& run = device.recorded;
    const bool pool = has_pool(device);
    const std::string_view how = pool ? "reserved" : "allocated from the driver";
    const std::uint64_t others = less(device.total_bytes, device.capacity_bytes);
    const std::string capacity =
        device.capacity_known
            ? fmt::format(" of {} {} ({} left{})",
                          format_bytes(device.capacity_bytes),
                          how,
                          format_bytes(left_bytes(device)),
                          others == 0
                              ? std::string()
                              : fmt::format("; context and others have {}", format_bytes(others)))
            : fmt::format(" {}", how);
    const std::string reserved = format_bytes(run.peak_reserved) + capacity;
    if (!pool) {
        return fmt::format("At most {}{}.",
                           reserved,
                           analysis.program_pools.empty() ? "; no caching pool was recorded" : "");
    }
    const WasteSplit& waste = run.waste_at_peak;
    const std::string in_use = format_bytes(in_use_at_peak(run));
    const std::string most = format_bytes(run.peak_allocated);
    return fmt::format(
        "{} {}: {} in use{}, {} free between live blocks, {} cached.",
        device.state_only ? "The pool has" : "At its peak the pool had",
        reserved,
        in_use,
        device.state_only || run.peak_allocated <= in_use_at_peak(run) || most == in_use
            ? std::string()
            : fmt::format(" (the most, {}, was at another time)", most),
        format_bytes(waste.inactive_split),
        format_bytes(waste.releasable));
}

}  // namespace

std::string heading_of(const Verdict& verdict) {
    if (verdict.requester == "library") {
        return "An allocation outside the pool found no memory";
    }
    constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kHeadings = {{
        {"pending", "The memory was freed, but another stream may still use it"},
        {"releasable", "The memory was free, but the pool kept it in its cache"},
        {"granularity",
         "The memory was free, but not for the larger segment that the pool allocates"},
        {"limit", "A memory limit refused the request"},
        {"stream_bound", "The memory was free, but it belongs to another stream"},
        {"other_pool", "The memory was free, but it belongs to another pool"},
        {"rounding", "Rounding took the missing memory"},
        {"outside_pool", "Other holders on the card have the missing memory"},
        {"unexplained", "The recording shows enough free memory"},
        {"genuine", "Not enough memory, even without fragmentation"},
    }};
    const auto* const found =
        std::find_if(kHeadings.begin(), kHeadings.end(), [&](const auto& entry) {
            return entry.first == verdict.id;
        });
    return std::string(found == kHeadings.end() ? "The memory was free, but in pieces"
                                                : found->second);
}

std::vector<PageBar> failure_bars(const Verdict& verdict) {
    std::vector<PageBar> bars = {{"requested", "asked", verdict.requested_bytes}};
    if (serving_place(verdict) != nullptr) {
        const FreePlaces& places = *verdict.places;
        const bool streams = verdict.id == "stream_bound";
        bars.push_back({streams ? "free on its own stream" : "free in its own pool",
                        "free",
                        places.own.free_bytes});
        bars.push_back({streams ? "free on other streams" : "free in other pools",
                        "elsewhere",
                        places.elsewhere_bytes});
        bars.push_back({streams ? "largest of them" : "largest block of them",
                        "elsewhere",
                        places.elsewhere_largest_bytes});
    } else {
        // A pool releases all free memory that live blocks do not block, unless it fails before
        // that ("releasable"). The remaining free memory is in holes.
        bars.push_back({verdict.id == "releasable" ? "free in the pool" : "free, in holes",
                        "free",
                        verdict.free_bytes});
        bars.push_back({"largest free block", "free", verdict.largest_hole_bytes});
    }
    if (verdict.device_free_known()) {
        bars.push_back({"free on the device", "device", verdict.device_free_bytes});
    }
    return bars;
}

std::string retry_sentence(const Analysis& analysis, const Diagnosis& retry) {
    const Verdict& verdict = retry.verdict;
    const std::uint64_t cost_ns = retry_ns(analysis, retry.trouble.event);
    return fmt::format(
        "{} requested, {} free on the device: the pool released {} of its cache to the driver, and "
        "its second attempt succeeded{}.",
        format_bytes(verdict.requested_bytes),
        device_free_text(verdict),
        format_bytes(retry.released_bytes),
        cost_ns == 0 ? std::string()
                     : fmt::format("; that took {} in driver calls", format_duration(cost_ns)));
}

std::vector<PageBar> retry_bars(const Diagnosis& retry) {
    const Verdict& verdict = retry.verdict;
    std::vector<PageBar> bars = {{"requested", "asked", verdict.requested_bytes},
                                 {"free in the pool", "free", verdict.free_bytes},
                                 {"largest free block", "free", verdict.largest_hole_bytes},
                                 {"released", "cached", retry.released_bytes}};
    if (verdict.device_free_known()) {
        bars.push_back({"free on the device", "device", verdict.device_free_bytes});
    }
    return bars;
}

std::string growth_heading(const Culprit& culprit, const DeviceAnalysis& device) {
    const auto* grows = std::get_if<GrowsEachIteration>(&culprit);
    if (grows == nullptr) {
        return "";
    }
    const std::string rate =
        fmt::format("by {} per step",
                    format_bytes(static_cast<std::uint64_t>(grows->place.held.bytes) /
                                 std::max<std::size_t>(grows->last - grows->first, 1)));
    if (reported_oom(device) != nullptr) {
        return fmt::format("{} grew {} until memory ran out", grows->place.held.label, rate);
    }
    const auto& forecast = device.growth_forecast;
    return fmt::format("{} grows {}{}",
                       grows->place.held.label,
                       rate,
                       forecast && forecast->at_iteration != 0
                           ? fmt::format(": out of memory at about step {} (estimate)",
                                         format_count(forecast->at_iteration))
                           : "");
}

std::string peak_heading(const Analysis& analysis, const DeviceAnalysis& device) {
    if (device.state_only) {
        return "State at one moment: whether a request failed is unknown";
    }
    if (device.recorded.ooms != 0 || !pool_failure(analysis, device).empty()) {
        return without_diagnosis(analysis, device);
    }
    const std::string none = "No out-of-memory" + in_recorded_part(device);
    const std::uint64_t retries = device.recorded.retries;
    if (retries != 0) {
        return fmt::format(
            "{}, but {}",
            none,
            retries == 1 ? "the device was full once"
                         : fmt::format("the device was full {} times", format_count(retries)));
    }
    if (!device.capacity_known) {
        return none;
    }
    const std::uint64_t left = left_bytes(device);
    const std::string text =
        fmt::format("{} ({})", format_bytes(left), format_percent(left, device.capacity_bytes));
    return is_near_miss(device) ? fmt::format("{}, but only {} stayed free", none, text)
                                : fmt::format("{}. Lowest free memory: {}", none, text);
}

std::string peak_sentence(const Analysis& analysis, const DeviceAnalysis& device) {
    const RunFigures& run = device.recorded;
    std::string text;
    if (run.retries != 0) {
        text = fmt::format("{}: the pool had to release its cache. ",
                           format_counted(run.retries, "retry", "retries"));
    }
    text += peak_memory(analysis, device);
    if (device.state_only && run.waste_at_peak.releasable != 0) {
        text += " torch.cuda.empty_cache() returns the cached memory to the card.";
    }
    if (device.growth_forecast && device.growth_forecast->matters) {
        const std::string when = growth_forecast_text(*device.growth_forecast);
        return when.empty() ? text : text + " Forecast: " + when + ".";
    }
    return text + card_sentence(device);
}

std::vector<PageBar> peak_bars(const DeviceAnalysis& device) {
    const RunFigures& run = device.recorded;
    const WasteSplit& waste = run.waste_at_peak;
    std::vector<PageBar> bars;
    if (!has_pool(device)) {
        bars = {{"allocated at the peak", "used", run.peak_reserved}};
        if (device.capacity_known) {
            bars.push_back({"left on the device", "device", left_bytes(device), run.peak_reserved});
        }
        return bars;
    }
    if (device.state_only) {
        bars = {{"reserved", "reserved", run.peak_reserved}};
    } else {
        bars = {{"most in use at once", "used", run.peak_allocated},
                {"reserved at the peak", "reserved", run.peak_reserved}};
    }
    std::uint64_t end = 0;
    const auto follow = [&](const char* label, const char* kind, std::uint64_t bytes) {
        bars.push_back({label, kind, bytes, end});
        end += bytes;
    };
    follow(device.state_only ? "in use" : "in use then", "used", in_use_at_peak(run));
    if (waste.pending != 0) {
        follow("waiting for streams", "pending", waste.pending);
    }
    follow("free, in holes", "free", waste.inactive_split);
    follow("cached", "cached", waste.releasable);
    if (device.capacity_known) {
        follow("left on the device", "device", left_bytes(device));
    }
    return bars;
}

}  // namespace fragtrace::analyzer
