// How large a request the pool could serve if the live blocks of one line did not exist: the
// measure of whose absence matters most for a request that failed or needed a retry.
#pragma once

#include "analyzer/analysis/verdict/culprits.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// The line of a block that belongs to none: free ones, and those that are not asked about.
inline constexpr std::uint32_t kNoLine = ~std::uint32_t{0};

// What a request may use.
struct RoomWanted {
    WindowPlace place;               // where in the pool it may lie
    std::uint64_t window_bytes = 0;  // of a free block that serves it; kNoWindow: none does
    std::uint64_t driver_bytes = 0;  // of what the driver is asked for
};

struct Room {
    // The longest run of blocks that are free or of the line, where the request may lie.
    std::uint64_t longest_run_bytes = 0;
    // What the driver has left, and what the line's absence gives back to it. Segments and pages
    // that are wholly free without that do not count: they made no difference.
    std::uint64_t driver_bytes = 0;

    [[nodiscard]] bool serves(const RoomWanted& wanted) const {
        return longest_run_bytes >= wanted.window_bytes || driver_bytes >= wanted.driver_bytes;
    }

    [[nodiscard]] std::uint64_t bytes() const { return std::max(longest_run_bytes, driver_bytes); }
};

// Per line. `line` is indexed as HeapSnapshot::blocks, its values are below `lines` or kNoLine.
std::vector<Room> room_without(const HeapSnapshot& heap,
                               const std::vector<std::uint32_t>& line,
                               std::size_t lines,
                               const RoomWanted& wanted);

}  // namespace fragtrace::analyzer
