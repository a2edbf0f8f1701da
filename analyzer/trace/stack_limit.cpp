#include "analyzer/trace/stack_limit.h"

#include "analyzer/trace/losses.h"

#include <algorithm>
#include <vector>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kDepthOfOldRecorders = 48;

}  // namespace

std::uint64_t stack_depth_limit(const Timeline& timeline) {
    const std::uint64_t depth = parse_count(timeline.fact("options.stack_depth"));
    return depth != 0 ? depth : kDepthOfOldRecorders;
}

std::uint64_t events_with_cut_stacks(const Timeline& timeline) {
    const std::uint64_t limit = stack_depth_limit(timeline);
    // Parents have smaller numbers; number 0 is the root.
    std::vector<std::uint32_t> depths(timeline.nodes.size());
    for (std::size_t node = 1; node < depths.size(); ++node) {
        depths[node] = depths[std::min<std::size_t>(timeline.nodes[node].parent, node - 1)] + 1;
    }
    const auto reaches_limit = [&](std::uint32_t node) {
        return node < depths.size() && depths[node] >= limit;
    };
    std::vector<bool> cut(timeline.origins.size());
    bool any = false;
    for (std::size_t i = 0; i < cut.size(); ++i) {
        const Origin& origin = timeline.origins[i];
        cut[i] = reaches_limit(origin.native_stack) || reaches_limit(origin.python_stack);
        any = any || cut[i];
    }
    if (!any) {
        return 0;
    }
    return static_cast<std::uint64_t>(
        std::count_if(timeline.events.begin(), timeline.events.end(), [&](const Event& event) {
            return event.origin < cut.size() && cut[event.origin];
        }));
}

}  // namespace fragtrace::analyzer
