// Finds rows that the program could not use, and the event or module that proves it.
#pragma once

#include "analyzer/analysis/whatif/whatif_row.h"
#include "analyzer/model/timeline.h"

#include <string>

namespace fragtrace::analyzer {

// Facts of the trace that rule rows out.
struct Obstacles {
    EventIndex shared = kNoEvent;        // this process shared a pointer by IPC
    EventIndex graph = kNoEvent;         // a CUDA graph's pool or memory was used
    EventIndex private_pool = kNoEvent;  // a torch.cuda.MemPool was used
    EventIndex settings = kNoEvent;      // the program sets the allocator's settings itself
    std::string sleep_module;  // path of a library that releases memory while blocks are live in it
    // Path of a library that registers device memory with a network card.
    std::string registered_module;
    std::string torch_version;  // the release whose rules are replayed
};

Obstacles find_obstacles(const Timeline& timeline, DeviceId device);
// Sets usable and usable_reason of rows of PyTorch's own pool and of rows with caching off.
void judge_use(const Obstacles& obstacles, const std::string& recorded_config, WhatIfRow* row);

}  // namespace fragtrace::analyzer
