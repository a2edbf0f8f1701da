// Stream-ordered memory: pools, their attributes and allocations. A device pool keeps freed memory
// until a synchronising call (device_memory.cpp). Pools in host memory keep nothing.
#include "driver/capture.h"

namespace fragtrace::vgpu {

void count_in(Pool* pool, int64_t reserved, int64_t used, int allocations) {
    if (pool == nullptr) return;
    pool->reserved += uint64_t(reserved);
    pool->used += uint64_t(used);
    pool->allocations += allocations;
    if (pool->reserved > pool->reserved_high) pool->reserved_high = pool->reserved;
    if (pool->used > pool->used_high) pool->used_high = pool->used;
}

void drop_if_over(Pool* pool) {
    if (pool == nullptr || !pool->destroyed || pool->allocations > 0) return;
    release_idle(pool, 0);
    destroy(pool);
}

Pool* new_pool(const CUmemPoolProps& properties, bool built_in) {
    Pool* pool = make<Pool>();
    if (pool == nullptr) return nullptr;
    pool->properties = properties;
    pool->device =
        properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE ? properties.location.id : -1;
    pool->built_in = built_in;
    pool->id = g_next_id++;
    for (int& reuse : pool->reuse)
        reuse = 1;
    return pool;
}

Pool* usable_pool(CUmemoryPool handle) {
    Pool* pool = as<Pool>(handle);
    return pool != nullptr && !pool->destroyed ? pool : nullptr;
}

namespace {

// The default and the current pool for one location and one kind of memory.
struct Slot {
    Pool** standard;
    Pool** current;
};

bool is_host(const CUmemLocation& location) {
    return location.type == CU_MEM_LOCATION_TYPE_HOST ||
           (location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA && location.id == 0);
}

bool slot_of(const CUmemLocation& location, CUmemAllocationType type, Slot* slot) {
    // Indexes: managed memory per device, then page-locked host memory, managed memory on the host,
    // managed memory without a location.
    static Pool* standard[kMaxDevices + 3];
    static Pool* current[kMaxDevices + 3];
    const bool device = location.type == CU_MEM_LOCATION_TYPE_DEVICE && valid_device(location.id);
    int index = -1;
    if (type == CU_MEM_ALLOCATION_TYPE_PINNED && device) {
        *slot = {&g_devices[location.id].default_pool, &g_devices[location.id].current_pool};
        return true;
    }
    if (type == CU_MEM_ALLOCATION_TYPE_PINNED && is_host(location)) index = kMaxDevices;
    if (type == CU_MEM_ALLOCATION_TYPE_MANAGED) {
        if (device) index = location.id;
        if (is_host(location)) index = kMaxDevices + 1;
        if (location.type == CU_MEM_LOCATION_TYPE_NONE) index = kMaxDevices + 2;
    }
    if (index < 0) return false;
    *slot = {&standard[index], &current[index]};
    return true;
}

CUresult standard_pool(const CUmemLocation& location, CUmemAllocationType type, Pool** out) {
    Slot slot{};
    if (!slot_of(location, type, &slot)) return CUDA_ERROR_INVALID_VALUE;
    if (*slot.standard == nullptr) {
        CUmemPoolProps properties{};
        properties.allocType = type;
        properties.location = location;
        *slot.standard = new_pool(properties, true);
    }
    *out = *slot.standard;
    return *out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult current_pool(const CUmemLocation& location, CUmemAllocationType type, Pool** out) {
    Slot slot{};
    if (!slot_of(location, type, &slot)) return CUDA_ERROR_INVALID_VALUE;
    *out = *slot.current;
    return *out != nullptr ? CUDA_SUCCESS : standard_pool(location, type, out);
}

bool same_place(const CUmemLocation& a, const CUmemLocation& b) {
    return a.type == b.type && (a.type != CU_MEM_LOCATION_TYPE_DEVICE || a.id == b.id);
}

CUresult set_pool(const CUmemLocation& location, CUmemAllocationType type, CUmemoryPool handle) {
    Slot slot{};
    Pool* pool = usable_pool(handle);
    if (pool == nullptr || pool->imported || pool->properties.allocType != type ||
        !same_place(pool->properties.location, location) || !slot_of(location, type, &slot)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *slot.current = pool;
    return CUDA_SUCCESS;
}

uint64_t* counter_of(Pool* pool, CUmemPool_attribute attribute) {
    switch (attribute) {
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
            return &pool->release_threshold;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
            return &pool->reserved;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
            return &pool->reserved_high;
        case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
            return &pool->used;
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
            return &pool->used_high;
        default:
            return nullptr;
    }
}

bool is_reuse(CUmemPool_attribute attribute) {
    return attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
           attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

// On a stream that is being captured the allocation becomes a node instead (graph_memory.cpp).
CUresult allocate(CUdeviceptr* address, size_t bytes, Pool* pool, CUstream stream) {
    if (address == nullptr || pool == nullptr || pool->imported) return CUDA_ERROR_INVALID_VALUE;
    if (bytes == 0) {
        *address = 0;
        return CUDA_SUCCESS;
    }
    if (is_capturing(stream)) return capture_allocation(address, bytes, *pool, stream);
    if (pool->device >= 0 && pool->properties.allocType == CU_MEM_ALLOCATION_TYPE_PINNED) {
        return allocate_device(pool->device, bytes, pool, nullptr, address);
    }
    void* host = nullptr;
    FT_TRY(allocate_host(bytes, pool, &host));
    *address = reinterpret_cast<CUdeviceptr>(host);
    return CUDA_SUCCESS;
}

CUmemLocation device_location(int device) {
    return {CU_MEM_LOCATION_TYPE_DEVICE, device};
}

}  // namespace
}  // namespace fragtrace::vgpu

using namespace fragtrace::vgpu;

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address,
                                 size_t bytes,
                                 CUmemoryPool handle,
                                 CUstream stream) {
    FT_ENTER();
    Stream* known = nullptr;
    FT_TRY(require_stream(stream, &known));
    return allocate(address, bytes, usable_pool(handle), stream);
}

CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
    FT_ENTER();
    Context* context = nullptr;
    Stream* known = nullptr;
    Pool* pool = nullptr;
    FT_TRY(require_stream(stream, &known));
    if (known == nullptr) FT_TRY(require_context(&context));
    const int device = known != nullptr ? known->device : context->device;
    FT_TRY(current_pool(device_location(device), CU_MEM_ALLOCATION_TYPE_PINNED, &pool));
    return allocate(address, bytes, pool, stream);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
    FT_ENTER();
    Stream* known = nullptr;
    FT_TRY(require_stream(stream, &known));
    if (address == 0) return CUDA_SUCCESS;
    return is_capturing(stream) ? capture_free(address, stream) : free_memory(address);
}

CUresult cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* properties) {
    FT_ENTER();
    if (out == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Slot slot{};
    if (!slot_of(properties->location, properties->allocType, &slot)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const unsigned handles = unsigned(properties->handleTypes);
    if (handles != 0 && properties->location.type == CU_MEM_LOCATION_TYPE_HOST) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if ((handles & ~unsigned{CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR}) != 0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    Pool* pool = new_pool(*properties, false);
    if (pool == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = reinterpret_cast<CUmemoryPool>(pool);
    return CUDA_SUCCESS;
}

// Live allocations and the pool itself stay valid. Only the handle is refused from now on.
CUresult cuMemPoolDestroy(CUmemoryPool handle) {
    FT_ENTER();
    Pool* pool = usable_pool(handle);
    if (pool == nullptr || pool->built_in) return CUDA_ERROR_INVALID_VALUE;
    Slot slot{};
    if (slot_of(pool->properties.location, pool->properties.allocType, &slot) &&
        *slot.current == pool) {
        *slot.current = nullptr;
    }
    pool->destroyed = true;
    drop_if_over(pool);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep_bytes) {
    FT_ENTER();
    Pool* pool = usable_pool(handle);
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    release_idle(pool, keep_bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAccess(CUmemoryPool handle,
                            const CUmemAccessDesc* descriptions,
                            size_t count) {
    FT_ENTER();
    Pool* pool = usable_pool(handle);
    if (pool == nullptr || (descriptions == nullptr && count > 0)) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; ++i) {
        const CUmemAccessDesc& wanted = descriptions[i];
        if (wanted.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
        if (!valid_device(wanted.location.id)) return CUDA_ERROR_INVALID_DEVICE;
        // CUDA refuses to take away a device's access to its own pool.
        const bool complete = wanted.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        if (wanted.location.id == pool->device && !complete) return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count; ++i) {
        const uint64_t bit = uint64_t{1} << descriptions[i].location.id;
        const CUmemAccess_flags flags = descriptions[i].flags;
        pool->peers = flags != 0 ? pool->peers | bit : pool->peers & ~bit;
        const bool writes = flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        pool->peers_can_write = writes ? pool->peers_can_write | bit : pool->peers_can_write & ~bit;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags,
                            CUmemoryPool handle,
                            CUmemLocation* location) {
    FT_ENTER();
    const Pool* pool = usable_pool(handle);
    if (flags == nullptr || pool == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    if (!valid_device(location->id)) return CUDA_ERROR_INVALID_DEVICE;
    const uint64_t bit = uint64_t{1} << location->id;
    *flags = location->id == pool->device || (pool->peers_can_write & bit) != 0
                 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
             : (pool->peers & bit) != 0 ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                        : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
    FT_ENTER();
    Pool* pool = usable_pool(handle);
    if (pool == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (is_reuse(attribute)) {
        *static_cast<int*>(value) = pool->reuse[int(attribute) - 1];
        return CUDA_SUCCESS;
    }
    const uint64_t* counter = counter_of(pool, attribute);
    if (counter == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *static_cast<cuuint64_t*>(value) = *counter;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
    FT_ENTER();
    Pool* pool = usable_pool(handle);
    if (pool == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (is_reuse(attribute)) {
        pool->reuse[int(attribute) - 1] = *static_cast<int*>(value);
        return CUDA_SUCCESS;
    }
    const uint64_t wanted = *static_cast<cuuint64_t*>(value);
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
        pool->release_threshold = wanted;
        return CUDA_SUCCESS;
    }
    // A high-water mark can only be reset, to the current value.
    if (wanted != 0) return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) {
        pool->reserved_high = pool->reserved;
    } else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) {
        pool->used_high = pool->used;
    } else {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool* out,
                                CUmemLocation* location,
                                CUmemAllocationType type) {
    FT_ENTER();
    Pool* pool = nullptr;
    if (out == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    FT_TRY(standard_pool(*location, type, &pool));
    *out = reinterpret_cast<CUmemoryPool>(pool);
    return CUDA_SUCCESS;
}

CUresult cuMemGetMemPool(CUmemoryPool* out, CUmemLocation* location, CUmemAllocationType type) {
    FT_ENTER();
    Pool* pool = nullptr;
    if (out == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    FT_TRY(current_pool(*location, type, &pool));
    *out = reinterpret_cast<CUmemoryPool>(pool);
    return CUDA_SUCCESS;
}

CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
    FT_ENTER();
    return location != nullptr ? set_pool(*location, type, pool) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice device) {
    FT_TRY(require_initialised());
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    CUmemLocation location = device_location(device);
    return cuMemGetDefaultMemPool(out, &location, CU_MEM_ALLOCATION_TYPE_PINNED);
}

CUresult cuDeviceGetMemPool(CUmemoryPool* out, CUdevice device) {
    FT_TRY(require_initialised());
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    CUmemLocation location = device_location(device);
    return cuMemGetMemPool(out, &location, CU_MEM_ALLOCATION_TYPE_PINNED);
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
    FT_ENTER();
    if (!valid_device(device)) return CUDA_ERROR_INVALID_VALUE;
    return set_pool(device_location(device), CU_MEM_ALLOCATION_TYPE_PINNED, pool);
}
