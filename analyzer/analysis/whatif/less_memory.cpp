#include "analyzer/analysis/whatif/less_memory.h"

#include "analyzer/support/units.h"

#include <array>
#include <fmt/format.h>
#include <string>
#include <string_view>

namespace fragtrace::analyzer {
namespace {

Advice collect_advice(const std::optional<HeldAtPeak>& held) {
    Advice collect{.name = "del and gc.collect()", .key = "collect", .less_memory = true};
    collect.reason = "the last use of a block is not recorded";
    if (held) {
        collect.saved_bytes = static_cast<std::int64_t>(held->older_bytes);
        collect.reason = fmt::format(
            "{} of the {} live at peak reserved were at least two steps old, parameters included "
            "(estimate)",
            format_bytes(held->older_bytes),
            format_bytes(held->live_bytes));
    }
    return collect;
}

std::string_view reach_text(bool can_be_enough) {
    return can_be_enough ? "; can be enough for the failed request"
                         : "; not enough for the failed request";
}

// Numbers of fewer bits. Of `bytes` of the kind, `saved` / `whole` are no longer needed.
struct FewerBits {
    const char* name;
    const char* key;
    const char* kind;
    std::uint64_t bytes;
    const char* part;  // "half"
    std::uint64_t saved;
    std::uint64_t whole;
};

Advice fewer_bits_advice(const FewerBits& change, const Shortage& shortage) {
    const auto part_of = [&change](std::uint64_t bytes) {
        return bytes / change.whole * change.saved;
    };
    const std::uint64_t most = part_of(change.bytes);
    Advice advice{.name = change.name,
                  .key = change.key,
                  .saved_bytes = static_cast<std::int64_t>(most),
                  .less_memory = true};
    advice.reason = fmt::format(
        "at most {} (estimate): {} of the {} of {}, if these have 32 bits per number (not "
        "recorded)",
        format_bytes(most),
        change.part,
        format_bytes(change.bytes),
        change.kind);
    if (shortage.missing_bytes != 0) {
        // A request of this kind, or of an unknown one, shrinks, too.
        const bool shrinks = std::string_view(change.kind).find(shortage.kind) != std::string::npos;
        const std::uint64_t most_with_request =
            most + (shrinks ? part_of(shortage.requested_bytes) : 0);
        advice.can_be_enough = most_with_request >= shortage.missing_bytes;
        advice.reason += reach_text(*advice.can_be_enough);
    }
    return advice;
}

// The request itself stays: checkpointing frees only what earlier layers keep.
Advice checkpointing_advice(const MemoryByKind& kinds, const Shortage& shortage) {
    Advice advice{.name = "activation checkpointing",
                  .key = "checkpointing",
                  .saved_bytes = static_cast<std::int64_t>(kinds.activations),
                  .less_memory = true};
    advice.reason = fmt::format("at most the {} that activations hold of {} (estimate)",
                                format_bytes(kinds.activations),
                                format_bytes(kinds.allocated_bytes));
    if (shortage.missing_bytes != 0) {
        advice.can_be_enough = kinds.activations >= shortage.missing_bytes;
        advice.reason += reach_text(*advice.can_be_enough);
    }
    return advice;
}

}  // namespace

std::vector<Advice> less_memory_advice(const std::optional<HeldAtPeak>& held,
                                       const MemoryByKind& kinds,
                                       const Shortage& shortage) {
    std::vector<Advice> advice;
    if (held) {
        advice.push_back(collect_advice(held));
    }
    if (kinds.activations != 0) {
        advice.push_back(checkpointing_advice(kinds, shortage));
    }
    const std::array<FewerBits, 3> changes = {{
        {"16-bit activations (autocast)",
         "autocast",
         "activations",
         kinds.activations,
         "half",
         1,
         2},
        {"16-bit parameters and gradients",
         "half_precision",
         "parameters and gradients",
         kinds.parameters + kinds.gradients,
         "half",
         1,
         2},
        {"8-bit optimizer state",
         "optimizer_8bit",
         "optimizer state",
         kinds.optimizer_state,
         "three quarters",
         3,
         4},
    }};
    for (const FewerBits& change : changes) {
        if (change.bytes != 0) {
            advice.push_back(fewer_bits_advice(change, shortage));
        }
    }
    if (!held) {
        advice.push_back(collect_advice(held));  // says nothing but that it is not known
    }
    return advice;
}

}  // namespace fragtrace::analyzer
