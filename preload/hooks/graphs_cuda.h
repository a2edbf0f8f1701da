// Memory of graphs, for several hooks: captured allocations, nodes, launches.
#pragma once

#include "hooks/hook_call.h"

namespace fragtrace::preload {

// Notes that a graph of this process has memory nodes: from now on, launches check the graphs'
// memory.
void note_graph_memory();

// Records the memory of the device's graphs, if it changed since it was last recorded.
// kDeviceUnknown means the current device.
void record_graph_memory(uint16_t device, Layer layer, const void* caller);

// Returns the graph that the stream is being captured into, or nullptr.
template <Hook kQuestion>
const void* capturing_graph(void* stream, const void* caller) {
    constexpr int kActive = 1;  // CU_STREAM_CAPTURE_STATUS_ACTIVE
    int status = 0;
    CUgraph graph = nullptr;
    auto* ask = real<kQuestion>(caller);
    return ask != nullptr && ask(stream, &status, nullptr, &graph, nullptr, nullptr) == kSuccess &&
                   status == kActive
               ? graph
               : nullptr;
}

}  // namespace fragtrace::preload
