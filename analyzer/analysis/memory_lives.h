// Blocks and segments of one device, each with its lifetime. A memory map of any moment of the run
// can be drawn from them.
//
// Times are nanoseconds since the start of the trace, or numbers of events (LifeClock).
#pragma once

#include "analyzer/model/bytes_over_time.h"
#include "analyzer/model/timeline.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

namespace fragtrace::analyzer {

// The end did not happen within the trace.
inline constexpr std::uint64_t kNeverNs = 0xffffffffffffffffu;

// The unit of all times of the lives. Several events can have the same time; their numbers differ.
enum class LifeClock : std::uint8_t { kNanoseconds, kEvents };

// Columns of equal length, with ascending start_ns. Entries with equal times keep the order in
// which they happened.
struct BlockLives {
    std::vector<std::uint64_t> start_ns;
    std::vector<std::uint64_t> freed_ns;  // when the program freed it; kNeverNs = never
    // When it became reusable; > freed_ns if the free was pending.
    std::vector<std::uint64_t> end_ns;
    std::vector<std::uint64_t> address;
    std::vector<std::uint64_t> size_bytes;
    std::vector<std::uint64_t> requested_bytes;  // kUnknown64 = not known
    std::vector<std::uint32_t> stack;            // a number that the caller's `stack_of` chose
    std::vector<std::uint16_t> stream;  // Timeline::streams has the handles; kNoStream = not known

    [[nodiscard]] std::size_t size() const { return start_ns.size(); }
};

// Memory reserved from the driver: one cudaMalloc, or one map call of an expandable segment.
struct SegmentLife {
    std::uint64_t start_ns = 0;
    std::uint64_t end_ns = kNeverNs;
    std::uint64_t address = 0;
    std::uint64_t size_bytes = 0;
    // Expandable: smallest part that can be returned; 0 = only the whole segment can be returned.
    std::uint64_t page_bytes = 0;
    std::uint32_t pool = 0;  // index into MemoryLives::pools
    std::uint16_t stream = kNoStream;
    bool small = false;  // belongs to the pool's class for small blocks
};

// When a pool may release its free segments. A private pool keeps them up to the first of these
// times, releases them until the second, keeps them until the third, and so on. The default pool
// never keeps them.
struct PoolLife {
    std::uint32_t number = 0;               // Timeline::pools; 0 = the default pool
    std::vector<std::uint64_t> changes_ns;  // ascending
};

// Finds the block that an event allocated, by binary search.
class BirthIndex {
  public:
    // Call it with ascending events. If one event has several rows (its memory was unmapped and
    // mapped again), the last row counts.
    void add(EventIndex born, std::uint32_t row) {
        if (born_.empty() || born > born_.back().first) {
            born_.emplace_back(born, row);
        } else {
            again_[born] = row;
        }
    }

    // The index into MemoryLives::blocks.
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
    std::vector<PoolLife> pools;            // the first is the default pool
    BytesOverTime others;                   // the device's memory outside the pool
    std::vector<std::uint64_t> emptied_ns;  // calls of empty_cache on any device
    BirthIndex index;
};

// At any time the lives contain the same memory as RecordedState. `stack_of` chooses the numbers in
// BlockLives::stack.
MemoryLives memory_lives(const Timeline& timeline,
                         DeviceId device,
                         const std::function<std::uint32_t(OriginId)>& stack_of,
                         LifeClock clock = LifeClock::kNanoseconds);

}  // namespace fragtrace::analyzer
