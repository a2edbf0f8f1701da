// Stream-ordered memory. A pool holds exactly what is live in it: the real pool's habit of keeping
// freed memory up to its release threshold is not modelled, so `reserved` follows `used` by pages.
#include "driver/state.h"

namespace fragtrace::vgpu {
namespace {

Pool* new_pool(int device, bool built_in) {
    Pool* pool = make<Pool>();
    if (pool == nullptr) return nullptr;
    pool->device = device;
    pool->built_in = built_in;
    for (int& reuse : pool->reuse)
        reuse = 1;
    return pool;
}

Pool* pool_in(Pool** slot, int device) {
    if (*slot == nullptr) *slot = new_pool(device, true);
    return *slot;
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

CUresult current_pool(Pool** pool) {
    Context* context = nullptr;
    FT_TRY(require_context(&context));
    Device& device = g_devices[context->device];
    *pool = device.current_pool != nullptr ? device.current_pool
                                           : pool_in(&device.default_pool, context->device);
    return *pool != nullptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

}  // namespace
}  // namespace fragtrace::vgpu

using namespace fragtrace::vgpu;

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address,
                                 size_t bytes,
                                 CUmemoryPool handle,
                                 CUstream stream) {
    FT_ENTER();
    Pool* pool = as<Pool>(handle);
    if (address == nullptr || pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (bytes == 0) {
        *address = 0;
        return CUDA_SUCCESS;
    }
    FT_TRY(allocate_device(pool->device, bytes, pool, address));
    captured(stream, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
    Pool* pool = nullptr;
    {
        FT_ENTER();
        FT_TRY(current_pool(&pool));
    }
    return cuMemAllocFromPoolAsync(address, bytes, reinterpret_cast<CUmemoryPool>(pool), stream);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
    FT_ENTER();
    if (address == 0) return CUDA_SUCCESS;
    FT_TRY(free_device(address));
    captured(stream, CU_GRAPH_NODE_TYPE_MEM_FREE);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* properties) {
    FT_ENTER();
    if (out == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    if (!valid_device(properties->location.id)) return CUDA_ERROR_INVALID_DEVICE;
    Pool* pool = new_pool(properties->location.id, false);
    if (pool == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = reinterpret_cast<CUmemoryPool>(pool);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool handle) {
    FT_ENTER();
    Pool* pool = as<Pool>(handle);
    if (pool == nullptr || pool->built_in) return CUDA_ERROR_INVALID_VALUE;
    Device& device = g_devices[pool->device];
    if (device.current_pool == pool) device.current_pool = nullptr;
    // What is still allocated stays valid; it only belongs to no pool any more.
    for (Region& region : device.regions) {
        if (region.pool == pool) region.pool = nullptr;
    }
    destroy(pool);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t) {
    FT_ENTER();
    return as<Pool>(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc*, size_t) {
    FT_ENTER();
    return as<Pool>(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle, CUmemLocation*) {
    FT_ENTER();
    if (flags == nullptr || as<Pool>(handle) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
    FT_ENTER();
    Pool* pool = as<Pool>(handle);
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
    Pool* pool = as<Pool>(handle);
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
    // High-water marks can only be reset, to what is held now.
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

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice device) {
    FT_ENTER();
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    *out = reinterpret_cast<CUmemoryPool>(pool_in(&g_devices[device].default_pool, device));
    return *out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuDeviceGetMemPool(CUmemoryPool* out, CUdevice device) {
    if (out != nullptr) {
        FT_ENTER();
        if (valid_device(device) && g_devices[device].current_pool != nullptr) {
            *out = reinterpret_cast<CUmemoryPool>(g_devices[device].current_pool);
            return CUDA_SUCCESS;
        }
    }
    return cuDeviceGetDefaultMemPool(out, device);
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool handle) {
    FT_ENTER();
    Pool* pool = as<Pool>(handle);
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!valid_device(device) || pool->device != device) return CUDA_ERROR_INVALID_DEVICE;
    g_devices[device].current_pool = pool;
    return CUDA_SUCCESS;
}

// Memory of graphs: counted in the pool it was captured from, so nothing is held here.
CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute, void* value) {
    FT_ENTER();
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    *static_cast<cuuint64_t*>(value) = 0;
    return CUDA_SUCCESS;
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute, void*) {
    FT_ENTER();
    return valid_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGraphMemTrim(CUdevice device) {
    FT_ENTER();
    return valid_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
