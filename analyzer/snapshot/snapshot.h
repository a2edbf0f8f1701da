// A snapshot of PyTorch's caching allocator as torch.cuda.memory._snapshot() gives it: what every
// device holds at the end, and the history that led there as far as it was kept.
//
// Plain columns, everything interned; read from a pickle by snapshot_reader.h, made a Timeline by
// snapshot_timeline.h. Keys that a release does not write yet have the values given here.
#pragma once

#include "analyzer/model/timeline.h"

#include <cstdint>
#include <map>
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
    kAnnotate,  // the program names a live block
    kOther,     // what later releases add
};

// One line of a device's history.
struct SnapshotEntry {
    std::uint64_t address = 0;  // kOutOfMemory: the bytes free on the device
    std::uint64_t size_bytes = 0;
    std::uint64_t time_us = 0;  // since 1970; 0 = not known
    std::uint64_t stream = 0;
    std::uint32_t stack = 0;  // node of Snapshot::nodes
    std::uint32_t pool = 0;   // index into Snapshot::pools
    std::uint32_t label = 0;  // index into Snapshot::labels
    SnapshotAction action = SnapshotAction::kOther;
};

static_assert(sizeof(SnapshotEntry) == 48);

struct SnapshotBlock {
    std::uint64_t address = 0;  // 0 = where the one before ends
    std::uint64_t size_bytes = 0;
    std::uint64_t requested_bytes = 0;
    std::uint32_t stack = 0;
    bool live = false;     // handed out, or waiting for other streams
    bool pending = false;  // freed, and waiting
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

// A range of the program's own (record_function).
struct SnapshotAnnotation {
    std::uint64_t time_us = 0;
    std::string name;
    std::uint32_t device = 0;
    bool begin = false;
};

struct Snapshot {
    std::vector<SnapshotEntry> entries;
    // Per device its range of entries: first and count.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> histories;
    // Of pinned host memory, likewise.
    std::pair<std::uint32_t, std::uint32_t> host_history;
    std::vector<SnapshotSegment> segments;
    std::vector<SnapshotSegment> host_segments;
    std::vector<SnapshotBlock> blocks;
    std::vector<SnapshotAnnotation> annotations;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> pools = {{0, 0}};  // ids
    std::vector<std::string> labels = {""};  // what the program said of blocks; [0] is none

    // Stacks, as in a Timeline.
    std::vector<StackNode> nodes;
    std::vector<PythonCode> codes;

    std::string settings;  // as in PYTORCH_CUDA_ALLOC_CONF; concluded where they are not known
    bool settings_known = false;
    std::string oldest_release;  // that writes what is there, such as "2.6"
    bool times_known = true;
    std::uint64_t internal_entries = 0;  // requests of the allocator's own
    // What no known release writes, by name: entries, and keys of dicts; left out.
    std::map<std::string, std::uint64_t> unknown_actions;
    std::map<std::string, std::uint64_t> unknown_keys;
};

}  // namespace fragtrace::analyzer
