// Blocks and segments of one device with their lives, for the page.
#pragma once

#include "analyzer/replay/script.h"
#include "analyzer/report/page_stacks.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace fragtrace::analyzer {

// Which block an event allocated: events come in order, so their blocks are found by bisection.
class BlockIndex {
  public:
    // Later than all before.
    void add(EventIndex born) { born_.push_back(born); }

    // Index into PageDevice::blocks.
    [[nodiscard]] std::optional<std::uint32_t> find(EventIndex born) const {
        const auto found = std::lower_bound(born_.begin(), born_.end(), born);
        if (found == born_.end() || *found != born) return std::nullopt;
        return static_cast<std::uint32_t>(found - born_.begin());
    }

  private:
    std::vector<EventIndex> born_;
};

// Fills blocks, segments, streams and the markers that the events themselves give.
BlockIndex add_memory(const Timeline& timeline,
                      const ReplayScript& script,
                      PageStacks* stacks,
                      PageDevice* page);

}  // namespace fragtrace::analyzer
