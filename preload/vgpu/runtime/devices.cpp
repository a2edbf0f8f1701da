// Devices: choosing one and asking about it.
#include "runtime/runtime.h"

#include <string.h>

using namespace fragtrace::vgpu;

cudaError_t cudaGetDeviceCount(int* count) {
    if (count == nullptr) return finish(cudaErrorInvalidValue);
    *count = 0;
    FT_DRIVER_ONLY();
    return finish(driver->cuDeviceGetCount_(count));
}

cudaError_t cudaSetDevice(int device) {
    FT_DRIVER_ONLY();
    return finish(set_device(device));
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
    return cudaSetDevice(device);
}

cudaError_t cudaGetDevice(int* device) {
    if (device == nullptr) return finish(cudaErrorInvalidValue);
    FT_CONTEXT();
    return finish(driver->cuCtxGetDevice_(device));
}

cudaError_t cudaSetDeviceFlags(unsigned flags) {
    int device = 0;
    if (const cudaError_t error = cudaGetDevice(&device)) return error;
    FT_DRIVER_ONLY();
    return finish(driver->cuDevicePrimaryCtxSetFlags_(device, flags));
}

cudaError_t cudaGetDeviceFlags(unsigned* flags) {
    if (flags == nullptr) return finish(cudaErrorInvalidValue);
    *flags = cudaDeviceMapHost;
    return cudaSuccess;
}

cudaError_t cudaDeviceReset(void) {
    int device = 0;
    if (const cudaError_t error = cudaGetDevice(&device)) return error;
    FT_DRIVER_ONLY();
    return finish(driver->cuDevicePrimaryCtxReset_(device));
}

cudaError_t cudaDeviceSynchronize(void) {
    FT_FORWARD(cuCtxSynchronize);
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
    FT_DRIVER_ONLY();
    return finish(
        driver->cuDeviceGetAttribute_(value, static_cast<CUdevice_attribute>(attribute), device));
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
    FT_DRIVER_ONLY();
    return finish(driver->cuDeviceGetPCIBusId_(text, length, device));
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) {
    FT_DRIVER_ONLY();
    return finish(driver->cuDeviceGetByPCIBusId_(device, text));
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    FT_FORWARD(cuCtxGetStreamPriorityRange, least, greatest);
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
    FT_FORWARD(cuCtxGetLimit, value, static_cast<CUlimit>(limit));
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
    FT_FORWARD(cuCtxSetLimit, static_cast<CUlimit>(limit), value);
}

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* out) {
    if (out == nullptr) return finish(cudaErrorInvalidValue);
    *out = cudaFuncCachePreferNone;
    return cudaSuccess;
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) {
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
    FT_DRIVER_ONLY();
    return finish(driver->cuDeviceCanAccessPeer_(can, device, peer));
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int from, int to) {
    FT_DRIVER_ONLY();
    return finish(driver->cuDeviceGetP2PAttribute_(
        value, static_cast<CUdevice_P2PAttribute>(attribute), from, to));
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
    FT_CONTEXT();
    CUcontext context = nullptr;
    if (const CUresult result = driver->cuDevicePrimaryCtxRetain_(&context, peer)) {
        return finish(result);
    }
    return finish(driver->cuCtxEnablePeerAccess_(context, flags));
}

cudaError_t cudaDeviceDisablePeerAccess(int) {
    FT_CONTEXT();
    return cudaSuccess;
}

namespace {

struct PropertyField {
    size_t offset;
    CUdevice_attribute attribute;
    bool wide;  // size_t rather than int
};

#define FT_INT(field, attribute) \
    { offsetof(cudaDeviceProp, field), CU_DEVICE_ATTRIBUTE_##attribute, false }
#define FT_WIDE(field, attribute) \
    { offsetof(cudaDeviceProp, field), CU_DEVICE_ATTRIBUTE_##attribute, true }

constexpr PropertyField kFields[] = {
    FT_WIDE(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK),
    FT_INT(regsPerBlock, MAX_REGISTERS_PER_BLOCK),
    FT_INT(warpSize, WARP_SIZE),
    FT_WIDE(memPitch, MAX_PITCH),
    FT_INT(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK),
    FT_INT(maxThreadsDim[0], MAX_BLOCK_DIM_X),
    FT_INT(maxThreadsDim[1], MAX_BLOCK_DIM_Y),
    FT_INT(maxThreadsDim[2], MAX_BLOCK_DIM_Z),
    FT_INT(maxGridSize[0], MAX_GRID_DIM_X),
    FT_INT(maxGridSize[1], MAX_GRID_DIM_Y),
    FT_INT(maxGridSize[2], MAX_GRID_DIM_Z),
    FT_WIDE(totalConstMem, TOTAL_CONSTANT_MEMORY),
    FT_INT(major, COMPUTE_CAPABILITY_MAJOR),
    FT_INT(minor, COMPUTE_CAPABILITY_MINOR),
    FT_WIDE(textureAlignment, TEXTURE_ALIGNMENT),
    FT_WIDE(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT),
    FT_WIDE(surfaceAlignment, SURFACE_ALIGNMENT),
    FT_INT(multiProcessorCount, MULTIPROCESSOR_COUNT),
    FT_INT(integrated, INTEGRATED),
    FT_INT(canMapHostMemory, CAN_MAP_HOST_MEMORY),
    FT_INT(concurrentKernels, CONCURRENT_KERNELS),
    FT_INT(ECCEnabled, ECC_ENABLED),
    FT_INT(pciBusID, PCI_BUS_ID),
    FT_INT(pciDeviceID, PCI_DEVICE_ID),
    FT_INT(pciDomainID, PCI_DOMAIN_ID),
    FT_INT(tccDriver, TCC_DRIVER),
    FT_INT(asyncEngineCount, ASYNC_ENGINE_COUNT),
    FT_INT(unifiedAddressing, UNIFIED_ADDRESSING),
    FT_INT(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH),
    FT_INT(l2CacheSize, L2_CACHE_SIZE),
    FT_INT(persistingL2CacheMaxSize, MAX_PERSISTING_L2_CACHE_SIZE),
    FT_INT(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR),
    FT_INT(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED),
    FT_INT(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED),
    FT_INT(localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED),
    FT_WIDE(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
    FT_INT(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR),
    FT_INT(managedMemory, MANAGED_MEMORY),
    FT_INT(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS),
    FT_INT(computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED),
    FT_INT(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM),
    FT_INT(cooperativeLaunch, COOPERATIVE_LAUNCH),
    FT_WIDE(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    FT_INT(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR),
    FT_INT(accessPolicyMaxWindowSize, MAX_ACCESS_POLICY_WINDOW_SIZE),
    FT_WIDE(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK),
    FT_INT(hostRegisterSupported, HOST_REGISTER_SUPPORTED),
    FT_INT(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED),
    FT_INT(clusterLaunch, CLUSTER_LAUNCH),
    FT_INT(unifiedFunctionPointers, UNIFIED_FUNCTION_POINTERS),
};
#undef FT_INT
#undef FT_WIDE

}  // namespace

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    if (properties == nullptr) return finish(cudaErrorInvalidValue);
    FT_DRIVER_ONLY();
    memset(static_cast<void*>(properties), 0, sizeof *properties);
    if (const CUresult result =
            driver->cuDeviceGetName_(properties->name, int(sizeof properties->name), device)) {
        return finish(result);
    }
    driver->cuDeviceTotalMem_(&properties->totalGlobalMem, device);
    CUuuid uuid{};
    driver->cuDeviceGetUuid_(&uuid, device);
    memcpy(&properties->uuid, &uuid, sizeof uuid);
    for (const PropertyField& field : kFields) {
        int value = 0;
        driver->cuDeviceGetAttribute_(&value, field.attribute, device);
        const size_t wide = static_cast<size_t>(value);
        char* at = reinterpret_cast<char*>(properties) + field.offset;
        if (field.wide) {
            memcpy(at, &wide, sizeof wide);
        } else {
            memcpy(at, &value, sizeof value);
        }
    }
    return cudaSuccess;
}
