// A snapshot of PyTorch's caching allocator, as torch.cuda.memory._snapshot() returns it: the state
// of every device at the end, and the recorded part of the history before it.
//
// Plain columns, everything interned. snapshot_reader.h reads it from a pickle, snapshot_timeline.h
// turns it into a Timeline. Keys that an older release does not write have the default values
// below.
#pragma once

#include "analyzer/model/chunked_vector.h"
#include "analyzer/model/timeline.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

enum class SnapshotAction : std::uint8_t {
    kAlloc,
    kFreeRequested,
    kFreeCompleted,
    kSegmentAlloc,
    kSegmentFree,
    kSegmentMap,
    kSegmentUnmap,
    kOutOfMemory,
    kSnapshot,
    kAnnotate,  // the program labels a live block
    kOther,     // actions of later releases
};

// One entry of a device's history.
struct SnapshotEntry {
    std::uint64_t address = 0;  // kOutOfMemory: the bytes free on the device
    std::uint64_t size_bytes = 0;
    std::uint64_t time_us = 0;  // since 1970; 0 = not known
    std::uint64_t stream = 0;
    std::uint32_t stack = 0;  // index into Snapshot::nodes
    std::uint32_t pool = 0;   // index into Snapshot::pools
    std::uint32_t label = 0;  // index into Snapshot::labels
    SnapshotAction action = SnapshotAction::kOther;
};

static_assert(sizeof(SnapshotEntry) == 48);

struct SnapshotBlock {
    std::uint64_t address = 0;  // 0 = follows the previous block
    std::uint64_t size_bytes = 0;
    std::uint64_t requested_bytes = 0;
    std::uint32_t stack = 0;
    bool live = false;     // allocated, or pending
    bool pending = false;  // freed, waits for other streams
};

struct SnapshotSegment {
    std::uint64_t address = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t stream = 0;
    std::uint32_t first_block = 0;  // in Snapshot::blocks
    std::uint32_t block_count = 0;
    std::uint32_t stack = 0;
    std::uint32_t pool = 0;
    std::uint32_t device = 0;
    bool small = false;
    bool expandable = false;
};

// A range that the program marked (record_function).
struct SnapshotAnnotation {
    std::uint64_t time_us = 0;
    std::string name;
    std::uint32_t device = 0;
    bool begin = false;
};

struct Snapshot {
    std::vector<SnapshotEntry, HugePageAllocator<SnapshotEntry>> entries;
    // The range of entries of each device: first and count.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> histories;
    // The range of entries of pinned host memory: first and count.
    std::pair<std::uint32_t, std::uint32_t> host_history;
    std::vector<SnapshotSegment> segments;
    std::vector<SnapshotSegment> host_segments;
    std::vector<SnapshotBlock> blocks;
    std::vector<SnapshotAnnotation> annotations;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> pools = {{0, 0}};  // ids
    std::vector<std::string> labels = {""};  // the program's labels of blocks; [0] = no label

    // Stacks in the form of a Timeline.
    std::vector<StackNode> nodes;
    std::vector<PythonCode> codes;

    std::string settings;  // as in PYTORCH_CUDA_ALLOC_CONF; derived if not known
    // Devices on which the program used no pool, by number. Only `fraganalyze export` writes them:
    // each segment is an allocation of the program, and blocks say nothing more.
    std::set<std::uint32_t> without_pool;
    bool settings_known = false;
    std::string oldest_release;  // oldest release with these keys, such as "2.6"
    std::string release;         // as `fraganalyze export` writes it; empty = not named
    bool times_known = true;
    std::uint64_t internal_entries = 0;  // requests by the allocator itself
    // Entries and dict keys that no known release writes, counted by name. They are left out.
    std::map<std::string, std::uint64_t> unknown_actions;
    std::map<std::string, std::uint64_t> unknown_keys;
};

// Whether the rules of this release are taken only because it is the oldest with the snapshot's
// keys.
inline bool is_oldest_release(const Snapshot& snapshot, const std::string& release) {
    return snapshot.release.empty() && release == snapshot.oldest_release;
}

// Whether the snapshot shows PyTorch's pool on any device.
inline bool has_pool(const Snapshot& snapshot) {
    return snapshot.without_pool.empty() ||
           snapshot.without_pool.size() < snapshot.histories.size();
}

}  // namespace fragtrace::analyzer
