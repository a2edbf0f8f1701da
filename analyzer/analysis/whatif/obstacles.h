// Which rows the program could not use, and the event or module that says so.
#pragma once

#include "analyzer/analysis/whatif/whatif_row.h"
#include "analyzer/model/timeline.h"

#include <string>

namespace fragtrace::analyzer {

// What the trace shows that rules a row out.
struct Obstacles {
    EventIndex shared = kNoEvent;        // a pointer of this process was shared by IPC
    EventIndex graph = kNoEvent;         // a CUDA graph's pool was used, or its memory
    EventIndex private_pool = kNoEvent;  // a torch.cuda.MemPool was used
    EventIndex settings = kNoEvent;      // the program sets the allocator's settings itself
    std::string sleep_module;            // gives memory up while blocks live in it
    std::string registered_module;       // registers device memory with a network card
    std::string torch_version;
};

Obstacles find_obstacles(const Timeline& timeline, DeviceId device);
// Sets usable and usable_reason of rows of PyTorch's own pool and of caching off.
void judge_use(const Obstacles& obstacles, const std::string& recorded_config, WhatIfRow* row);

}  // namespace fragtrace::analyzer
