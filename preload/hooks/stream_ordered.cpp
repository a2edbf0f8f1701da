// Hooks of stream-ordered memory. An allocation on a stream that is being captured becomes a node
// of a graph: it reserves address space now, and launching the graph allocates the memory.
#include "hooks/graphs_cuda.h"
#include "hooks/hook_call.h"
#include "hooks/pools_cuda.h"

namespace fragtrace::preload {
namespace {

constexpr uint64_t kPerThreadStreamHandle = 2;  // CU_STREAM_PER_THREAD

template <Hook kHook>
uint64_t stream_number(const void* stream) {
    const uint64_t value = number(stream);
    return value == 0 && Signature<kHook>::kPerThread ? kPerThreadStreamHandle : value;
}

template <Hook kHook>
const void* captured_graph(void* stream, const Call& call) {
    return Signature<kHook>::kPerThread
               ? capturing_graph<Hook::k_cuStreamGetCaptureInfo_v2_ptsz>(stream, call.caller())
               : capturing_graph<Hook::k_cuStreamGetCaptureInfo_v2>(stream, call.caller());
}

template <Hook kHook>
void allocation(Call& call, int result, Event event, void* stream) {
    const void* graph = captured_graph<kHook>(stream, call);
    if (graph != nullptr) {
        event.kind = EventKind::kGraphAlloc;
        event.extra = number(graph);
        note_graph_memory();
    }
    event.stream = stream_number<kHook>(stream);
    call.allocation(result, event);
}

template <Hook kHook, typename Pointer>
int allocate_async(const void* caller, Pointer* address, size_t bytes, void* stream) {
    return recorded<kHook>(
        caller,
        [&](Call& call, int result) {
            const uint16_t device = call.current_device();
            allocation<kHook>(call,
                              result,
                              {.kind = EventKind::kAsyncAlloc,
                               .device = device,
                               .address = given(result, address),
                               .size = bytes,
                               .pool = current_pool(device, call)},
                              stream);
            if (result == kOutOfMemory) {
                record_current_pool_info(device, call);
            }
        },
        address,
        bytes,
        stream);
}

template <Hook kHook, typename Pointer>
int allocate_from_pool(
    const void* caller, Pointer* address, size_t bytes, void* pool, void* stream) {
    return recorded<kHook>(
        caller,
        [&](Call& call, int result) {
            const CudaPool found = find_pool(pool, call);
            allocation<kHook>(
                call,
                result,
                {.kind = EventKind::kAsyncAlloc,
                 .device = found.device != kDeviceUnknown ? found.device : call.current_device(),
                 .address = given(result, address),
                 .size = bytes,
                 .pool = found.number},
                stream);
            if (result == kOutOfMemory) {
                (void)record_pool_info(pool, call);
            }
        },
        address,
        bytes,
        pool,
        stream);
}

template <Hook kHook, typename Pointer>
int free_async(const void* caller, Pointer address, void* stream) {
    // Hot in programs that use these pools, and rarely slow: so its duration is not recorded.
    return ending<kHook>(
        caller,
        [&](Call& call) {
            const uint64_t value = number(address);
            if (value == 0) {
                return uint64_t{0};
            }
            const void* graph = captured_graph<kHook>(stream, call);
            call.record({.kind = graph != nullptr ? EventKind::kGraphFree : EventKind::kAsyncFree,
                         .device = call.device_of(value),
                         .address = value,
                         .extra = number(graph),
                         .stream = stream_number<kHook>(stream)});
            return uint64_t{0};
        },
        address,
        stream);
}

}  // namespace

FT_HOOK_3(cuMemAllocAsync, allocate_async)
FT_HOOK_3(cuMemAllocAsync_ptsz, allocate_async)
FT_HOOK_3(cudaMallocAsync, allocate_async)
FT_HOOK_3(cudaMallocAsync_ptsz, allocate_async)
FT_HOOK_4(cuMemAllocFromPoolAsync, allocate_from_pool)
FT_HOOK_4(cuMemAllocFromPoolAsync_ptsz, allocate_from_pool)
FT_HOOK_4(cudaMallocFromPoolAsync, allocate_from_pool)
FT_HOOK_4(cudaMallocFromPoolAsync_ptsz, allocate_from_pool)
FT_HOOK_2(cuMemFreeAsync, free_async)
FT_HOOK_2(cuMemFreeAsync_ptsz, free_async)
FT_HOOK_2(cudaFreeAsync, free_async)
FT_HOOK_2(cudaFreeAsync_ptsz, free_async)

}  // namespace fragtrace::preload
