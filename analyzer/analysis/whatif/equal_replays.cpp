#include "analyzer/analysis/whatif/equal_replays.h"

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

// True if the process's memory may be limited, by a step or by changed settings. Only then does the
// pool collect garbage (torch.cuda.memory, `set_fraction` in PyTorch's allocator).
bool may_limit_memory(const ReplayScript& script) {
    return !script.settings.empty() || script.steps.may_have({Step::Kind::kMemoryFraction});
}

// True if only the pool uses the card: nothing else takes its memory or queries how much is free.
bool has_only_blocks(const ReplayScript& script) {
    return script.libraries.empty() && !script.steps.may_have({Step::Kind::kPlace,
                                                               Step::Kind::kMemoryInfo,
                                                               Step::Kind::kPastPool,
                                                               Step::Kind::kPastPoolFree,
                                                               Step::Kind::kSegmentUnmapped});
}

// True if a segment that is older than the recording is expandable. Mapped ranges in it merge, so
// a block can be larger than every request to the driver.
bool adopts_expandable(const ReplayScript& script) {
    return std::any_of(
        script.checkpoints.begin(), script.checkpoints.end(), [](const HeapSnapshot& heap) {
            return std::any_of(heap.segments.begin(),
                               heap.segments.end(),
                               [](const HeapSegment& segment) { return segment.expandable; });
        });
}

// The settings that have an effect in a PyTorch pool. nullopt for other pools and for invalid
// settings.
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

// `until_failure` may differ too: one replay answers another only if nothing is refused. A replay
// that may end early answers only candidates whose replays end at least as early.
bool same_but_settings_and_card(const Candidate& a, const Candidate& b) {
    return a.pool == b.pool && a.change == b.change &&
           a.most_reserved_bytes >= b.most_reserved_bytes;
}

bool same_but_settings(const Candidate& a, const Candidate& b) {
    return same_but_settings_and_card(a, b) && a.capacity_bytes == b.capacity_bytes &&
           a.total_bytes == b.total_bytes && a.until_failure == b.until_failure;
}

// True if the card matters only by refusing requests. This excludes expandable segments, which
// reserve addresses by the card's size.
bool depends_on_refusals_alone(const PytorchConfig& config) {
    return !config.expandable_segments && !config.throw_on_cudamalloc_oom &&
           config.garbage_collection_threshold == 0 && config.per_process_memory_fraction >= 1;
}

PytorchConfig without_split_limit(PytorchConfig config) {
    config.max_split_size_bytes = PytorchConfig::kUnlimited;
    return config;
}

}  // namespace

EqualReplays::EqualReplays(const ReplayScript& script, const std::vector<Candidate>& candidates)
    : candidates_(candidates) {
    const bool limited = may_limit_memory(script);
    const bool shares = !limited && has_only_blocks(script) && !adopts_expandable(script);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        settings_.push_back(effective_settings(candidates[i], script.rules, limited));
        std::size_t first = 0;
        while (first < i && !(settings_[i] && settings_[first] &&
                              same_but_settings(candidates[first], candidates[i]) &&
                              *settings_[first] == *settings_[i])) {
            ++first;
        }
        first_.push_back(first);
    }
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        base_.push_back(i);
        if (!shares || !settings_[i] || !depends_on_refusals_alone(*settings_[i])) {
            continue;
        }
        const PytorchConfig wanted = without_split_limit(*settings_[i]);
        for (std::size_t other = 0; other < candidates.size(); ++other) {
            const bool found = *settings_[base_[i]] == wanted;
            if (settings_[other] && *settings_[other] == wanted &&
                same_but_settings_and_card(candidates[other], candidates[i]) &&
                (!found ||
                 candidates[other].capacity_bytes > candidates[base_[i]].capacity_bytes)) {
                base_[i] = other;
            }
        }
    }
}

bool EqualReplays::is_answered(std::size_t candidate, const ReplayLimits& limits) const {
    return limits.enough_bytes <= candidates_[candidate].capacity_bytes &&
           limits.largest_segment_bytes < settings_[candidate]->max_split_size_bytes;
}

}  // namespace fragtrace::analyzer
