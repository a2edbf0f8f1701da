// What a device held when its history begins: the events undone, from the last to the first, from
// what it holds at the end.
//
// A history tells requests and addresses, not how large the blocks were: what a block took is what
// its request rounds to, and in the large pool the unsplit remainder behind it as well. A gap of at
// most 1 MiB behind a large block is such a remainder: free large blocks are always larger. Where a
// free block followed, its front is known only from an alloc that came to lie there.
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

// By address.
using HeldSegments = std::map<std::uint64_t, HeldSegment>;
using HeldBlocks = std::map<std::uint64_t, HeldBlock>;

// What is mapped in pages of the small pool: requests of the large one map whole large pages.
constexpr bool maps_small_pages(std::uint64_t size_bytes, std::uint64_t large_page_bytes) {
    return size_bytes % large_page_bytes != 0;
}

struct SnapshotStart {
    HeldSegments segments;
    HeldBlocks blocks;
    // Per entry of the device's history: what an alloc took, in units of 512 bytes.
    std::vector<std::uint32_t> block_units;
    // Entries that do not fit what is known of the end, and the last of them in words.
    std::uint64_t contradictions = 0;
    std::string last_contradiction;
    // The history has no free_requested (no free_completed) at all: left out by who recorded it.
    bool without_requests = false;
    bool without_completions = false;
};

// Entries get what the end tells and they do not: the pool of their segment, the stack of their
// block where stacks were kept of live blocks alone, and what annotations said of their block
// later.
SnapshotStart undo_history(Snapshot* snapshot,
                           std::uint32_t device,
                           const PytorchConfig& config,
                           const PytorchRules& rules);

}  // namespace fragtrace::analyzer
