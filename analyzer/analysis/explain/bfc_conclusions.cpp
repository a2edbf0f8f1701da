// Conclusions from a dump of the BFC allocator. Its list of chunks is the whole heap at that
// moment, and exact. Current releases round their statistics.
#include "analyzer/analysis/explain/bfc_dump.h"
#include "analyzer/analysis/explain/explanation.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

std::string text_of(const PrintedSize& size) {
    return size.error_bytes == 0 ? format_bytes(size.bytes)
                                 : fmt::format("{} (rounded: {} more or less)",
                                               format_bytes(size.bytes),
                                               format_bytes(size.error_bytes));
}

PrintedSize difference(const PrintedSize& whole, const PrintedSize& part) {
    return {.bytes = whole.bytes - std::min(whole.bytes, part.bytes),
            .error_bytes = whole.error_bytes + part.error_bytes};
}

// The figures that conclusions use: from the list of chunks, else from the statistics.
struct Heap {
    bool listed = false;
    PrintedSize pool;
    PrintedSize in_use;
    PrintedSize free;
    PrintedSize needed;
    std::optional<PrintedSize> largest;  // largest free chunk that the request could use
    bool known = false;                  // pool, in_use, free and needed are known
};

Heap heap_of(const BfcDump& dump) {
    Heap heap;
    heap.listed = dump.in_use.count + dump.free.count != 0;
    const PrintedSize listed = {.bytes = dump.in_use.bytes + dump.free.bytes};
    const bool rounded = dump.pool && dump.pool->error_bytes != 0;
    heap.pool = heap.listed && (!dump.pool || rounded) ? listed : dump.pool.value_or(listed);
    heap.in_use = heap.listed && dump.in_use.count != 0
                      ? PrintedSize{.bytes = dump.in_use.bytes}
                      : dump.in_use_sum.value_or(PrintedSize{.bytes = dump.in_use.bytes});
    heap.free = difference(heap.pool, heap.in_use);
    heap.largest = heap.listed ? std::optional(PrintedSize{.bytes = dump.free.largest_bytes})
                               : dump.largest_free;
    if (dump.largest_usable) {
        heap.largest = dump.largest_usable;
    }
    heap.needed = dump.rounded_bytes ? PrintedSize{.bytes = *dump.rounded_bytes}
                                     : dump.asked.value_or(PrintedSize{});
    heap.known = (heap.listed || (dump.pool && dump.in_use_sum)) && heap.needed.bytes != 0;
    return heap;
}

void find_contradictions(const BfcDump& dump, Explanation* result) {
    auto& found = result->contradictions;
    if (dump.conflicts != 0) {
        found.push_back(
            fmt::format("{} named twice with different values: the lines of several dumps "
                        "are mixed",
                        format_counted(dump.conflicts, "figure is", "figures are")));
    }
    if (dump.negative != 0) {
        found.push_back(fmt::format("{} below 0: the allocator's own count is wrong",
                                    format_counted(dump.negative, "figure is", "figures are")));
    }
    if (dump.in_use_sum && dump.pool && dump.in_use_sum->least() > dump.pool->most()) {
        found.push_back(fmt::format("{} in use is more than the pool of {}",
                                    text_of(*dump.in_use_sum),
                                    text_of(*dump.pool)));
    } else if (dump.in_use_sum && dump.pool) {
        const PrintedSize unused = difference(*dump.pool, *dump.in_use_sum);
        const auto largest = dump.free.count != 0
                                 ? std::optional(PrintedSize{.bytes = dump.free.largest_bytes})
                                 : dump.largest_free;
        if (largest && largest->least() > unused.most()) {
            found.push_back(
                fmt::format("a free chunk of {} is more than the {} that are not in use",
                            text_of(*largest),
                            text_of(unused)));
        }
    }
    if (dump.in_use_sum && dump.in_use.count != 0 &&
        (dump.in_use.bytes < dump.in_use_sum->least() ||
         dump.in_use.bytes > dump.in_use_sum->most())) {
        found.push_back(fmt::format(
            "the chunks listed as in use add up to {} bytes, but the statistics say {}: lines are "
            "missing, or other threads used the allocator while the dump was written",
            dump.in_use.bytes,
            dump.in_use_sum->error_bytes == 0 ? fmt::format("{}", dump.in_use_sum->bytes)
                                              : text_of(*dump.in_use_sum)));
    }
}

// Advice for a log without figures. JAX hides the dump because it is logged at level INFO.
std::string how_to_get_figures(const BfcDump& dump) {
    std::string text =
        "The message has no statistics. JAX hides them by default: set TF_CPP_MIN_LOG_LEVEL=0 "
        "before jax is imported";
    if (dump.tolerated) {
        text +=
            ", and TF_CPP_VMODULE=bfc_allocator=2, as the allocator prints none for a request "
            "that may fail";
    }
    return text + ". Run again and give the whole log.";
}

void conclude(const BfcDump& dump, const Heap& heap, Explanation* result) {
    result->certain.push_back(fmt::format(
        "{} of the pool's {} are in use{}",
        text_of(heap.in_use),
        text_of(heap.pool),
        heap.listed ? fmt::format(", in {}", format_counted(dump.in_use.count, "chunk", "chunks"))
                    : ""));
    if (heap.largest && heap.free.bytes != 0) {
        result->certain.push_back(fmt::format(
            "{} free{}, the largest chunk{} {}: fragmentation {}{:.3f} as BFC counts it (1 - "
            "largest / free)",
            text_of(heap.free),
            heap.listed ? fmt::format(" in {}", format_counted(dump.free.count, "chunk", "chunks"))
                        : "",
            dump.largest_usable ? " that this request could take" : "",
            text_of(*heap.largest),
            heap.free.error_bytes + heap.largest->error_bytes == 0 ? "" : "about ",
            std::max(0.0,
                     1 - static_cast<double>(heap.largest->bytes) /
                             static_cast<double>(heap.free.bytes))));
    }
    const std::uint64_t growth = dump.limit && dump.limit->least() > heap.pool.most()
                                     ? dump.limit->least() - heap.pool.most()
                                     : 0;
    const bool refused = growth >= heap.needed.most();
    if (refused) {
        result->certain.push_back(
            fmt::format("the limit of {} left room for at least {} more: the driver refused it",
                        text_of(*dump.limit),
                        format_bytes(growth)));
    }
    if (heap.largest && heap.largest->least() >= heap.needed.most()) {
        result->verdict = "unclear";
        result->sentence = fmt::format(
            "A chunk of {} was free when the dump was written, enough for the requested {}: it "
            "became free after the failure.",
            text_of(*heap.largest),
            text_of(heap.needed));
    } else if (heap.free.least() >= heap.needed.most()) {
        result->verdict = "fragmented";
        result->sentence = fmt::format(
            "Out of memory despite free memory: {} requested, {} free in the pool{}.",
            text_of(heap.needed),
            text_of(heap.free),
            heap.largest ? fmt::format(", the largest chunk {}", text_of(*heap.largest)) : "");
    } else if (heap.free.most() < heap.needed.least()) {
        result->verdict = "genuine";
        result->sentence =
            fmt::format("Not fragmentation: {} requested, {} free in the whole pool{}.",
                        text_of(heap.needed),
                        text_of(heap.free),
                        refused ? ", and the driver allocated no more" : "");
    } else {
        result->verdict = "unclear";
        result->sentence = fmt::format(
            "{} requested, {} free in the pool: the printed figures are rounded too much to show "
            "whether this was enough.",
            text_of(heap.needed),
            text_of(heap.free));
    }
}

}  // namespace

Explanation explain(const BfcDump& dump) {
    Explanation result;
    find_contradictions(dump, &result);
    result.unknown.emplace_back("which operations own the chunks in use: the dump has no stacks");
    const Heap heap = heap_of(dump);
    if (!result.contradictions.empty()) {
        result.verdict = "contradictory";
        result.sentence = "The dump contradicts itself: its sums prove nothing.";
    } else if (!heap.known) {
        const bool figures = heap.listed || dump.pool || dump.in_use_sum;
        result.verdict = "unclear";
        result.sentence = figures ? "The dump lacks the size of the pool, the bytes in use or the "
                                    "requested size. Give the whole dump."
                                  : how_to_get_figures(dump);
    } else {
        conclude(dump, heap, &result);
    }
    return result;
}

}  // namespace fragtrace::analyzer
