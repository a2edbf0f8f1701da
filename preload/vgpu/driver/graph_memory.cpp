// Memory allocated by graphs. A node's address is fixed when the node is created. Physical memory
// is reserved when the graph is uploaded or launched, once per device: the reserve grows to the
// highest simultaneous need and shrinks only by a trim. An allocation can reuse what an earlier
// node of its graph freed. The real driver's placement was not measured.
#include "driver/capture.h"

namespace fragtrace::vgpu {

struct GraphMemory {
    uint64_t start;
    uint64_t size;
    uint64_t requested;
    int device;
    int holders;        // nodes and steps that refer to it
    bool live;          // allocated by a launch and not freed yet
    uint64_t graph_id;  // id of the graph that allocates it
    uint64_t freed_in;  // id of the graph with a node that frees it, or 0
};

namespace {

struct Range {
    uint64_t start;
    uint64_t size;
    GraphMemory* memory;
};

SortedArray<Range> g_ranges;

GraphMemory* memory_at(uint64_t address) {
    Range* range = g_ranges.find_start(address);
    return range != nullptr ? range->memory : nullptr;
}

void drop_if_unused(GraphMemory* memory) {
    if (memory->holders > 0 || memory->live) return;
    g_ranges.erase(g_ranges.find_start(memory->start));
    free(memory);
}

void release(GraphMemory* memory) {
    --memory->holders;
    drop_if_unused(memory);
}

void set_live(GraphMemory* memory, bool live) {
    Device& device = g_devices[memory->device];
    memory->live = live;
    device.graph_used += live ? memory->size : -memory->size;
    if (device.graph_used > device.graph_used_high) device.graph_used_high = device.graph_used;
}

GraphMemory* new_memory(const Graph& graph, int device, uint64_t bytes) {
    const uint64_t unit = bytes > kSmallLimitBytes ? kPageBytes : kUnitBytes;
    const uint64_t size = round_up(bytes, unit);
    const uint64_t start =
        g_ranges.first_fit(kGraphBase, kGraphBase + kGraphRegionBytes, size, unit);
    GraphMemory* memory = static_cast<GraphMemory*>(calloc(1, sizeof(GraphMemory)));
    if (start == 0 || memory == nullptr || g_ranges.insert({start, size, memory}) == nullptr) {
        free(memory);
        return nullptr;
    }
    *memory = {start, size, bytes, device, 1, false, graph.id, 0};
    return memory;
}

CUresult check_free(const Graph* graph, CUdeviceptr address) {
    const GraphMemory* memory = memory_at(address);
    if (graph == nullptr || memory == nullptr || memory->freed_in == graph->id) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    // CUDA allows either the allocating graph or other graphs to free this memory, not both.
    const bool mixed = memory->freed_in != 0 &&
                       (memory->freed_in == memory->graph_id || memory->graph_id == graph->id);
    return mixed ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

void attach_free(GraphNode* node, GraphMemory* memory) {
    node->memory = memory;
    node->graph->has_memory_nodes = true;
    ++memory->holders;
    memory->freed_in = node->graph->id;
}

bool grow_reserve(Device& device, uint64_t needed) {
    const uint64_t wanted = round_up(needed, kPageBytes);
    if (wanted <= device.graph_reserved) return true;
    if (!take_bytes(device, wanted - device.graph_reserved)) return false;
    device.graph_reserved = wanted;
    if (wanted > device.graph_reserved_high) device.graph_reserved_high = wanted;
    return true;
}

}  // namespace

CUresult add_allocation_node(CUgraphNode* out,
                             CUgraph graph,
                             const CUgraphNode* dependencies,
                             size_t count,
                             CUDA_MEM_ALLOC_NODE_PARAMS_v2* parameters) {
    if (parameters == nullptr || parameters->bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
    const CUmemPoolProps& pool = parameters->poolProps;
    if (pool.allocType != CU_MEM_ALLOCATION_TYPE_PINNED || pool.handleTypes != 0 ||
        pool.location.type != CU_MEM_LOCATION_TYPE_DEVICE || !valid_device(pool.location.id) ||
        parameters->accessDescCount > size_t(device_count()) ||
        (parameters->accessDescs == nullptr && parameters->accessDescCount > 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (parameters->bytesize > kMaxCardBytes) return CUDA_ERROR_OUT_OF_MEMORY;
    FT_TRY(add_node(out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_MEM_ALLOC));
    GraphNode* node = as<GraphNode>(*out);
    node->memory = new_memory(*node->graph, pool.location.id, parameters->bytesize);
    if (node->memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    node->graph->has_memory_nodes = true;
    parameters->dptr = node->memory->start;
    return CUDA_SUCCESS;
}

CUresult add_free_node(CUgraphNode* out,
                       CUgraph graph,
                       const CUgraphNode* dependencies,
                       size_t count,
                       CUdeviceptr address) {
    FT_TRY(check_free(as<Graph>(graph), address));
    FT_TRY(add_node(out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_MEM_FREE));
    attach_free(as<GraphNode>(*out), memory_at(address));
    return CUDA_SUCCESS;
}

CUresult capture_allocation(CUdeviceptr* address, size_t bytes, const Pool& pool, CUstream stream) {
    if (pool.device < 0) return CUDA_ERROR_NOT_SUPPORTED;
    if (bytes > kMaxCardBytes) return CUDA_ERROR_OUT_OF_MEMORY;
    GraphNode* node = capture_node(stream, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    if (node == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    node->memory = new_memory(*node->graph, pool.device, bytes);
    if (node->memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    node->graph->has_memory_nodes = true;
    *address = node->memory->start;
    return CUDA_SUCCESS;
}

// A capture can only free memory that a graph allocated.
CUresult capture_free(CUdeviceptr address, CUstream stream) {
    FT_TRY(check_free(as<Stream>(stream)->capture.graph, address));
    GraphNode* node = capture_node(stream, CU_GRAPH_NODE_TYPE_MEM_FREE);
    if (node == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    attach_free(node, memory_at(address));
    return CUDA_SUCCESS;
}

void drop_memory(GraphNode* node) {
    if (node->memory == nullptr) return;
    release(node->memory);
    node->memory = nullptr;
}

CUresult take_steps(Graph* graph, MemorySteps* steps) {
    *steps = MemorySteps{};
    if (!graph->has_memory_nodes) return CUDA_SUCCESS;
    if (graph->instantiated) return CUDA_ERROR_NOT_SUPPORTED;
    steps->steps = static_cast<MemoryStep*>(calloc(size_t(graph->count) + 1, sizeof(MemoryStep)));
    if (steps->steps == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    // Nodes are created after their dependencies, so the order of the list is a valid order of
    // execution.
    for (GraphNode* node = graph->first; node != nullptr; node = node->next) {
        if (node->memory == nullptr) continue;
        const bool allocates = node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
        steps->steps[steps->count++] = {node->memory, allocates};
        ++node->memory->holders;
    }
    steps->graph = graph;
    steps->graph_id = graph->id;
    graph->instantiated = true;
    return CUDA_SUCCESS;
}

void drop_steps(MemorySteps* steps) {
    for (int i = 0; i < steps->count; ++i)
        release(steps->steps[i].memory);
    free(steps->steps);
    Graph* graph = as<Graph>(steps->graph);
    if (graph != nullptr && graph->id == steps->graph_id) graph->instantiated = false;
    *steps = MemorySteps{};
}

// Reserves memory for the steps and executes them if `run`. After a failure the same memory is live
// as before, but the reserve of a device may have grown.
CUresult back_steps(const MemorySteps& steps, bool auto_free, bool run) {
    if (steps.count == 0) return CUDA_SUCCESS;
    uint64_t now[kMaxDevices];
    uint64_t peak[kMaxDevices];
    for (int i = 0; i < kMaxDevices; ++i)
        now[i] = peak[i] = g_devices[i].graph_used;
    for (int i = 0; i < steps.count; ++i) {
        const MemoryStep& step = steps.steps[i];
        if (step.allocates && step.memory->live && !auto_free && run) {
            return CUDA_ERROR_INVALID_VALUE;  // launched again before its memory was freed
        }
        if (step.allocates && step.memory->live) now[step.memory->device] -= step.memory->size;
    }
    for (int i = 0; i < steps.count; ++i) {
        const GraphMemory& memory = *steps.steps[i].memory;
        const bool foreign = memory.graph_id != steps.graph_id;
        if (!steps.steps[i].allocates && foreign && !memory.live && run) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        uint64_t& used = now[memory.device];
        if (steps.steps[i].allocates) {
            used += memory.size;
        } else if (!foreign || memory.live) {
            used -= memory.size;
        }
        if (used > peak[memory.device]) peak[memory.device] = used;
    }
    for (int i = 0; i < device_count(); ++i) {
        if (!grow_reserve(g_devices[i], peak[i])) return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!run) return CUDA_SUCCESS;
    for (int i = 0; i < steps.count; ++i) {
        if (steps.steps[i].allocates && steps.steps[i].memory->live) {
            set_live(steps.steps[i].memory, false);
        }
    }
    for (int i = 0; i < steps.count; ++i)
        set_live(steps.steps[i].memory, steps.steps[i].allocates);
    return CUDA_SUCCESS;
}

CUresult free_graph_memory(CUdeviceptr address) {
    GraphMemory* memory = memory_at(address);
    if (memory == nullptr || !memory->live) return CUDA_ERROR_INVALID_VALUE;
    set_live(memory, false);
    drop_if_unused(memory);
    return CUDA_SUCCESS;
}

bool find_graph_memory(uint64_t address, MemoryInfo* info) {
    const Range* range = g_ranges.find(address);
    if (range == nullptr || address - range->start >= range->memory->requested) return false;
    *info = {MemoryInfo::kDevice,
             range->start,
             range->memory->requested,
             range->memory->device,
             nullptr,
             nullptr};
    return true;
}

}  // namespace fragtrace::vgpu

using namespace fragtrace::vgpu;

CUresult cuGraphAddMemAllocNode(CUgraphNode* out,
                                CUgraph graph,
                                const CUgraphNode* dependencies,
                                size_t count,
                                CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
    FT_ENTER();
    static_assert(sizeof(CUDA_MEM_ALLOC_NODE_PARAMS) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v2));
    return add_allocation_node(out,
                               graph,
                               dependencies,
                               count,
                               reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS_v2*>(parameters));
}

CUresult cuGraphAddMemFreeNode(CUgraphNode* out,
                               CUgraph graph,
                               const CUgraphNode* dependencies,
                               size_t count,
                               CUdeviceptr address) {
    FT_ENTER();
    return add_free_node(out, graph, dependencies, count, address);
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
    FT_ENTER();
    const GraphNode* node = as<GraphNode>(handle);
    if (node == nullptr || parameters == nullptr || node->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *parameters = {};
    parameters->poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    parameters->poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, node->memory->device};
    parameters->bytesize = node->memory->requested;
    parameters->dptr = node->memory->start;
    return CUDA_SUCCESS;
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode handle, CUdeviceptr* address) {
    FT_ENTER();
    const GraphNode* node = as<GraphNode>(handle);
    if (node == nullptr || address == nullptr || node->type != CU_GRAPH_NODE_TYPE_MEM_FREE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *address = node->memory->start;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void* out) {
    FT_ENTER();
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    const Device& on = g_devices[device];
    cuuint64_t* value = static_cast<cuuint64_t*>(out);
    switch (attribute) {
        case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
            *value = on.graph_used;
            return CUDA_SUCCESS;
        case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
            *value = on.graph_used_high;
            return CUDA_SUCCESS;
        case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
            *value = on.graph_reserved;
            return CUDA_SUCCESS;
        case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
            *value = on.graph_reserved_high;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void* in) {
    FT_ENTER();
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (in == nullptr || *static_cast<cuuint64_t*>(in) != 0) return CUDA_ERROR_INVALID_VALUE;
    Device& on = g_devices[device];
    if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) {
        on.graph_used_high = on.graph_used;
    } else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) {
        on.graph_reserved_high = on.graph_reserved;
    } else {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult cuDeviceGraphMemTrim(CUdevice device) {
    FT_ENTER();
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    Device& on = g_devices[device];
    const uint64_t keep = round_up(on.graph_used, kPageBytes);
    give_bytes(on, on.graph_reserved - keep);
    on.graph_reserved = keep;
    return CUDA_SUCCESS;
}
