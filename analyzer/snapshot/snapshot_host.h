// The pinned host memory of a snapshot as events: driver allocations and releases by PyTorch's host
// allocator. Blocks inside it are left out, as in a recorded trace.
#pragma once

#include <fragtrace/format.h>

#include "analyzer/snapshot/snapshot.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

struct SnapshotHost {
    std::vector<EventRecord> start;  // live when the history begins; no times
    // The history. The field time_ns contains microseconds since 1970.
    std::vector<EventRecord> events;
};

SnapshotHost host_events(const Snapshot& snapshot);

}  // namespace fragtrace::analyzer
