// The address map of one device at one instant: every segment and every block in it.
//
// Recorded state, simulated pools, verdicts, culprits and the page all use this form.
#pragma once

#include "analyzer/model/event.h"

#include <cstdint>
#include <map>
#include <vector>

namespace fragtrace::analyzer {

enum class BlockState : std::uint8_t {
    kLive,     // allocated
    kPending,  // freed by the program, waits for events of other streams
    kFree,     // cached in the pool
};

// Which of PyTorch's two size classes a segment serves; kNone for pools without classes.
enum class SizeClass : std::uint8_t { kNone, kSmall, kLarge };

struct HeapBlock {
    DeviceAddress address = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t requested_bytes = 0;   // live and pending blocks; kUnknown64 = not known
    EventIndex allocated_by = kNoEvent;  // the kBlockAlloc of a live or pending block
    StreamId stream = kNoStream;
    BlockState state = BlockState::kFree;

    // Live or pending.
    [[nodiscard]] bool in_use() const { return state != BlockState::kFree; }
};

// Memory that one driver call returned (a cudaMalloc), or one maximal mapped range of an expandable
// segment. Blocks cover it without gaps, in ascending order.
struct HeapSegment {
    DeviceAddress address = 0;
    std::uint64_t size_bytes = 0;
    std::uint32_t first_block = 0;  // index into HeapSnapshot::blocks
    std::uint32_t block_count = 0;
    std::uint32_t private_pool = 0;  // 0 = the default pool
    StreamId stream = kNoStream;
    SizeClass size_class = SizeClass::kNone;
    bool expandable = false;
    bool may_release = true;       // false: a private pool in use keeps the segment
    std::uint64_t page_bytes = 0;  // expandable: smallest unit that is mapped or unmapped
    // The event that allocated the segment, or the reservation that contains it. In a simulated
    // pool: the segment's number. Ascending in the order of allocation.
    EventIndex obtained_by = kNoEvent;
    DeviceAddress reservation = 0;  // expandable segments only
    std::uint64_t reservation_bytes = 0;
};

struct HeapSnapshot {
    std::vector<HeapSegment> segments;  // ascending address
    std::vector<HeapBlock> blocks;
    // Replays: bytes of segments whose memory the program unmapped for now (sleep modes), by
    // private pool. The segments count as if they had memory, as in PyTorch.
    std::map<std::uint32_t, std::uint64_t> unmapped_bytes;
    std::uint64_t device_free_bytes = 0;  // what the driver could still allocate
};

}  // namespace fragtrace::analyzer
