// Verdicts in words for people.
#include "analyzer/support/units.h"
#include "analyzer/verdict/verdict.h"

#include <fmt/format.h>

namespace fragtrace::analyzer {

std::string verdict_sentence(const Verdict& verdict, Outcome outcome) {
    const std::string asked = format_bytes(verdict.requested_bytes);
    const std::uint64_t all_free = verdict.free_bytes + verdict.device_free_bytes;
    if (outcome == Outcome::kRetryOk) {
        return fmt::format(
            "Retry: {} asked, the driver had {} left; the pool gave cached segments "
            "back and tried again.",
            asked,
            format_bytes(verdict.device_free_bytes));
    }
    if (verdict.requester == "library") {
        return fmt::format(
            "A library's own allocation failed: {} asked, {} free on the device, {} cached by the "
            "pool.",
            asked,
            format_bytes(verdict.device_free_bytes),
            format_bytes(verdict.free_bytes));
    }
    if (!verdict.despite_free_memory() || all_free == 0) {
        return fmt::format("Out of memory: {} asked, {} free in the pool and {} on the device.",
                           asked,
                           format_bytes(verdict.free_bytes),
                           format_bytes(verdict.device_free_bytes));
    }
    return fmt::format("Out of memory despite free memory: {} asked, {} free, largest hole {}.",
                       asked,
                       format_bytes(all_free),
                       format_bytes(verdict.largest_hole_bytes));
}

namespace {

std::string pages_text(const Verdict& verdict) {
    const VerdictStep& serving = verdict.steps.back();
    const std::string pages = fmt::format(
        "wholly free {} pages ({} in all), stitched together{}, would have served it",
        format_bytes(serving.page_bytes),
        format_bytes(serving.frees_bytes),
        serving.frees_bytes < verdict.rounded_bytes ? " with what the device had left" : "");
    for (const VerdictStep& step : verdict.steps) {
        if (step.id == "stitchable" && !step.serves) {
            return fmt::format(
                "{}; pages of {}, PyTorch's own, would not", pages, format_bytes(step.page_bytes));
        }
    }
    return pages;
}

std::string serving_text(const Verdict& verdict) {
    const std::string_view id = verdict.id;
    if (id == "pending") {
        const std::uint64_t bytes = verdict.steps.back().frees_bytes;
        return fmt::format(
            "freed blocks that still waited for another stream's events{} would have served it",
            bytes == 0 ? std::string() : fmt::format(" ({})", format_bytes(bytes)));
    }
    if (id == "releasable" && verdict.requester == "library") {
        return fmt::format(
            "the pool could have given back {} to the driver, in wholly free "
            "segments: enough for it",
            format_bytes(verdict.steps.back().frees_bytes));
    }
    if (id == "releasable") {
        return "wholly free segments, given back to the driver, would have served it";
    }
    if (id == "granularity") {
        return "the driver had room for the request, but not for the pool's larger segment";
    }
    if (id == "limit") {
        return "the process's own memory limit stopped it, not the card";
    }
    if (id == "stream_bound") {
        return "free blocks that belong to other streams would have served it";
    }
    if (id == "other_pool") {
        return "memory of the pool's other size class or of other pools would have served it";
    }
    if (id == "stitchable") {
        return pages_text(verdict);
    }
    if (id == "compaction_only") {
        return "the holes are smaller than a page: only moving live blocks would have served it";
    }
    if (id == "rounding") {
        return "what rounding and unsplit remainders cost would have served it";
    }
    if (id == "outside_pool") {
        return "memory outside the pool (context, libraries, other processes) would have served it";
    }
    return "more is needed than there is, whatever the pool does";
}

// The rungs that would do alone, where PyTorch's own repair is the verdict: they avoid it.
std::string_view short_text(std::string_view id) {
    if (id == "pending") {
        return "what waited for another stream's events";
    }
    if (id == "granularity") {
        return "a smaller segment";
    }
    if (id == "stream_bound") {
        return "free blocks of other streams";
    }
    if (id == "other_pool") {
        return "free blocks of other pools";
    }
    return "";
}

}  // namespace

std::string verdict_explanation(const Verdict& verdict) {
    std::string text = serving_text(verdict);
    if (verdict.id == "releasable" && verdict.requester != "library") {
        for (const std::string_view other : verdict.also_served_by) {
            if (const std::string_view also = short_text(other); !also.empty()) {
                text += fmt::format("; so would {}", also);
            }
        }
    }
    return text;
}

}  // namespace fragtrace::analyzer
