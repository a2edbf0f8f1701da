#include "analyzer/analysis/whatif/equal_replays.h"

#include "analyzer/pools/pytorch/pytorch_config.h"

#include <optional>

namespace fragtrace::analyzer {
namespace {

// The pool collects garbage only while its memory is limited (torch.cuda.memory, `set_fraction` in
// PyTorch's allocator): by a step, or by settings.
bool may_limit_memory(const ReplayScript& script) {
    if (!script.settings.empty()) {
        return true;
    }
    for (std::size_t i = 0; i < script.steps.size(); ++i) {
        if (script.steps[i].kind == Step::Kind::kMemoryFraction) {
            return true;
        }
    }
    return false;
}

// What the settings of a PyTorch pool come to; nullopt for other pools, and for wrong settings.
std::optional<PytorchConfig> effective_settings(const Candidate& candidate,
                                                const PytorchRules& rules,
                                                bool limited) {
    if (candidate.pool != "pytorch") {
        return std::nullopt;
    }
    const auto parsed = parse_pytorch_config(candidate.config, rules);
    if (!parsed) {
        return std::nullopt;
    }
    PytorchConfig config = *parsed;
    if (!limited && config.per_process_memory_fraction >= 1) {
        config.garbage_collection_threshold = 0;
    }
    return config;
}

bool same_but_settings(const Candidate& a, const Candidate& b) {
    return a.pool == b.pool && a.capacity_bytes == b.capacity_bytes &&
           a.total_bytes == b.total_bytes && a.change == b.change &&
           a.until_failure == b.until_failure;
}

}  // namespace

std::vector<std::size_t> first_equal_replay(const ReplayScript& script,
                                            const std::vector<Candidate>& candidates) {
    const bool limited = may_limit_memory(script);
    std::vector<std::optional<PytorchConfig>> settings;
    std::vector<std::size_t> like;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        settings.push_back(effective_settings(candidates[i], script.rules, limited));
        std::size_t first = 0;
        while (first < i && !(settings[i] && settings[first] &&
                              same_but_settings(candidates[first], candidates[i]) &&
                              *settings[first] == *settings[i])) {
            ++first;
        }
        like.push_back(first);
    }
    return like;
}

}  // namespace fragtrace::analyzer
