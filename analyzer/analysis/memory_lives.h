// Blocks and segments of one device, each with its life: the memory of a whole recorded run, from
// which a map of any moment can be drawn.
//
// Times are nanoseconds since the start of the trace.
#pragma once

#include "analyzer/model/timeline.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

namespace fragtrace::analyzer {

inline constexpr std::uint64_t kNeverNs = 0xffffffffffffffffu;  // an end that never came

// Columns of equal length, ascending start_ns (of equal times, in the order they happened).
struct BlockLives {
    std::vector<std::uint64_t> start_ns;
    std::vector<std::uint64_t> freed_ns;  // the program's free; kNeverNs = still held
    std::vector<std::uint64_t> end_ns;    // reusable from here on; > freed_ns while pending
    std::vector<std::uint64_t> address;
    std::vector<std::uint64_t> size_bytes;
    std::vector<std::uint64_t> requested_bytes;  // kUnknown64 = not known
    std::vector<std::uint32_t> stack;            // a number of the reader's own
    std::vector<std::uint16_t> stream;           // Timeline::streams has the handles

    [[nodiscard]] std::size_t size() const { return start_ns.size(); }
};

// Memory held from the driver: one cudaMalloc, or one map call of an expandable segment.
struct SegmentLife {
    std::uint64_t start_ns = 0;
    std::uint64_t end_ns = kNeverNs;
    std::uint64_t address = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t page_bytes = 0;  // expandable: what is returned at a time; 0 = only as a whole
    std::uint32_t pool = 0;        // index into MemoryLives::pools
    std::uint16_t stream = 0;
    bool small = false;  // the pool's class for small blocks
};

// A private pool keeps its segments, empty or not, up to the first of these times, gives them up
// until the second, keeps them up to the third and so on. The default pool never does.
struct PoolLife {
    std::uint32_t number = 0;               // Timeline::pools; 0 = the default pool
    std::vector<std::uint64_t> changes_ns;  // ascending
};

// The device's memory in other hands. Columns of equal length, ascending time; a value holds until
// the next, before the first it is 0.
struct OthersLife {
    std::vector<std::uint64_t> time_ns;
    std::vector<std::uint64_t> bytes;
};

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

    // Index into MemoryLives::blocks.
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

struct MemoryLives {
    BlockLives blocks;
    std::vector<SegmentLife> segments;
    std::vector<PoolLife> pools;  // the first is the default one
    OthersLife others;
    std::vector<std::uint64_t> emptied_ns;  // calls of empty_cache, of all devices
    BlockIndex index;
};

// What RecordedState has at any time is what the lives have. `stack_of` gives the numbers of
// BlockLives::stack.
MemoryLives memory_lives(const Timeline& timeline,
                         DeviceId device,
                         const std::function<std::uint32_t(OriginId)>& stack_of);

}  // namespace fragtrace::analyzer
