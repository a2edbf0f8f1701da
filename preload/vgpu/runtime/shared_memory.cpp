// Memory of other processes and other interfaces: cudaIpc*, shared pools, external memory.
#include "runtime/runtime.h"

#include <string.h>

using namespace fragtrace::vgpu;

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
    static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle));
    FT_FORWARD(cuIpcGetMemHandle,
               reinterpret_cast<CUipcMemHandle*>(handle),
               reinterpret_cast<CUdeviceptr>(pointer));
}

cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned flags) {
    CUipcMemHandle copy;
    memcpy(static_cast<void*>(&copy), &handle, sizeof copy);
    FT_FORWARD(cuIpcOpenMemHandle, reinterpret_cast<CUdeviceptr*>(pointer), copy, flags);
}

cudaError_t cudaIpcCloseMemHandle(void* pointer) {
    FT_FORWARD(cuIpcCloseMemHandle, reinterpret_cast<CUdeviceptr>(pointer));
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
    static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle));
    FT_FORWARD(cuIpcGetEventHandle, reinterpret_cast<CUipcEventHandle*>(handle), event);
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
    CUipcEventHandle copy;
    memcpy(static_cast<void*>(&copy), &handle, sizeof copy);
    FT_FORWARD(cuIpcOpenEventHandle, event, copy);
}

cudaError_t cudaMemPoolExportToShareableHandle(void* out,
                                               cudaMemPool_t pool,
                                               cudaMemAllocationHandleType type,
                                               unsigned flags) {
    FT_FORWARD(cuMemPoolExportToShareableHandle,
               out,
               pool,
               static_cast<CUmemAllocationHandleType>(type),
               flags);
}

cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t* pool,
                                                 void* handle,
                                                 cudaMemAllocationHandleType type,
                                                 unsigned flags) {
    FT_FORWARD(cuMemPoolImportFromShareableHandle,
               pool,
               handle,
               static_cast<CUmemAllocationHandleType>(type),
               flags);
}

cudaError_t cudaMemPoolExportPointer(cudaMemPoolPtrExportData* data, void* pointer) {
    static_assert(sizeof(cudaMemPoolPtrExportData) == sizeof(CUmemPoolPtrExportData));
    FT_FORWARD(cuMemPoolExportPointer,
               reinterpret_cast<CUmemPoolPtrExportData*>(data),
               reinterpret_cast<CUdeviceptr>(pointer));
}

cudaError_t cudaMemPoolImportPointer(void** pointer,
                                     cudaMemPool_t pool,
                                     cudaMemPoolPtrExportData* data) {
    FT_FORWARD(cuMemPoolImportPointer,
               reinterpret_cast<CUdeviceptr*>(pointer),
               pool,
               reinterpret_cast<CUmemPoolPtrExportData*>(data));
}

cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t* pool,
                                     cudaMemLocation* location,
                                     cudaMemAllocationType type) {
    FT_FORWARD(cuMemGetDefaultMemPool,
               pool,
               reinterpret_cast<CUmemLocation*>(location),
               static_cast<CUmemAllocationType>(type));
}

cudaError_t cudaMemGetMemPool(cudaMemPool_t* pool,
                              cudaMemLocation* location,
                              cudaMemAllocationType type) {
    FT_FORWARD(cuMemGetMemPool,
               pool,
               reinterpret_cast<CUmemLocation*>(location),
               static_cast<CUmemAllocationType>(type));
}

cudaError_t cudaMemSetMemPool(cudaMemLocation* location,
                              cudaMemAllocationType type,
                              cudaMemPool_t pool) {
    FT_FORWARD(cuMemSetMemPool,
               reinterpret_cast<CUmemLocation*>(location),
               static_cast<CUmemAllocationType>(type),
               pool);
}

cudaError_t cudaImportExternalMemory(cudaExternalMemory_t* out,
                                     const cudaExternalMemoryHandleDesc* description) {
    FT_CONTEXT();
    if (description == nullptr) return finish(cudaErrorInvalidValue);
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC wanted{};
    wanted.type = static_cast<CUexternalMemoryHandleType>(description->type);
    wanted.handle.fd = description->handle.fd;
    wanted.size = description->size;
    wanted.flags = description->flags;
    return finish(
        driver->cuImportExternalMemory_(reinterpret_cast<CUexternalMemory*>(out), &wanted));
}

cudaError_t cudaExternalMemoryGetMappedBuffer(void** pointer,
                                              cudaExternalMemory_t memory,
                                              const cudaExternalMemoryBufferDesc* description) {
    FT_CONTEXT();
    if (description == nullptr) return finish(cudaErrorInvalidValue);
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC wanted{};
    wanted.offset = description->offset;
    wanted.size = description->size;
    wanted.flags = description->flags;
    return finish(
        driver->cuExternalMemoryGetMappedBuffer_(reinterpret_cast<CUdeviceptr*>(pointer),
                                                 reinterpret_cast<CUexternalMemory>(memory),
                                                 &wanted));
}

cudaError_t cudaDestroyExternalMemory(cudaExternalMemory_t memory) {
    FT_FORWARD(cuDestroyExternalMemory, reinterpret_cast<CUexternalMemory>(memory));
}
