// Hooks of the driver's memory pools: create, destroy, trim, set attributes, select, share.
#include "hooks/hook_call.h"
#include "hooks/pools_cuda.h"
#include "system/hash.h"

namespace fragtrace::preload {
namespace {

constexpr int kAttributeLastSwitch = 3;   // CU_MEMPOOL_ATTR_REUSE_...: attributes up to here are
                                          // ints
constexpr int kAllocationTypePinned = 1;  // CU_MEM_ALLOCATION_TYPE_PINNED

Event pool_event(EventKind kind, const void* pool, const Call& call) {
    const CudaPool found = find_pool(pool, call);
    return {.kind = kind, .device = found.device, .address = number(pool), .pool = found.number};
}

template <Hook kHook>
int create_pool(const void* caller, void** pool, const PoolProperties* properties) {
    return recorded_success<kHook>(
        caller,
        [&](Call& call) {
            note_pool(*pool, device_of_location(properties->location));
            Event event = pool_event(EventKind::kPoolCreate, *pool, call);
            event.size = properties->most_bytes;
            call.record(event);
        },
        pool,
        properties);
}

template <Hook kHook>
int destroy_pool(const void* caller, void* pool) {
    return ending<kHook>(
        caller,
        [&](Call& call) {
            const uint64_t sequence = call.record(pool_event(EventKind::kPoolDestroy, pool, call));
            forget_pool(pool);
            return sequence;
        },
        pool);
}

template <Hook kHook>
int trim_pool(const void* caller, void* pool, size_t keep_bytes) {
    return recorded_success<kHook>(
        caller,
        [&](Call& call) {
            Event event = pool_event(EventKind::kPoolTrim, pool, call);
            event.size = keep_bytes;
            event.extra = record_pool_info(pool, call);
            call.record(event);
        },
        pool,
        keep_bytes);
}

template <Hook kHook>
int set_attribute(const void* caller, void* pool, int attribute, void* value) {
    return recorded<kHook>(
        caller,
        [&](Call& call, int result) {
            if (result == kSuccess && value != nullptr) {
                Event event = pool_event(EventKind::kPoolAttribute, pool, call);
                event.size = attribute <= kAttributeLastSwitch
                                 ? static_cast<uint64_t>(*static_cast<const int*>(value))
                                 : *static_cast<const uint64_t*>(value);
                event.extra = static_cast<uint64_t>(attribute);
                call.record(event);
            }
        },
        pool,
        attribute,
        value);
}

void select_pool(Call& call, int device, const void* pool) {
    note_pool_selected();
    Event event = pool_event(EventKind::kPoolSelect, pool, call);
    event.device = ordinal(device);
    call.record(event);
}

template <Hook kHook>
int set_device_pool(const void* caller, int device, void* pool) {
    return recorded_success<kHook>(
        caller, [&](Call& call) { select_pool(call, device, pool); }, device, pool);
}

// The general function. Only pools of pinned device memory are the same as above.
template <Hook kHook>
int set_pool(const void* caller, MemoryLocation* location, int type, void* pool) {
    return recorded<kHook>(
        caller,
        [&](Call& call, int result) {
            if (result == kSuccess && type == kAllocationTypePinned &&
                location->type == kLocationDevice) {
                select_pool(call, location->id, pool);
            }
        },
        location,
        type,
        pool);
}

template <Hook kHook, typename Flags>
int export_pool(const void* caller, void* shared, void* pool, int handle_type, Flags flags) {
    return recorded_success<kHook>(
        caller,
        [&](Call& call) {
            Event event = pool_event(EventKind::kExport, pool, call);
            event.extra = hash_of_shared(shared, handle_type);
            call.record(event);
        },
        shared,
        pool,
        handle_type,
        flags);
}

template <Hook kHook, typename Flags>
int import_pool(const void* caller, void** pool, void* shared, int handle_type, Flags flags) {
    return recorded_success<kHook>(
        caller,
        [&](Call& call) {
            note_pool(*pool, kDeviceUnknown);
            Event event = pool_event(EventKind::kImport, *pool, call);
            event.size = kUnknown64;
            event.extra = hash_of_shared(shared, handle_type);
            call.record(event);
        },
        pool,
        shared,
        handle_type,
        flags);
}

// Memory of another process: it counts 0 bytes here, and an ordinary free ends it.
template <Hook kHook, typename Pointer>
int import_pointer(const void* caller, Pointer* address, void* pool, PoolPointer* shared) {
    return recorded_success<kHook>(
        caller,
        [&](Call& call) {
            Event event = pool_event(EventKind::kImport, pool, call);
            event.address = number(*address);
            event.device = call.device_of(event.address);
            event.size = kUnknown64;
            event.extra = hash_bytes(shared->bytes, sizeof shared->bytes);
            call.record(event);
        },
        address,
        pool,
        shared);
}

}  // namespace

FT_HOOK_2(cuMemPoolCreate, create_pool)
FT_HOOK_2(cudaMemPoolCreate, create_pool)
FT_HOOK_1(cuMemPoolDestroy, destroy_pool)
FT_HOOK_1(cudaMemPoolDestroy, destroy_pool)
FT_HOOK_2(cuMemPoolTrimTo, trim_pool)
FT_HOOK_2(cudaMemPoolTrimTo, trim_pool)
FT_HOOK_3(cuMemPoolSetAttribute, set_attribute)
FT_HOOK_3(cudaMemPoolSetAttribute, set_attribute)
FT_HOOK_2(cuDeviceSetMemPool, set_device_pool)
FT_HOOK_2(cudaDeviceSetMemPool, set_device_pool)
FT_HOOK_3(cuMemSetMemPool, set_pool)
FT_HOOK_3(cudaMemSetMemPool, set_pool)
FT_HOOK_4(cuMemPoolExportToShareableHandle, export_pool)
FT_HOOK_4(cudaMemPoolExportToShareableHandle, export_pool)
FT_HOOK_4(cuMemPoolImportFromShareableHandle, import_pool)
FT_HOOK_4(cudaMemPoolImportFromShareableHandle, import_pool)
FT_HOOK_3(cuMemPoolImportPointer, import_pointer)
FT_HOOK_3(cudaMemPoolImportPointer, import_pointer)

}  // namespace fragtrace::preload
