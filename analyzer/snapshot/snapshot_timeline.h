// A snapshot as a Timeline. A checkpoint lists the memory that is live when the history begins.
// Then the history follows as events of both layers. All analyses treat it like a recorded trace.
//
// A snapshot lacks some facts: requests that the driver refused (derived from the allocator's next
// actions), the streams that a free waited for, and reservations of address space.
#pragma once

#include "analyzer/model/timeline.h"
#include "analyzer/snapshot/snapshot.h"

#include <string>

namespace fragtrace::analyzer {

// `torch_version` is the PyTorch release whose rules apply; empty = derived from the snapshot's
// keys.
Timeline make_timeline(Snapshot snapshot,
                       const std::string& path,
                       const std::string& torch_version = {});

}  // namespace fragtrace::analyzer
