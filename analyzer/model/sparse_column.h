// A column of a timeline that is 0 for nearly all events. Only the other values are stored.
//
// Once filled, it can be shared between threads; a cursor belongs to one reader.
#pragma once

#include "analyzer/model/event.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

class SparseColumn {
  public:
    // Events must be added in ascending order. A value of 0 is not stored.
    void add(EventIndex event, std::uint32_t value) {
        if (value != 0) {
            entries_.emplace_back(event, value);
        }
    }

    [[nodiscard]] std::uint32_t at(EventIndex event) const {
        std::size_t cursor = 0;
        if (!entries_.empty()) {
            cursor = static_cast<std::size_t>(
                std::lower_bound(entries_.begin(), entries_.end(), std::pair{event, 0u}) -
                entries_.begin());
        }
        return at(event, &cursor);
    }

    // For readers that ask in ascending order: `cursor` starts at 0 and advances with each call.
    [[nodiscard]] std::uint32_t at(EventIndex event, std::size_t* cursor) const {
        while (*cursor < entries_.size() && entries_[*cursor].first < event) {
            ++*cursor;
        }
        return *cursor < entries_.size() && entries_[*cursor].first == event
                   ? entries_[*cursor].second
                   : 0;
    }

    [[nodiscard]] bool empty() const { return entries_.empty(); }

    // (event, value), ascending.
    [[nodiscard]] const std::vector<std::pair<EventIndex, std::uint32_t>>& entries() const {
        return entries_;
    }

  private:
    std::vector<std::pair<EventIndex, std::uint32_t>> entries_;
};

}  // namespace fragtrace::analyzer
