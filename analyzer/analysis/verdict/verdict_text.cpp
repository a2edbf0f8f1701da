#include "analyzer/analysis/verdict/verdict_text.h"

#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {

std::string device_free_text(const Verdict& verdict) {
    return verdict.device_free_known() ? format_bytes(verdict.device_free_bytes)
                                       : "an unknown amount";
}

std::string verdict_sentence(const Verdict& verdict, Outcome outcome, bool free_memory_matters) {
    const std::string asked = format_bytes(verdict.requested_bytes);
    const std::uint64_t all_free =
        verdict.free_bytes + (verdict.device_free_known() ? verdict.device_free_bytes : 0);
    if (outcome == Outcome::kRetryOk) {
        return fmt::format(
            "Retry: {} requested, {} free on the device. The pool released cached segments and "
            "tried again.",
            asked,
            device_free_text(verdict));
    }
    if (verdict.requester == "library") {
        return fmt::format(
            "An allocation outside the pool failed: {} requested, {} free on the device, {} cached "
            "by the pool.",
            asked,
            device_free_text(verdict),
            format_bytes(verdict.free_bytes));
    }
    if (verdict.requester == "program") {
        return fmt::format(
            "Out of memory: {} requested, {} free on the device; the program had allocated {}.",
            asked,
            device_free_text(verdict),
            format_bytes(verdict.allocated_bytes));
    }
    if (!free_memory_matters || !verdict.despite_free_memory() || all_free == 0) {
        return fmt::format("Out of memory: {} requested, {} free in the pool and {} on the device.",
                           asked,
                           format_bytes(verdict.free_bytes),
                           device_free_text(verdict));
    }
    // A hole may be large enough but not usable by this request.
    const bool not_usable =
        verdict.places && verdict.places->own.largest_bytes < verdict.largest_hole_bytes;
    return fmt::format(
        "Out of memory despite free memory: {} requested, {} free, largest free block {}{}.",
        asked,
        format_bytes(all_free),
        format_bytes(verdict.largest_hole_bytes),
        !not_usable                    ? ""
        : verdict.id == "stream_bound" ? " (of another stream)"
                                       : " (of another pool)");
}

std::string stream_text(const FreePlace& place) {
    return place.stream_handle == kUnknown64 ? fmt::format("stream number {}", place.stream)
           : place.stream_handle == 0        ? "the default stream"
                                             : fmt::format("stream {:#x}", place.stream_handle);
}

std::string pool_text(const FreePlace& place) {
    const bool small = place.size_class == SizeClass::kSmall;
    if (place.private_pool != 0) {
        return fmt::format("private pool {}{}", place.private_pool, small ? " (small blocks)" : "");
    }
    return small ? "the pool of small blocks (up to 1 MiB)" : "the pool of large blocks";
}

const FreePlace* serving_place(const Verdict& verdict) {
    if (!verdict.places || verdict.places->elsewhere.empty()) {
        return nullptr;
    }
    const std::vector<FreePlace>& all = verdict.places->elsewhere;
    const auto fits = std::find_if(all.begin(), all.end(), [&verdict](const FreePlace& place) {
        return place.largest_bytes >= verdict.rounded_bytes;
    });
    return fits == all.end() ? &all.front() : &*fits;
}

namespace {

constexpr std::size_t kMostNamed = 3;  // streams or pools named in a text

std::string places_text(const Verdict& verdict, std::string (*name)(const FreePlace&)) {
    const FreePlaces& places = *verdict.places;
    std::string text;
    std::uint64_t rest_bytes = places.elsewhere_bytes;
    std::size_t named = 0;
    for (const FreePlace& place : places.elsewhere) {
        if (named == kMostNamed) {
            break;
        }
        text += fmt::format("{}{} has {} free (largest block {})",
                            named == 0 ? "" : ", ",
                            name(place),
                            format_bytes(place.free_bytes),
                            format_bytes(place.largest_bytes));
        rest_bytes -= place.free_bytes;
        ++named;
    }
    const std::uint64_t rest = places.elsewhere.size() + places.places_left_out - named;
    return rest == 0
               ? text
               : fmt::format(
                     "{}, and {} more {}", text, format_count(rest), format_bytes(rest_bytes));
}

std::string stream_bound_text(const Verdict& verdict) {
    if (serving_place(verdict) == nullptr) {
        return "free blocks of other streams are large enough, but a free block is reused only on "
               "its own stream";
    }
    const FreePlace& own = verdict.places->own;
    return fmt::format(
        "the request is on {}, which has {} free; {}, but a free block is reused only on its own "
        "stream",
        stream_text(own),
        format_bytes(own.free_bytes),
        places_text(verdict, stream_text));
}

std::string other_pool_text(const Verdict& verdict) {
    if (serving_place(verdict) == nullptr) {
        return fmt::format(
            "the cache of its own private pool{} is large enough, but a private pool in use "
            "releases nothing",
            verdict.places ? fmt::format(" ({})", format_bytes(verdict.places->own.free_bytes))
                           : std::string());
    }
    const FreePlace& own = verdict.places->own;
    return fmt::format("the request is to {}, which has {} free; {}, but pools do not share memory",
                       pool_text(own),
                       format_bytes(own.free_bytes),
                       places_text(verdict, pool_text));
}

std::string pages_text(const Verdict& verdict) {
    const VerdictStep& serving = verdict.steps.back();
    std::string text = fmt::format(
        "the free memory is in separate pieces: merging the free {} pages ({}){} is enough",
        format_bytes(serving.page_bytes),
        format_bytes(serving.frees_bytes),
        serving.frees_bytes < verdict.rounded_bytes ? " with the free memory of the device" : "");
    for (const VerdictStep& step : verdict.steps) {
        if (step.id == "stitchable" && !step.serves) {
            return fmt::format(
                "{}; but PyTorch's expandable segments merge pages of {}, and {} is free in such "
                "pages",
                text,
                format_bytes(step.page_bytes),
                format_bytes(step.frees_bytes));
        }
    }
    return text;
}

std::string serving_text(const Verdict& verdict) {
    const std::string_view id = verdict.id;
    const std::string frees =
        format_bytes(verdict.steps.empty() ? 0 : verdict.steps.back().frees_bytes);
    if (id == "pending") {
        return fmt::format(
            "{}freed memory is enough, but another stream may still use it (record_stream)",
            verdict.steps.back().frees_bytes == 0 ? "" : frees + " of ");
    }
    if (id == "releasable" && verdict.requester == "library") {
        return fmt::format(
            "the pool cached {} in segments without a live block; returning them to the driver is "
            "enough",
            frees);
    }
    if (id == "releasable") {
        return fmt::format(
            "{} was cached in segments without a live block; returning them to the driver is "
            "enough",
            frees);
    }
    if (id == "granularity") {
        return "the device had enough memory for the request, but not for the larger segment that "
               "the pool allocates for it";
    }
    if (id == "limit") {
        return "the memory limit of the process refused it, not the card";
    }
    if (id == "stream_bound") {
        return stream_bound_text(verdict);
    }
    if (id == "other_pool") {
        return other_pool_text(verdict);
    }
    if (id == "stitchable") {
        return pages_text(verdict);
    }
    if (id == "compaction_only") {
        return "the free memory is in separate pieces, with too few whole free pages of 2 MiB to "
               "merge: only moving live blocks together makes room";
    }
    if (id == "rounding") {
        return fmt::format(
            "{} was lost to sizes rounded up and to remainders too small to split off; without "
            "this loss the request fits",
            frees);
    }
    if (id == "unexplained") {
        return "the recording shows enough free memory: the card has less than recorded, or other "
               "processes held more";
    }
    if (id == "outside_pool") {
        return fmt::format(
            "libraries, other processes or the program itself hold {} of the card outside the pool "
            "(without its CUDA context); without them the request fits",
            frees);
    }
    return verdict.requester == "program" ? "not enough memory: the program needs more than the "
                                            "card has beside its CUDA context"
                                          : "not enough memory, even without fragmentation";
}

// Names the rungs that would be enough alone if PyTorch's own retry is the verdict. Using them
// would avoid the retry.
std::string_view short_text(std::string_view id) {
    if (id == "pending") {
        return "freed blocks that wait for another stream";
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
                text += fmt::format("; also enough, if usable: {}", also);
            }
        }
    }
    return text;
}

}  // namespace fragtrace::analyzer
