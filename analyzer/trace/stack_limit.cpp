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

CutStacks::CutStacks(const Timeline& timeline) : cut_(timeline.origins.size()) {
    const std::uint64_t limit = stack_depth_limit(timeline);
    // Parents have smaller numbers than their children; number 0 is the root.
    std::vector<std::uint32_t> depths(timeline.nodes.size());
    for (std::size_t node = 1; node < depths.size(); ++node) {
        depths[node] = depths[std::min<std::size_t>(timeline.nodes[node].parent, node - 1)] + 1;
    }
    const auto reaches_limit = [&](std::uint32_t node) {
        return node < depths.size() && depths[node] >= limit;
    };
    for (std::size_t i = 0; i < cut_.size(); ++i) {
        const Origin& origin = timeline.origins[i];
        cut_[i] = reaches_limit(origin.native_stack) || reaches_limit(origin.python_stack);
    }
}

}  // namespace fragtrace::analyzer
