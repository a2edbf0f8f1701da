// What follows from a dump of the BFC allocator. Its figures are exact, and its list of chunks is
// the whole heap at that moment.
#include "analyzer/explain/bfc_dump.h"
#include "analyzer/explain/explanation.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

void find_contradictions(const BfcDump& dump, Explanation* result) {
    auto& found = result->contradictions;
    if (dump.conflicts != 0) {
        found.push_back(
            fmt::format("{} named twice with different values: the lines of several dumps "
                        "are mixed",
                        format_counted(dump.conflicts, "figure is", "figures are")));
    }
    if (dump.in_use_bytes && dump.pool_bytes && *dump.in_use_bytes > *dump.pool_bytes) {
        found.push_back(fmt::format("{} in use is more than the pool of {}",
                                    format_bytes(*dump.in_use_bytes),
                                    format_bytes(*dump.pool_bytes)));
    }
    const auto largest =
        dump.free.count != 0 ? std::optional(dump.free.largest_bytes) : dump.largest_free_bytes;
    if (largest && dump.pool_bytes && dump.in_use_bytes && *dump.in_use_bytes <= *dump.pool_bytes &&
        *largest > *dump.pool_bytes - *dump.in_use_bytes) {
        found.push_back(fmt::format("a free chunk of {} is more than the {} that are not in use",
                                    format_bytes(*largest),
                                    format_bytes(*dump.pool_bytes - *dump.in_use_bytes)));
    }
    if (dump.in_use_bytes && dump.in_use.count != 0 && dump.in_use.bytes != *dump.in_use_bytes) {
        found.push_back(
            fmt::format("the chunks listed as in use make {} bytes, the statistics say {}: lines "
                        "are missing, or "
                        "other threads went on while the dump was written",
                        dump.in_use.bytes,
                        *dump.in_use_bytes));
    }
}

}  // namespace

Explanation explain(const BfcDump& dump) {
    Explanation result;
    find_contradictions(dump, &result);
    result.unknown.emplace_back("which operations own the chunks in use: the dump has no stacks");
    const bool listed = dump.in_use.count + dump.free.count != 0;
    const bool sums_known = listed || (dump.pool_bytes && dump.in_use_bytes);
    const std::uint64_t pool = dump.pool_bytes.value_or(dump.in_use.bytes + dump.free.bytes);
    const std::uint64_t in_use = dump.in_use_bytes.value_or(dump.in_use.bytes);
    const std::optional<std::uint64_t> largest =
        listed ? std::optional(dump.free.largest_bytes) : dump.largest_free_bytes;
    const std::uint64_t needed = dump.rounded_bytes ? *dump.rounded_bytes
                                 : dump.asked       ? dump.asked->bytes
                                                    : 0;
    if (!result.contradictions.empty()) {
        result.verdict = "contradictory";
        result.sentence = "The dump contradicts itself: nothing follows from its sums.";
        return result;
    }
    if (!sums_known || needed == 0) {
        result.verdict = "unclear";
        result.sentence =
            "The dump lacks the size of the pool, what is in use, or what was asked: give the "
            "whole "
            "of it.";
        return result;
    }
    const std::uint64_t free_bytes = pool - std::min(pool, in_use);
    result.certain.push_back(fmt::format(
        "{} of the pool's {} are in use{}",
        format_bytes(in_use),
        format_bytes(pool),
        listed ? fmt::format(", in {}", format_counted(dump.in_use.count, "chunk", "chunks"))
               : ""));
    if (largest && free_bytes != 0) {
        result.certain.push_back(fmt::format(
            "{} free{}, the largest chunk {}: fragmentation {:.3f} as BFC counts it (1 - largest / "
            "free)",
            format_bytes(free_bytes),
            listed ? fmt::format(" in {}", format_counted(dump.free.count, "chunk", "chunks")) : "",
            format_bytes(*largest),
            1 - static_cast<double>(*largest) / static_cast<double>(free_bytes)));
    }
    const std::uint64_t growth =
        dump.limit_bytes && *dump.limit_bytes > pool ? *dump.limit_bytes - pool : 0;
    if (growth >= needed) {
        result.certain.push_back(
            fmt::format("the limit of {} left room for {} more: the driver refused it",
                        format_bytes(*dump.limit_bytes),
                        format_bytes(growth)));
    }
    if (largest && *largest >= needed) {
        result.verdict = "unclear";
        result.sentence = fmt::format(
            "A chunk of {} was free when the dump was written, enough for the {} asked: it became "
            "free "
            "after the failure.",
            format_bytes(*largest),
            format_bytes(needed));
    } else if (free_bytes >= needed) {
        result.verdict = "fragmented";
        result.sentence =
            largest
                ? fmt::format(
                      "Out of memory despite free memory: {} asked, {} free in the pool, "
                      "the largest chunk {}.",
                      format_bytes(needed),
                      format_bytes(free_bytes),
                      format_bytes(*largest))
                : fmt::format("Out of memory despite free memory: {} asked, {} free in the pool.",
                              format_bytes(needed),
                              format_bytes(free_bytes));
    } else {
        result.verdict = "genuine";
        result.sentence = fmt::format("Not fragmentation: {} asked, {} free in the whole pool{}.",
                                      format_bytes(needed),
                                      format_bytes(free_bytes),
                                      growth >= needed ? ", and the driver gave no more" : "");
    }
    return result;
}

}  // namespace fragtrace::analyzer
