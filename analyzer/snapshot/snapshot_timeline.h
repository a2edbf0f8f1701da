// A snapshot as a Timeline: what was held when its history begins as a checkpoint, then the history
// as events of both layers. Everything else works on it as on a recorded trace.
//
// What a snapshot does not tell: releases of the driver that were refused (seen from what the
// allocator did next), which streams a free waited for, reservations of address space.
#pragma once

#include "analyzer/model/timeline.h"
#include "analyzer/snapshot/snapshot.h"

#include <string>

namespace fragtrace::analyzer {

// `torch_version`: the release whose rules are meant; empty = as the snapshot's keys tell.
Timeline make_timeline(Snapshot snapshot,
                       const std::string& path,
                       const std::string& torch_version = {});

}  // namespace fragtrace::analyzer
