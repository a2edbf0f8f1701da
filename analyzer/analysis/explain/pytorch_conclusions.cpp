// Conclusions from the numbers of PyTorch's message. Each number is printed with two decimals, so a
// statement is made only if it is true for every size that is printed so.
#include "analyzer/analysis/explain/explanation.h"
#include "analyzer/analysis/explain/pytorch_message.h"
#include "analyzer/support/units.h"

#include <fmt/format.h>
#include <numeric>

namespace fragtrace::analyzer {
namespace {

// A printed size, or a sum or difference of such sizes, as least and greatest possible value.
struct Range {
    std::uint64_t least = 0;
    std::uint64_t most = 0;
};

Range operator+(Range a, Range b) {
    return {a.least + b.least, a.most + b.most};
}

Range operator-(Range a, Range b) {
    return {a.least > b.most ? a.least - b.most : 0, a.most > b.least ? a.most - b.least : 0};
}

Range range(const PrintedSize& size) {
    return {size.least(), size.most()};
}

Range range(const std::optional<PrintedSize>& size) {
    return size ? range(*size) : Range{};
}

std::string text(Range range) {
    return format_bytes(std::midpoint(range.least, range.most));
}

// The sizes of the message, with those that follow from them.
struct Sizes {
    Range tried;
    Range device_free;
    Range cached;          // cached in pools other than private ones
    Range private_cached;  // cached in private pools
    Range reserved;
    bool reserved_known = false;
};

Sizes sizes_of(const PytorchMessage& message) {
    Sizes sizes;
    sizes.tried = range(message.tried);
    sizes.device_free = range(message.device_free);
    sizes.private_cached = range(message.private_cached);
    sizes.reserved_known =
        message.reserved.has_value() || (message.allocated && message.unallocated);
    if (message.reserved) {
        sizes.reserved = range(message.reserved);
        sizes.cached = sizes.reserved - range(message.allocated);
    } else {
        sizes.cached = range(message.unallocated);
        sizes.reserved = range(message.allocated) + sizes.cached;
    }
    return sizes;
}

void find_contradictions(const PytorchMessage& message, const Sizes& sizes, Explanation* result) {
    auto& found = result->contradictions;
    if (message.reserved && message.allocated &&
        message.reserved->most() < message.allocated->least()) {
        found.push_back(fmt::format(
            "{} reserved is less than the {} allocated from it: no allocator can be in that state, "
            "so at least one of the two figures does not belong to this failure",
            message.reserved->text,
            message.allocated->text));
    }
    if (!message.capacity) {
        return;
    }
    const Range capacity = range(message.capacity);
    if (sizes.reserved_known && sizes.reserved.least + sizes.device_free.least > capacity.most) {
        found.push_back(fmt::format(
            "{} reserved{} make more than the card's {}: possible only where the driver also uses "
            "host memory for the device (Windows); otherwise the numbers belong to different "
            "moments",
            text(sizes.reserved),
            message.device_free ? fmt::format(" and {} free", message.device_free->text) : "",
            message.capacity->text));
    }
    if (message.device_free && message.device_free->least() > capacity.most) {
        found.push_back(fmt::format(
            "{} free on a card of {}", message.device_free->text, message.capacity->text));
    }
}

void say_what_was_asked(const PytorchMessage& message, Explanation* result) {
    constexpr std::uint64_t kSmallSegment = 2 * kMiB;
    constexpr std::uint64_t kLargeSegment = 20 * kMiB;
    if (message.tried.bytes == kSmallSegment) {
        result->certain.push_back(
            "PyTorch requests 2 MiB from the driver when a tensor of at most 1 MiB needs a new "
            "segment: other memory filled the card, not this tensor");
    } else if (message.tried.bytes == kLargeSegment && !message.expandable_segments) {
        result->certain.push_back(
            "PyTorch requests 20 MiB from the driver when a tensor of 1 to 10 MiB (or 18 to 20 "
            "MiB) needs a new segment: the tensor itself may be smaller");
    }
    if (message.device_free && message.device_free->most() < message.tried.least()) {
        result->certain.push_back(
            fmt::format("the driver could not serve it: {} requested, {} free on the device",
                        message.tried.text,
                        message.device_free->text));
    }
}

// Reports memory of the card that PyTorch did not reserve.
void say_who_else(const PytorchMessage& message, const Sizes& sizes, Explanation* result) {
    if (!message.capacity || !message.device_free || !sizes.reserved_known) {
        return;
    }
    const Range others = range(message.capacity) - sizes.device_free - sizes.reserved;
    if (others.least > kGiB / 16) {
        result->certain.push_back(fmt::format(
            "{} of the card are neither free nor PyTorch's: the CUDA context and its kernels, "
            "libraries (NCCL, cuBLAS, cuDNN), other processes",
            text(others)));
    }
    if (message.own_process) {
        const Range own = range(message.own_process) - sizes.reserved;
        result->certain.push_back(
            fmt::format("{} of that belong to this process, outside of PyTorch's pool", text(own)));
    }
    for (const auto& process : message.processes) {
        result->certain.push_back(fmt::format(
            "process {} holds {}{}",
            process.pid,
            process.in_use.text,
            message.own_process ? ""
                                : " (in a container it may be this one under another number)"));
    }
}

void say_unknown(const PytorchMessage& message, bool pieces, Explanation* result) {
    auto& unknown = result->unknown;
    if (pieces) {
        unknown.emplace_back("which tensors block the free memory, and which lines allocated them");
        unknown.emplace_back(
            "how large the largest free block was, and whether it belonged to another stream, to "
            "the small pool or to a private pool");
        unknown.emplace_back(
            "whether the setting that the message recommends helps: that depends on where the free "
            "blocks are");
    } else {
        unknown.emplace_back("which lines hold the allocated memory, and since when");
    }
    if (!message.allocated || !message.device_free) {
        unknown.emplace_back("figures that this message lacks: it is cut off or altered");
    }
}

void judge(const PytorchMessage& message, const Sizes& sizes, Explanation* result) {
    const Range tried = sizes.tried;
    if (message.allowed && message.device_free && message.device_free->least() >= tried.most &&
        sizes.reserved_known && sizes.reserved.most + tried.most > message.allowed->least()) {
        result->verdict = "limit";
        result->sentence = fmt::format(
            "The process's own limit refused the request: {} allowed, {} reserved, {} requested. "
            "The device had {} free.",
            message.allowed->text,
            text(sizes.reserved),
            message.tried.text,
            message.device_free->text);
        return;
    }
    if (message.expandable_reserve) {
        result->verdict = "limit";
        result->sentence = fmt::format(
            "One allocation cannot span expandable segments: {} requested, {} of address space "
            "reserved for a segment.",
            message.tried.text,
            message.expandable_reserve->text);
        return;
    }
    if (!sizes.reserved_known || !message.device_free) {
        result->verdict = "unclear";
        result->sentence = "The message lacks the figures that show the reason.";
        return;
    }
    if (message.device_free->least() >= tried.most) {
        result->verdict = "unclear";
        result->sentence = fmt::format(
            "The device had {} free but refused the request for {}. Possible reasons: a limit that "
            "is not printed, memory that another process freed just after the refusal, or free "
            "memory that the driver could not map in one piece.",
            message.device_free->text,
            message.tried.text);
        return;
    }
    const Range usable = sizes.cached + sizes.device_free;
    const Range all = usable + sizes.private_cached;
    if (all.most < tried.least) {
        result->verdict = "genuine";
        result->sentence = fmt::format(
            "Not fragmentation: {} cached and {} free together are {} short of the requested {}. "
            "No allocator setting avoids this; memory must be freed, or requests must be "
            "smaller.",
            text(sizes.cached + sizes.private_cached),
            message.device_free->text,
            text(tried - all),
            message.tried.text);
        return;
    }
    if (usable.most < tried.least) {
        result->verdict = "private_pools";
        result->sentence = fmt::format(
            "Private pools (CUDA graphs, MemPool) cache {} that this request for {} cannot use. "
            "Without it, {} cached and {} free on the device are not enough.",
            message.private_cached->text,
            message.tried.text,
            text(sizes.cached),
            message.device_free->text);
        return;
    }
    if (usable.least >= tried.most) {
        result->verdict = "fragmented";
        result->sentence =
            sizes.cached.least >= tried.most
                ? fmt::format(
                      "Out of memory despite free memory: {} requested, {} cached by PyTorch but "
                      "not usable for this request.",
                      message.tried.text,
                      text(sizes.cached))
                : fmt::format(
                      "Out of memory despite free memory: {} requested; {} cached by PyTorch and "
                      "{} free on the device are enough together, but not separately.",
                      message.tried.text,
                      text(sizes.cached),
                      message.device_free->text);
        return;
    }
    result->verdict = "unclear";
    result->sentence = fmt::format(
        "Unclear: cached and free memory together equal the requested {}, as far as two decimals "
        "show.",
        message.tried.text);
}

}  // namespace

Explanation explain(const PytorchMessage& message) {
    Explanation result;
    const Sizes sizes = sizes_of(message);
    find_contradictions(message, sizes, &result);
    say_what_was_asked(message, &result);
    if (!result.contradictions.empty()) {
        result.verdict = "contradictory";
        result.sentence =
            "The numbers contradict each other: nothing in the message proves fragmentation, or "
            "disproves it.";
        say_unknown(message, false, &result);
        return result;
    }
    judge(message, sizes, &result);
    if (result.verdict == "fragmented") {
        // True because release_cached_blocks() runs before PyTorch fails (docs/pools.md).
        result.certain.push_back(
            message.expandable_segments
                ? "PyTorch had unmapped every wholly free page before the request failed: the "
                  "cached memory lies between live blocks"
                : "PyTorch had waited for all streams and released every wholly free segment "
                  "before the request failed (unless a CUDA graph was being captured): the cached "
                  "memory lies in segments that also contain live blocks");
    }
    say_who_else(message, sizes, &result);
    say_unknown(message, result.verdict == "fragmented" || result.verdict == "unclear", &result);
    return result;
}

}  // namespace fragtrace::analyzer
