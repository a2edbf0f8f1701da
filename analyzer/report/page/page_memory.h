// Blocks and segments of one device with their lives, for the page.
#pragma once

#include "analyzer/replay/script.h"
#include "analyzer/report/page/page_stacks.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace fragtrace::analyzer {

// Which block an event allocated: events come in order, so their blocks are found by bisection.
class BlockIndex {
  public:
    // Rows come ascending; of one event that has several (its memory was unmapped and mapped again)
    // the last counts.
    void add(EventIndex born, std::uint32_t row) {
        if (born_.empty() || born > born_.back().first) {
            born_.emplace_back(born, row);
        } else {
            again_[born] = row;
        }
    }

    // Index into PageDevice::blocks.
    [[nodiscard]] std::optional<std::uint32_t> find(EventIndex born) const {
        if (const auto again = again_.find(born); again != again_.end()) return again->second;
        const auto found = std::lower_bound(
            born_.begin(), born_.end(), born, [](const auto& entry, EventIndex value) {
                return entry.first < value;
            });
        if (found == born_.end() || found->first != born) return std::nullopt;
        return found->second;
    }

  private:
    std::vector<std::pair<EventIndex, std::uint32_t>> born_;
    std::unordered_map<EventIndex, std::uint32_t> again_;
};

// Fills blocks, segments, pools, streams, what others use, and the markers that the events
// themselves give: what RecordedState has at any time is what the page has.
BlockIndex add_memory(const Timeline& timeline,
                      const ReplayScript& script,
                      PageStacks* stacks,
                      PageDevice* page);

}  // namespace fragtrace::analyzer
