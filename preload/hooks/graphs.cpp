// Hooks of graphs. Adding a memory node reserves address space. The memory is allocated by an
// upload or a launch, from a pool that all graphs of a device share. Only a trim releases it.
#include "hooks/graphs_cuda.h"

namespace fragtrace::preload {
namespace {

constexpr int kAttributeUsed = 0;      // CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT
constexpr int kAttributeReserved = 2;  // CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT
constexpr uint16_t kMaxDevices = 64;

struct Held {
    uint64_t used;
    uint64_t reserved;
};

Held g_held[kMaxDevices];  // last recorded values
int g_graph_memory;

int current_device(Layer layer, const void* caller) {
    int device = -1;
    if (layer == Layer::kRuntime) {
        auto* get = real<Hook::k_cudaGetDevice>(caller);
        return get != nullptr && get(&device) == kSuccess ? device : -1;
    }
    auto* get = real<Hook::k_cuCtxGetDevice>(caller);
    return get != nullptr && get(&device) == kSuccess ? device : -1;
}

void node_allocated(Call& call, int result, const AllocNodeParameters* alloc, const void* graph) {
    if (alloc == nullptr) {
        return;
    }
    note_graph_memory();
    call.allocation(result,
                    {.kind = EventKind::kGraphAlloc,
                     .device = ordinal(alloc->pool.location.id),
                     .address = result == kSuccess ? alloc->address : 0,
                     .size = alloc->bytes,
                     .extra = number(graph)});
}

void node_freed(Call& call, int result, uint64_t address, const void* graph) {
    if (result == kSuccess) {
        call.record({.kind = EventKind::kGraphFree,
                     .device = call.device_of(address),
                     .address = address,
                     .extra = number(graph)});
    }
}

template <Hook kHook>
int add_alloc_node(const void* caller,
                   void** node,
                   void* graph,
                   void* const* dependencies,
                   size_t dependency_count,
                   AllocNodeParameters* alloc) {
    return recorded<kHook>(
        caller,
        [&](Call& call, int result) { node_allocated(call, result, alloc, graph); },
        node,
        graph,
        dependencies,
        dependency_count,
        alloc);
}

template <Hook kHook, typename Pointer>
int add_free_node(const void* caller,
                  void** node,
                  void* graph,
                  void* const* dependencies,
                  size_t dependency_count,
                  Pointer address) {
    return recorded<kHook>(
        caller,
        [&](Call& call, int result) { node_freed(call, result, number(address), graph); },
        node,
        graph,
        dependencies,
        dependency_count,
        address);
}

// The general function: it adds a node of any type and has the parameters last.
template <Hook kHook, typename... Dependencies>
int add_any_node(const void* caller,
                 void** node,
                 void* graph,
                 void* const* dependencies,
                 Dependencies... rest,
                 GraphNodeParameters* parameters) {
    return recorded<kHook>(
        caller,
        [&](Call& call, int result) {
            if (parameters != nullptr && parameters->type == kGraphNodeAlloc) {
                node_allocated(call, result, &parameters->alloc, graph);
            } else if (parameters != nullptr && parameters->type == kGraphNodeFree) {
                node_freed(call, result, parameters->freed, graph);
            }
        },
        node,
        graph,
        dependencies,
        rest...,
        parameters);
}

template <Hook kHook>
int add_node(const void* caller,
             void** node,
             void* graph,
             void* const* dependencies,
             size_t dependency_count,
             GraphNodeParameters* parameters) {
    return add_any_node<kHook, size_t>(
        caller, node, graph, dependencies, dependency_count, parameters);
}

template <Hook kHook>
int add_node_with_data(const void* caller,
                       void** node,
                       void* graph,
                       void* const* dependencies,
                       const void* dependency_data,
                       size_t dependency_count,
                       GraphNodeParameters* parameters) {
    return add_any_node<kHook, const void*, size_t>(
        caller, node, graph, dependencies, dependency_data, dependency_count, parameters);
}

template <Hook kHook, typename... Arguments>
int instantiate(const void* caller, Arguments... arguments) {
    return recorded<kHook>(
        caller,
        [&](Call&, int) { record_graph_memory(kDeviceUnknown, Signature<kHook>::kLayer, caller); },
        arguments...);
}

// As hot as a kernel launch.
template <Hook kHook>
int launch_graph(const void* caller, void* exec, void* stream) {
    const int result = launched<kHook>(caller, exec, stream);
    if (__atomic_load_n(&g_graph_memory, __ATOMIC_RELAXED) != 0) [[unlikely]] {
        const SlowPath slow_path;
        const HookScope scope;
        if (scope.outermost() && recording_enabled()) {
            record_graph_memory(kDeviceUnknown, Signature<kHook>::kLayer, caller);
        }
    }
    return result;
}

// A trim is recorded as the memory that remains after it, if that changed.
template <Hook kHook>
int trim_graphs(const void* caller, int device) {
    return recorded_success<kHook>(
        caller,
        [&](Call&) { record_graph_memory(ordinal(device), Signature<kHook>::kLayer, caller); },
        device);
}

}  // namespace

void note_graph_memory() {
    __atomic_store_n(&g_graph_memory, 1, __ATOMIC_RELAXED);
}

void record_graph_memory(uint16_t device, Layer layer, const void* caller) {
    if (__atomic_load_n(&g_graph_memory, __ATOMIC_RELAXED) == 0) {
        return;
    }
    const int index = device != kDeviceUnknown ? device : current_device(layer, caller);
    auto* get = real<Hook::k_cuDeviceGetGraphMemAttribute>(caller);
    Held held{};
    if (get == nullptr || index < 0 || index >= kMaxDevices ||
        get(index, kAttributeUsed, &held.used) != kSuccess ||
        get(index, kAttributeReserved, &held.reserved) != kSuccess) {
        return;
    }
    const uint64_t used = __atomic_exchange_n(&g_held[index].used, held.used, __ATOMIC_RELAXED);
    const uint64_t reserved =
        __atomic_exchange_n(&g_held[index].reserved, held.reserved, __ATOMIC_RELAXED);
    if (used == held.used && reserved == held.reserved) {
        return;
    }
    EventRecord record{};
    record.kind = EventKind::kGraphMemory;
    record.device = ordinal(index);
    record.size = held.used;
    record.extra = held.reserved;
    record.stream = kStreamUnknown;
    const Stacks stacks = capture_stacks();
    record.native_stack = stacks.native;
    record.python_stack = stacks.python;
    fragtrace::preload::record(record);
}

FT_HOOK_5(cuGraphAddMemAllocNode, add_alloc_node)
FT_HOOK_5(cudaGraphAddMemAllocNode, add_alloc_node)
FT_HOOK_5(cuGraphAddMemFreeNode, add_free_node)
FT_HOOK_5(cudaGraphAddMemFreeNode, add_free_node)
FT_HOOK_5(cuGraphAddNode, add_node)
FT_HOOK_6(cuGraphAddNode_v2, add_node_with_data)
FT_HOOK_5(cuGraphInstantiate, instantiate)
FT_HOOK_5(cuGraphInstantiate_v2, instantiate)
FT_HOOK_3(cuGraphInstantiateWithFlags, instantiate)
FT_HOOK_3(cuGraphInstantiateWithParams, instantiate)
FT_HOOK_3(cuGraphInstantiateWithParams_ptsz, instantiate)
FT_HOOK_2(cuGraphUpload, launch_graph)
FT_HOOK_2(cuGraphUpload_ptsz, launch_graph)
FT_HOOK_2(cudaGraphUpload, launch_graph)
FT_HOOK_2(cudaGraphUpload_ptsz, launch_graph)
FT_HOOK_2(cuGraphLaunch, launch_graph)
FT_HOOK_2(cuGraphLaunch_ptsz, launch_graph)
FT_HOOK_2(cudaGraphLaunch, launch_graph)
FT_HOOK_2(cudaGraphLaunch_ptsz, launch_graph)
FT_HOOK_1(cuDeviceGraphMemTrim, trim_graphs)
FT_HOOK_1(cudaDeviceGraphMemTrim, trim_graphs)

}  // namespace fragtrace::preload
