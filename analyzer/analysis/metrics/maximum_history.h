// The greatest value before or since any event, of a value that is told event by event. Both keep
// only the events that matter. Not thread-safe.
#pragma once

#include "analyzer/model/event.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

// The entries that nothing later has reached.
class MaximumSince {
  public:
    void add(EventIndex event, std::uint64_t value) {
        while (!entries_.empty() && entries_.back().second <= value) {
            entries_.pop_back();
        }
        entries_.emplace_back(event, value);
    }

    // Of this event and those after it; 0 without any.
    [[nodiscard]] std::uint64_t since(EventIndex event) const {
        const auto found =
            std::lower_bound(entries_.begin(), entries_.end(), std::pair{event, std::uint64_t{0}});
        return found == entries_.end() ? 0 : found->second;
    }

  private:
    std::vector<std::pair<EventIndex, std::uint64_t>> entries_;
};

// The entries that nothing earlier has reached.
class MaximumBefore {
  public:
    void add(EventIndex event, std::uint64_t value) {
        if (entries_.empty() || value > entries_.back().second) {
            entries_.emplace_back(event, value);
        }
    }

    // Of the events before this one; 0 without any.
    [[nodiscard]] std::uint64_t before(EventIndex event) const {
        const auto found =
            std::lower_bound(entries_.begin(), entries_.end(), std::pair{event, std::uint64_t{0}});
        return found == entries_.begin() ? 0 : (found - 1)->second;
    }

  private:
    std::vector<std::pair<EventIndex, std::uint64_t>> entries_;
};

// Of one device's memory.
struct PeakHistory {
    MaximumBefore allocated_before;
    MaximumBefore reserved_before;
    MaximumSince allocated_since;
    MaximumSince reserved_since;

    void add(EventIndex event, std::uint64_t allocated, std::uint64_t reserved) {
        allocated_before.add(event, allocated);
        reserved_before.add(event, reserved);
        allocated_since.add(event, allocated);
        reserved_since.add(event, reserved);
    }
};

}  // namespace fragtrace::analyzer
