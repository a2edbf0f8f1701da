#include "analyzer/analysis/iterations/accumulation.h"

#include "analyzer/analysis/iterations/common_caller.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace fragtrace::analyzer {
namespace {

// Finds stacks whose requests come from an optimizer. Each node is examined once.
class OptimizerStacks {
  public:
    explicit OptimizerStacks(const Timeline& timeline)
        : timeline_(timeline), known_(timeline.nodes.size(), kNotKnown) {}

    bool contains(OriginId origin) {
        return origin < timeline_.origins.size() && of(timeline_.origins[origin].python_stack);
    }

  private:
    static constexpr std::uint8_t kNotKnown = 2;

    // Parents have smaller numbers than their children, so the loop ends.
    bool of(std::uint32_t node) {
        path_.clear();
        while (node != 0 && node < known_.size() && known_[node] == kNotKnown) {
            path_.push_back(node);
            node = timeline_.nodes[node].parent;
        }
        bool inside = node != 0 && node < known_.size() && known_[node] == 1;
        for (auto above = path_.rbegin(); above != path_.rend(); ++above) {
            inside = inside || is_optimizer_frame(timeline_, timeline_.nodes[*above]);
            known_[*above] = inside ? 1 : 0;
        }
        return inside;
    }

    const Timeline& timeline_;
    std::vector<std::uint8_t> known_;
    std::vector<std::uint32_t> path_;
};

}  // namespace

std::vector<EventIndex> join_parts_of_steps(const Timeline& timeline,
                                            const Requests& requests,
                                            std::vector<EventIndex> begins) {
    OptimizerStacks optimizers(timeline);
    std::vector<char> optimizes(requests.origins.size());
    for (std::size_t stack = 0; stack < requests.origins.size(); ++stack) {
        optimizes[stack] = optimizers.contains(requests.origins[stack]) ? 1 : 0;
    }
    std::vector<EventIndex> steps;
    // Number of passes of each step that ended with an optimizer's requests.
    std::vector<std::size_t> parts;
    std::size_t parts_of_this = 0;
    std::size_t next = 0;
    bool stepped = false;
    for (std::size_t i = 0; i < requests.size() && next <= begins.size(); ++i) {
        if (next < begins.size() && begins[next] == requests.events[i]) {
            if (next == 0 || stepped) {
                if (next != 0) {
                    parts.push_back(parts_of_this);
                }
                steps.push_back(begins[next]);
                parts_of_this = 0;
                stepped = false;
            }
            ++parts_of_this;
            ++next;
        }
        stepped = stepped || (next != 0 && optimizes[requests.stacks[i]] != 0);
    }
    if (stepped) {
        parts.push_back(parts_of_this);
    }
    if (parts.empty() || steps.size() < 2) {
        return begins;
    }
    const auto middle = parts.begin() + static_cast<std::ptrdiff_t>(parts.size() / 2);
    std::nth_element(parts.begin(), middle, parts.end());
    return *middle >= 2 ? steps : begins;
}

}  // namespace fragtrace::analyzer
