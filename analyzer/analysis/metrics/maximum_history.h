// The greatest value before or since any event, of a value that is reported event by event. Both
// classes keep only the events that can matter. Not thread-safe.
#pragma once

#include "analyzer/model/event.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

// Keeps each entry that is greater than all later ones.
class MaximumSince {
  public:
    void add(EventIndex event, std::uint64_t value) {
        while (!entries_.empty() && entries_.back().second <= value) {
            entries_.pop_back();
        }
        entries_.emplace_back(event, value);
    }

    // The maximum of this event and all later ones; 0 if there are none.
    [[nodiscard]] std::uint64_t since(EventIndex event) const {
        const auto found =
            std::lower_bound(entries_.begin(), entries_.end(), std::pair{event, std::uint64_t{0}});
        return found == entries_.end() ? 0 : found->second;
    }

  private:
    std::vector<std::pair<EventIndex, std::uint64_t>> entries_;
};

// Keeps each entry that is greater than all earlier ones.
class MaximumBefore {
  public:
    void add(EventIndex event, std::uint64_t value) {
        if (entries_.empty() || value > entries_.back().second) {
            entries_.emplace_back(event, value);
        }
    }

    // The maximum of the events before this one; 0 if there are none.
    [[nodiscard]] std::uint64_t before(EventIndex event) const {
        const auto found =
            std::lower_bound(entries_.begin(), entries_.end(), std::pair{event, std::uint64_t{0}});
        return found == entries_.begin() ? 0 : (found - 1)->second;
    }

  private:
    std::vector<std::pair<EventIndex, std::uint64_t>> entries_;
};

// Peaks of one device's allocated and reserved memory.
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
