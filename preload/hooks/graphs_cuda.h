// Memory of graphs, as several hooks see it: captured allocations, nodes, launches.
#pragma once

#include "hooks/hooks.h"

namespace fragtrace::preload {

// Some graph of this process has memory of its own: from now on launches look at it.
void note_graph_memory();

// Records what the graphs of the device hold, if it differs from what was recorded last.
// kDeviceUnknown means the current device.
void record_graph_memory(uint16_t device, Layer layer, const void* caller);

// The graph that the stream is being captured into, or nullptr.
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
