// The largest request that the pool could serve if the live blocks of one line did not exist. This
// ranks lines by how much they matter for a request that failed or needed a retry.
#pragma once

#include "analyzer/analysis/verdict/culprits.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// The line of free blocks, and of blocks that no line of interest allocated.
inline constexpr std::uint32_t kNoLine = ~std::uint32_t{0};

// The place and the sizes that a request needs.
struct RoomWanted {
    WindowPlace place;               // part of the pool that may serve it
    std::uint64_t window_bytes = 0;  // size of a free block that serves it; kNoWindow: none can
    std::uint64_t driver_bytes = 0;  // size that the driver would be asked for
};

struct Room {
    // The longest run of blocks that are free or belong to the line, where the request may use it.
    std::uint64_t longest_run_bytes = 0;
    // Memory free in the driver plus what the line's absence returns to it. Segments and pages that
    // are wholly free anyway do not count, as the line makes no difference to them.
    std::uint64_t driver_bytes = 0;

    [[nodiscard]] bool serves(const RoomWanted& wanted) const {
        return longest_run_bytes >= wanted.window_bytes || driver_bytes >= wanted.driver_bytes;
    }

    [[nodiscard]] std::uint64_t bytes() const { return std::max(longest_run_bytes, driver_bytes); }
};

// One entry per line. `line` gives each block's line and is indexed like HeapSnapshot::blocks. Its
// values are below `lines`, or kNoLine.
std::vector<Room> room_without(const HeapSnapshot& heap,
                               const std::vector<std::uint32_t>& line,
                               std::size_t lines,
                               const RoomWanted& wanted);

}  // namespace fragtrace::analyzer
