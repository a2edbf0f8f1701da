#include "analyzer/trace/anonymous_facts.h"

#include <fragtrace/pytorch_variables.h>

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

bool all_of(std::string_view text, std::string_view characters) {
    return text.find_first_not_of(characters) == std::string_view::npos;
}

bool is_number(std::string_view text) {
    return !text.empty() && all_of(text, "0123456789");
}

// Words that the format itself defines.
bool is_known_word(std::string_view value) {
    constexpr std::array<std::string_view, 14> kWords = {"on",
                                                         "off",
                                                         "zstd",
                                                         "none",
                                                         "oom",
                                                         "signal",
                                                         "call",
                                                         "recorded",
                                                         "verified",
                                                         "unverified",
                                                         "native",
                                                         "cudaMallocAsync",
                                                         "off, at run time",
                                                         "on again, at run time"};
    return std::find(kWords.begin(), kWords.end(), value) != kWords.end();
}

// "off" of "off: the reason"; an empty string if the value does not begin with a state. A reason is
// a sentence of the recorder, and other recorders may name something in it.
std::string_view state_of(std::string_view value) {
    const std::string_view word = value.substr(0, value.find(": "));
    constexpr std::string_view kStates[] = {"on", "off", "incomplete", "unknown"};
    return std::find(std::begin(kStates), std::end(kStates), word) != std::end(kStates)
               ? word
               : std::string_view();
}

// Only the release number, without a build's suffix: "2.6.0", "3.12.3".
std::string_view release_of(std::string_view value) {
    return value.substr(0, value.find_first_not_of("0123456789."));
}

// "KIND NAME". A kind of the program's own could be a name, too.
std::string program_pool(std::string_view text, AnonymousNames* names) {
    constexpr std::string_view kKinds[] = {"rmm-pool",
                                           "rmm-arena",
                                           "bfc",
                                           "cuda-async",
                                           "best-fit",
                                           "cupy",
                                           "ggml-legacy",
                                           "ggml-vmm",
                                           "other"};
    const std::size_t space = text.find(' ');
    const std::string_view kind = text.substr(0, space);
    const std::string_view name =
        space == std::string_view::npos ? std::string_view() : text.substr(space + 1);
    const bool known = std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds);
    return "program " + std::string(known ? kind : "other") + " " + names->numbered("pool_", name);
}

// Handles the keys "pool.3", "pool.3.allocator", "pool.3.no_split". `key` lacks the "pool.".
std::string pool_value(std::string_view key,
                       const std::string& value,
                       bool is_setting,
                       AnonymousNames* names) {
    const std::size_t dot = key.find('.');
    if (!is_number(key.substr(0, dot))) {
        return {};
    }
    const std::string_view what =
        dot == std::string_view::npos ? std::string_view() : key.substr(dot + 1);
    if (what == "use_on_oom" || what == "no_split" || what == "graph") {
        return value == "1" || value == "0" ? value : "";
    }
    if (what == "limit") {
        return is_number(value) || value == "unknown" ? value : "";
    }
    if (what == "settings") {
        return is_setting ? value : "";
    }
    if (what == "name") {
        return names->numbered("pool_", value);
    }
    const std::string_view text(value);
    if (what.empty() && text.starts_with("program ")) {
        return program_pool(text.substr(8), names);
    }
    const bool pytorch = text.starts_with("pytorch ") && all_of(text.substr(8), "0123456789,");
    const bool cuda = text.starts_with("cuda 0x") && all_of(text.substr(7), "0123456789abcdef");
    return what.empty() && (pytorch || cuda) ? value : "";
}

std::string device_value(std::string_view key, const std::string& value) {
    if (key == "count") {
        return is_number(value) ? value : "";
    }
    const std::size_t dot = key.find('.');
    if (!is_number(key.substr(0, dot)) || dot == std::string_view::npos) {
        return {};
    }
    const std::string_view what = key.substr(dot + 1);
    constexpr std::string_view kAtMost = "total less free";  // then the context's size is a limit
    if (what == "context_bytes.measured") {
        return std::string(value.starts_with(kAtMost) ? kAtMost : "");
    }
    const bool number = what == "total_bytes" || what == "context_bytes" || what == "mig";
    return (number && is_number(value)) ||
                   (what == "compute_capability" && all_of(value, "0123456789."))
               ? value
               : "";
}

}  // namespace

std::string AnonymousNames::numbered(const char* prefix, std::string_view name) {
    std::map<std::string, std::size_t, std::less<>>& names = names_[prefix];
    auto found = names.find(name);
    if (found == names.end()) {
        found = names.emplace(std::string(name), names.size() + 1).first;
    }
    return fmt::format("{}{}", prefix, found->second);
}

std::string anonymous_fact(std::string_view key,
                           const std::string& value,
                           bool is_setting,
                           AnonymousNames* names) {
    const auto in = [key](std::string_view prefix) { return key.starts_with(prefix); };
    if (in("text.") && is_number(key.substr(5))) {
        return is_setting ? value : names->numbered("text_", value);
    }
    if (in("pool.")) {
        return pool_value(key.substr(5), value, is_setting, names);
    }
    if (in("device.")) {
        return device_value(key.substr(7), value);
    }
    const bool has_settings =
        key == "allocator_conf" ||
        std::any_of(std::begin(kPytorchVariables),
                    std::end(kPytorchVariables),
                    [key](const PytorchVariable& variable) {
                        return key == std::string("environment.") + variable.name;
                    });
    if (has_settings) {
        return is_setting ? value : "";
    }
    if (key == "torch_version" || key == "python.version" || key == "recorder.version") {
        return std::string(release_of(value));
    }
    if (key == "nccl.rank" || key == "ancestors") {
        return all_of(value, "0123456789 :of") ? value : "";
    }
    if (key == "allocator_backend") {
        return is_known_word(value) ? value : "pluggable";
    }
    if (key == "python.evaluator") {
        return all_of(value, "0123456789 ") ? value : "";
    }
    // Complete names only: an unknown key may itself contain a name.
    constexpr std::string_view kKeys[] = {"options.stack_depth",
                                          "options.ring_events",
                                          "options.min_bytes",
                                          "options.size_limit",
                                          "lost.ring_full",
                                          "lost.reentrant",
                                          "lost.unfinished",
                                          "lost.unfinished_in_ring",
                                          "lost.write_failed",
                                          "lost.removed",
                                          "lost.completions",
                                          "lost.before_start",
                                          "lost.facts",
                                          "stacks.native",
                                          "stacks.python",
                                          "stacks.without_room",
                                          "stacks.native_failures",
                                          "stacks.python_failures",
                                          "stacks.python_none",
                                          "held.without_room",
                                          "ranges.without_room",
                                          "tables.without_room",
                                          "trace.compression",
                                          "trace.write_errors",
                                          "trace.anonymized",
                                          "torch.caching",
                                          "torch.vtable",
                                          "torch.captures",
                                          "torch.pools",
                                          "tensorflow.pool",
                                          "jax.pool",
                                          "onnxruntime.pool",
                                          "ggml.pool",
                                          "nvtx.memory",
                                          "nccl.zeros.larger_than_bytes",
                                          "nccl.zeros.results",
                                          "nccl.zeros.bytes",
                                          "rank.inherited",
                                          "rank.process",
                                          "world_size",
                                          "generation",
                                          "end.code",
                                          "end.signal",
                                          "end.signal_seen_ns",
                                          "recorder.alive_ns",
                                          "recorder.next_program_ns",
                                          "control.signal",
                                          "copy.reason",
                                          "ring.absorbed",
                                          "cuda_driver_version",
                                          "cuda_runtime_version",
                                          "virtual",
                                          "environment.CUDA_MODULE_LOADING",
                                          "environment.PYTORCH_NO_CUDA_MEMORY_CACHING"};
    const bool known = std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys);
    return !known                                     ? ""
           : is_number(value) || is_known_word(value) ? value
                                                      : std::string(state_of(value));
}

}  // namespace fragtrace::analyzer
