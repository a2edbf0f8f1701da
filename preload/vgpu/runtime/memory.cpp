// Memory: each allocation or free is exactly one call of the driver.
#include "runtime/runtime.h"

using namespace fragtrace::vgpu;

namespace {

CUdeviceptr as_device(const void* pointer) {
    return reinterpret_cast<CUdeviceptr>(pointer);
}

// Runs an allocation that returns a device address. A failure leaves *out unchanged.
template <typename Call>
cudaError_t allocate(void** out, Call call) {
    if (out == nullptr) return finish(cudaErrorInvalidValue);
    CUdeviceptr address = 0;
    if (const CUresult result = call(&address)) return finish(result);
    *out = reinterpret_cast<void*>(address);
    return cudaSuccess;
}

cudaError_t null_for_nothing(void** out) {
    if (out == nullptr) return finish(cudaErrorInvalidValue);
    *out = nullptr;
    return cudaSuccess;
}

}  // namespace

cudaError_t cudaMalloc(void** out, size_t size) {
    FT_CONTEXT();
    if (size == 0) return null_for_nothing(out);
    return allocate(out, [=](CUdeviceptr* p) { return driver->cuMemAlloc_(p, size); });
}

cudaError_t cudaFree(void* pointer) {
    FT_FORWARD(cuMemFree, as_device(pointer));
}

cudaError_t cudaMallocManaged(void** out, size_t size, unsigned flags) {
    FT_CONTEXT();
    if (size == 0) return null_for_nothing(out);
    return allocate(out,
                    [=](CUdeviceptr* p) { return driver->cuMemAllocManaged_(p, size, flags); });
}

cudaError_t cudaMallocPitch(void** out, size_t* pitch, size_t width, size_t height) {
    FT_CONTEXT();
    if (width == 0 || height == 0) return null_for_nothing(out);
    return allocate(
        out, [=](CUdeviceptr* p) { return driver->cuMemAllocPitch_(p, pitch, width, height, 4); });
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* out, cudaExtent extent) {
    if (out == nullptr) return finish(cudaErrorInvalidValue);
    out->xsize = extent.width;
    out->ysize = extent.height;
    return cudaMallocPitch(&out->ptr, &out->pitch, extent.width, extent.height * extent.depth);
}

cudaError_t cudaHostAlloc(void** out, size_t size, unsigned flags) {
    FT_CONTEXT();
    if (size == 0) return null_for_nothing(out);
    return finish(driver->cuMemHostAlloc_(out, size, flags));
}

cudaError_t cudaMallocHost(void** out, size_t size) {
    return cudaHostAlloc(out, size, 0);
}

cudaError_t cudaFreeHost(void* pointer) {
    FT_FORWARD(cuMemFreeHost, pointer);
}

cudaError_t cudaHostRegister(void* pointer, size_t size, unsigned flags) {
    FT_FORWARD(cuMemHostRegister, pointer, size, flags);
}

cudaError_t cudaHostUnregister(void* pointer) {
    FT_FORWARD(cuMemHostUnregister, pointer);
}

cudaError_t cudaHostGetDevicePointer(void** out, void* pointer, unsigned flags) {
    FT_CONTEXT();
    return allocate(
        out, [=](CUdeviceptr* p) { return driver->cuMemHostGetDevicePointer_(p, pointer, flags); });
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* pointer) {
    FT_FORWARD(cuMemHostGetFlags, flags, pointer);
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
    FT_FORWARD(cuMemGetInfo, free_bytes, total_bytes);
}

cudaError_t cudaMallocAsync(void** out, size_t size, cudaStream_t stream) {
    FT_CONTEXT();
    if (size == 0) return null_for_nothing(out);
    return allocate(out, [=](CUdeviceptr* p) { return driver->cuMemAllocAsync_(p, size, stream); });
}

cudaError_t cudaMallocFromPoolAsync(void** out,
                                    size_t size,
                                    cudaMemPool_t pool,
                                    cudaStream_t stream) {
    FT_CONTEXT();
    if (size == 0) return null_for_nothing(out);
    return allocate(out, [=](CUdeviceptr* p) {
        return driver->cuMemAllocFromPoolAsync_(p, size, pool, stream);
    });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
    FT_FORWARD(cuMemFreeAsync, as_device(pointer), stream);
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
    FT_FORWARD(cuDeviceGetDefaultMemPool, pool, device);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
    FT_FORWARD(cuDeviceGetMemPool, pool, device);
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
    FT_FORWARD(cuDeviceSetMemPool, device, pool);
}

// Runtime and driver use the same layout for these structures.
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
    static_assert(sizeof(cudaMemPoolProps) == sizeof(CUmemPoolProps));
    FT_FORWARD(cuMemPoolCreate, pool, reinterpret_cast<const CUmemPoolProps*>(properties));
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
    FT_FORWARD(cuMemPoolDestroy, pool);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep_bytes) {
    FT_FORWARD(cuMemPoolTrimTo, pool, keep_bytes);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
    FT_FORWARD(cuMemPoolGetAttribute, pool, static_cast<CUmemPool_attribute>(attribute), value);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
    FT_FORWARD(cuMemPoolSetAttribute, pool, static_cast<CUmemPool_attribute>(attribute), value);
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool,
                                 const cudaMemAccessDesc* descriptions,
                                 size_t count) {
    static_assert(sizeof(cudaMemAccessDesc) == sizeof(CUmemAccessDesc));
    FT_FORWARD(
        cuMemPoolSetAccess, pool, reinterpret_cast<const CUmemAccessDesc*>(descriptions), count);
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags,
                                 cudaMemPool_t pool,
                                 cudaMemLocation* location) {
    static_assert(sizeof(cudaMemLocation) == sizeof(CUmemLocation));
    FT_FORWARD(cuMemPoolGetAccess,
               reinterpret_cast<CUmemAccess_flags*>(flags),
               pool,
               reinterpret_cast<CUmemLocation*>(location));
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device,
                                           cudaGraphMemAttributeType attribute,
                                           void* value) {
    FT_FORWARD(
        cuDeviceGetGraphMemAttribute, device, static_cast<CUgraphMem_attribute>(attribute), value);
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device,
                                           cudaGraphMemAttributeType attribute,
                                           void* value) {
    FT_FORWARD(
        cuDeviceSetGraphMemAttribute, device, static_cast<CUgraphMem_attribute>(attribute), value);
}

cudaError_t cudaDeviceGraphMemTrim(int device) {
    FT_FORWARD(cuDeviceGraphMemTrim, device);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
    FT_CONTEXT();
    if (attributes == nullptr) return finish(cudaErrorInvalidValue);
    CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_CONTEXT,
                                    CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                    CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                    CU_POINTER_ATTRIBUTE_HOST_POINTER,
                                    CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void* context = nullptr;
    unsigned type = 0;
    void* device_pointer = nullptr;
    void* host_pointer = nullptr;
    unsigned char managed = 0;
    int ordinal = 0;
    void* out[] = {&context, &type, &device_pointer, &host_pointer, &managed, &ordinal};
    if (const CUresult result =
            driver->cuPointerGetAttributes_(6, wanted, out, as_device(pointer))) {
        return finish(result);
    }
    *attributes = {};
    attributes->type = managed != 0                   ? cudaMemoryTypeManaged
                       : type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice
                       : type == CU_MEMORYTYPE_HOST   ? cudaMemoryTypeHost
                                                      : cudaMemoryTypeUnregistered;
    attributes->device = ordinal;
    attributes->devicePointer = device_pointer;
    attributes->hostPointer = host_pointer;
    if (type == 0) attributes->hostPointer = const_cast<void*>(pointer);
    return cudaSuccess;
}

cudaError_t cudaMemPrefetchAsync(
    const void* pointer, size_t size, cudaMemLocation, unsigned flags, cudaStream_t stream) {
    FT_FORWARD(cuMemPrefetchAsync, as_device(pointer), size, CUmemLocation{}, flags, stream);
}

cudaError_t cudaMemAdvise(const void* pointer,
                          size_t size,
                          cudaMemoryAdvise advice,
                          cudaMemLocation) {
    FT_FORWARD(
        cuMemAdvise, as_device(pointer), size, static_cast<CUmem_advise>(advice), CUmemLocation{});
}
