// A column of a timeline that is 0 for nearly all events: only what differs is kept.
//
// Safe to share between threads once filled; a cursor belongs to one reader.
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
    // Ascending by event; a value of 0 is not kept.
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

    // For readers that ask in ascending order: `cursor` begins at 0 and is moved on.
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
