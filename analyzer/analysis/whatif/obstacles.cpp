#include "analyzer/analysis/whatif/obstacles.h"

#include "analyzer/pools/pytorch/pytorch_rules.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

// Libraries that rule out expandable segments, by name. They release and restore the memory of live
// blocks, or register it piece by piece with a network card.
constexpr std::array<std::string_view, 2> kSleepModules = {"cumem_allocator", "torch_memory_saver"};
constexpr std::array<std::string_view, 2> kRegisteringModules = {"libnixl", "libucp"};

bool has_expandable(std::string_view config) {
    return config.find("expandable_segments:True") != std::string_view::npos;
}

// False if the release is not exactly known, as in "2.2 or later".
bool has_no_mem_pool(const std::string& release) {
    return release.find(' ') == std::string::npos &&
           !PytorchRules::for_release(release).has_mem_pool;
}

void rule_out(WhatIfRow* row, std::string reason) {
    row->usable = false;
    row->usable_reason = std::move(reason);
}

}  // namespace

Obstacles find_obstacles(const Timeline& timeline, DeviceId device) {
    Obstacles found;
    const auto first = [](EventIndex* at, EventIndex i) { *at = *at == kNoEvent ? i : *at; };
    std::size_t cursor = 0;
    for (EventIndex i = 0; i < timeline.events.size(); ++i) {
        switch (timeline.events.kind(i)) {
            case EventKind::kExport:
                // A pointer. Handles of virtual memory do not count, since they can be shared one
                // by one.
                if (timeline.events.device(i) == device && timeline.events.address(i) >> 32 != 0) {
                    first(&found.shared, i);
                }
                break;
            case EventKind::kGraphAlloc:
            case EventKind::kGraphMemory:
                first(&found.graph, i);
                break;
            case EventKind::kPoolUse: {
                const std::uint32_t pool = timeline.event_pools.at(i, &cursor);
                const auto identity = timeline.pools.find(pool);
                if (identity != timeline.pools.end()) {
                    first(identity->second.is_graph() ? &found.graph : &found.private_pool, i);
                }
                break;
            }
            case EventKind::kSettings:
                first(&found.settings, i);
                break;
            default:
                break;
        }
    }
    for (const Module& module : timeline.modules) {
        const auto is_one = [&module](std::string_view name) {
            return module.path.find(name) != std::string::npos;
        };
        if (std::any_of(kSleepModules.begin(), kSleepModules.end(), is_one)) {
            found.sleep_module = module.path;
        }
        if (std::any_of(kRegisteringModules.begin(), kRegisteringModules.end(), is_one)) {
            found.registered_module = module.path;
        }
    }
    found.torch_version = timeline.fact("torch_version");
    return found;
}

void judge_use(const Obstacles& obstacles, const std::string& recorded_config, WhatIfRow* row) {
    const Candidate& candidate = row->candidate;
    if (candidate.remedy == Remedy::kCachingOff) {
        if (obstacles.graph != kNoEvent) {
            rule_out(row, fmt::format("event {}: a CUDA graph is captured", obstacles.graph));
        } else if (obstacles.private_pool != kNoEvent) {
            rule_out(row, fmt::format("event {}: a MemPool is used", obstacles.private_pool));
        }
        return;
    }
    if (candidate.remedy == Remedy::kOthersGone) {
        row->usable_reason = "end or move the other holders; no setting does it";
        return;
    }
    if (candidate.pool != "pytorch") {
        return;
    }
    if (candidate.remedy == Remedy::kOwnPool && has_no_mem_pool(obstacles.torch_version)) {
        rule_out(row, fmt::format("PyTorch {} has no MemPool", obstacles.torch_version));
        return;
    }
    if (has_expandable(candidate.config) && !has_expandable(recorded_config)) {
        if (obstacles.shared != kNoEvent) {
            rule_out(row,
                     fmt::format("event {}: memory is shared with another process by IPC, which "
                                 "expandable segments do not allow",
                                 obstacles.shared));
        } else if (!obstacles.sleep_module.empty()) {
            rule_out(row,
                     fmt::format("{} releases memory that is in use",
                                 obstacles.sleep_module.substr(
                                     obstacles.sleep_module.find_last_of('/') + 1)));
        } else if (!obstacles.registered_module.empty()) {
            rule_out(row,
                     fmt::format("{} registers memory with a network card",
                                 obstacles.registered_module.substr(
                                     obstacles.registered_module.find_last_of('/') + 1)));
        }
    }
    if (row->usable && candidate.config != recorded_config && obstacles.settings != kNoEvent) {
        row->usable_reason =
            fmt::format("event {}: the program sets the allocator itself", obstacles.settings);
    }
}

}  // namespace fragtrace::analyzer
