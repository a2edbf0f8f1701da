// Reconstructs the live memory of a device at the start of its history. It undoes the events, from
// the last to the first, starting from the state at the end.
//
// A history has requests and addresses, but not the sizes of blocks. A block's size is its rounded
// request; in the large pool it includes an unsplit remainder. A gap of at most 1 MiB after a large
// block is such a remainder, because free large blocks are always larger. If a free block followed
// instead, only a later allocation at its address shows where it began.
#pragma once

#include "analyzer/pools/pytorch/pytorch_config.h"
#include "analyzer/snapshot/snapshot.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct HeldSegment {
    std::uint64_t size_bytes = 0;
    std::uint64_t stream = 0;
    std::uint32_t pool = 0;  // index into Snapshot::pools
    std::uint32_t stack = 0;
    bool small = false;
    bool expandable = false;
};

struct HeldBlock {
    std::uint64_t size_bytes = 0;
    std::uint64_t requested_bytes = 0;
    std::uint64_t stream = 0;
    std::uint32_t stack = 0;
    std::uint32_t label = 0;  // index into Snapshot::labels
    bool pending = false;
};

// Keys are addresses.
using HeldSegments = std::map<std::uint64_t, HeldSegment>;
using HeldBlocks = std::map<std::uint64_t, HeldBlock>;

// Whether a mapping uses pages of the small pool. Requests of the large pool map whole large pages.
constexpr bool maps_small_pages(std::uint64_t size_bytes, std::uint64_t large_page_bytes) {
    return size_bytes % large_page_bytes != 0;
}

struct SnapshotStart {
    HeldSegments segments;
    HeldBlocks blocks;
    // Per entry of the device's history: the block size of an alloc, in units of 512 bytes.
    std::vector<std::uint32_t> block_units;
    // The number of entries that contradict the state at the end, and a description of the last
    // one.
    std::uint64_t contradictions = 0;
    std::string last_contradiction;
    // The history has no free_requested (no free_completed) entries at all, because they were not
    // recorded.
    bool without_requests = false;
    bool without_completions = false;
};

// Also completes the entries with facts that only the end shows: the pool of their segment, later
// annotations of their block, and, if stacks were kept for live blocks only, the stack of their
// block.
SnapshotStart undo_history(Snapshot* snapshot,
                           std::uint32_t device,
                           const PytorchConfig& config,
                           const PytorchRules& rules);

}  // namespace fragtrace::analyzer
