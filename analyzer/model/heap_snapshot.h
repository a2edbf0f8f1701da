// The address map of one device at one instant: every segment and every block in it.
//
// The common language of recorded state, simulated pools, verdicts, culprits and the page.
#pragma once

#include "analyzer/model/event.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

enum class BlockState : std::uint8_t {
    kLive,     // handed out
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
};

// Memory obtained from the driver in one piece (a cudaMalloc), or one maximal mapped range of an
// expandable segment. Blocks cover it without gaps, ascending.
struct HeapSegment {
    DeviceAddress address = 0;
    std::uint64_t size_bytes = 0;
    std::uint32_t first_block = 0;  // index into HeapSnapshot::blocks
    std::uint32_t block_count = 0;
    std::uint32_t private_pool = 0;  // 0 = the default pool
    StreamId stream = kNoStream;
    SizeClass size_class = SizeClass::kNone;
    bool expandable = false;
    bool may_release = true;       // false: a live private pool keeps it whatever happens
    std::uint64_t page_bytes = 0;  // expandable: what is mapped and unmapped at a time
    // The event that obtained it, or the reservation that it lies in; of a simulated pool the
    // number of the segment. Ascending in the order in which they were obtained.
    EventIndex obtained_by = kNoEvent;
    DeviceAddress reservation = 0;  // expandable
    std::uint64_t reservation_bytes = 0;
};

struct HeapSnapshot {
    std::vector<HeapSegment> segments;  // ascending address
    std::vector<HeapBlock> blocks;
    std::uint64_t device_free_bytes = 0;  // what the driver could still give
};

}  // namespace fragtrace::analyzer
