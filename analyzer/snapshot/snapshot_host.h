// The pinned host memory that a snapshot tells of, as events: what PyTorch's host allocator took
// from the driver and gave back. Its blocks within that are left out, as in a recorded trace.
#pragma once

#include <fragtrace/format.h>

#include "analyzer/snapshot/snapshot.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

struct SnapshotHost {
    std::vector<EventRecord> start;  // what was held when the history begins; without times
    // Likewise; times in microseconds since 1970 stand in time_ns.
    std::vector<EventRecord> events;
};

SnapshotHost host_events(const Snapshot& snapshot);

}  // namespace fragtrace::analyzer
