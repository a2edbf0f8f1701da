// Copies and fills. The direction selects the driver function, as in NVIDIA's runtime. With the
// direction "default" the driver decides by the addresses.
#include "runtime/runtime.h"

using namespace fragtrace::vgpu;

namespace {

CUdeviceptr as_device(const void* pointer) {
    return reinterpret_cast<CUdeviceptr>(pointer);
}

CUDA_MEMCPY2D rows(
    void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height) {
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.srcDevice = as_device(from);
    copy.srcPitch = from_pitch;
    copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.dstDevice = as_device(to);
    copy.dstPitch = to_pitch;
    copy.WidthInBytes = width;
    copy.Height = height;
    return copy;
}

}  // namespace

cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind kind) {
    FT_CONTEXT();
    if (size == 0) return cudaSuccess;
    switch (kind) {
        case cudaMemcpyHostToDevice:
            return finish(driver->cuMemcpyHtoD_(as_device(to), from, size));
        case cudaMemcpyDeviceToHost:
            return finish(driver->cuMemcpyDtoH_(to, as_device(from), size));
        case cudaMemcpyDeviceToDevice:
            return finish(driver->cuMemcpyDtoD_(as_device(to), as_device(from), size));
        default:
            return finish(driver->cuMemcpy_(as_device(to), as_device(from), size));
    }
}

cudaError_t cudaMemcpyAsync(
    void* to, const void* from, size_t size, cudaMemcpyKind kind, cudaStream_t stream) {
    FT_CONTEXT();
    if (size == 0) return cudaSuccess;
    switch (kind) {
        case cudaMemcpyHostToDevice:
            return finish(driver->cuMemcpyHtoDAsync_(as_device(to), from, size, stream));
        case cudaMemcpyDeviceToHost:
            return finish(driver->cuMemcpyDtoHAsync_(to, as_device(from), size, stream));
        case cudaMemcpyDeviceToDevice:
            return finish(driver->cuMemcpyDtoDAsync_(as_device(to), as_device(from), size, stream));
        default:
            return finish(driver->cuMemcpyAsync_(as_device(to), as_device(from), size, stream));
    }
}

cudaError_t cudaMemcpyPeerAsync(
    void* to, int, const void* from, int, size_t size, cudaStream_t stream) {
    return cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, stream);
}

cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, size_t size) {
    return cudaMemcpy(to, from, size, cudaMemcpyDefault);
}

cudaError_t cudaMemcpy2D(void* to,
                         size_t to_pitch,
                         const void* from,
                         size_t from_pitch,
                         size_t width,
                         size_t height,
                         cudaMemcpyKind) {
    FT_CONTEXT();
    CUDA_MEMCPY2D const copy = rows(to, to_pitch, from, from_pitch, width, height);
    return finish(driver->cuMemcpy2D_(&copy));
}

cudaError_t cudaMemcpy2DAsync(void* to,
                              size_t to_pitch,
                              const void* from,
                              size_t from_pitch,
                              size_t width,
                              size_t height,
                              cudaMemcpyKind,
                              cudaStream_t stream) {
    FT_CONTEXT();
    CUDA_MEMCPY2D const copy = rows(to, to_pitch, from, from_pitch, width, height);
    return finish(driver->cuMemcpy2DAsync_(&copy, stream));
}

cudaError_t cudaMemset(void* to, int value, size_t size) {
    FT_FORWARD(cuMemsetD8, as_device(to), static_cast<unsigned char>(value), size);
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t size, cudaStream_t stream) {
    FT_FORWARD(cuMemsetD8Async, as_device(to), static_cast<unsigned char>(value), size, stream);
}

cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
    FT_FORWARD(
        cuMemsetD2D8, as_device(to), pitch, static_cast<unsigned char>(value), width, height);
}

cudaError_t cudaMemset2DAsync(
    void* to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
    FT_FORWARD(cuMemsetD2D8Async,
               as_device(to),
               pitch,
               static_cast<unsigned char>(value),
               width,
               height,
               stream);
}
