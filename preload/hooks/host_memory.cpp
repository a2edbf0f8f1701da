// Hooks of pinned host memory, which belongs to no device, and of existing host memory that is
// pinned.
#include "hooks/hook_call.h"

namespace fragtrace::preload {
namespace {

template <Hook kHook, typename... Flags>
int allocate_host(const void* caller, void** address, size_t bytes, Flags... flags) {
    return recorded<kHook>(
        caller,
        [&](Call& call, int result) {
            call.allocation(result,
                            {.kind = EventKind::kHostAlloc,
                             .address = given(result, address),
                             .size = bytes,
                             .extra = (uint64_t{0} + ... + flags)});
        },
        address,
        bytes,
        flags...);
}

template <Hook kHook>
int free_host(const void* caller, void* address) {
    return ending<kHook>(
        caller,
        [&](Call& call) {
            return address == nullptr
                       ? 0
                       : call.record({.kind = EventKind::kHostFree, .address = number(address)});
        },
        address);
}

template <Hook kHook>
int register_host(const void* caller, void* address, size_t bytes, unsigned flags) {
    return recorded_success<kHook>(
        caller,
        [&](Call& call) {
            call.record({.kind = EventKind::kHostRegister,
                         .address = number(address),
                         .size = bytes,
                         .extra = flags});
        },
        address,
        bytes,
        flags);
}

template <Hook kHook>
int unregister_host(const void* caller, void* address) {
    return ending<kHook>(
        caller,
        [&](Call& call) {
            return call.record({.kind = EventKind::kHostUnregister, .address = number(address)});
        },
        address);
}

}  // namespace

FT_HOOK_2(cuMemAllocHost_v2, allocate_host)
FT_HOOK_2(cudaMallocHost, allocate_host)
FT_HOOK_3(cuMemHostAlloc, allocate_host)
FT_HOOK_3(cudaHostAlloc, allocate_host)
FT_HOOK_1(cuMemFreeHost, free_host)
FT_HOOK_1(cudaFreeHost, free_host)
FT_HOOK_3(cuMemHostRegister, register_host)
FT_HOOK_3(cuMemHostRegister_v2, register_host)
FT_HOOK_3(cudaHostRegister, register_host)
FT_HOOK_1(cuMemHostUnregister, unregister_host)
FT_HOOK_1(cudaHostUnregister, unregister_host)

}  // namespace fragtrace::preload
