// Counters of what the recorder's tables had no room for; facts of the trace (trace_facts.cpp).
#pragma once

#include "system/sys.h"

namespace fragtrace::preload {

// Events that were lost with their entries: completions of frees that wait for streams, streams
// of a block beyond the supported number, heaps and regions of NVTX. Fact "lost.completions".
inline uint64_t g_events_without_room;

// Contexts, pools, allocators, names, labels and new segments that could not be remembered: what
// belongs to them is recorded without its device, pool, stream, name or label. Fact
// "tables.without_room".
inline uint64_t g_entries_without_room;

}  // namespace fragtrace::preload
