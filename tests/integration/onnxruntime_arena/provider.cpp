// The library whose calls of the driver the recorder sees: it has the name of ONNX Runtime's CUDA
// provider.
#include <cuda.h>

#include <cstddef>
#include <cstdint>

extern "C" __attribute__((visibility("default"))) void prepare_device() {
    CUcontext context = nullptr;
    cuInit(0);
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);
}

extern "C" __attribute__((visibility("default"))) void* device_alloc(std::size_t bytes) {
    CUdeviceptr address = 0;
    return cuMemAlloc(&address, bytes) == CUDA_SUCCESS ? reinterpret_cast<void*>(address) : nullptr;
}

extern "C" __attribute__((visibility("default"))) void device_free(void* address) {
    cuMemFree(reinterpret_cast<CUdeviceptr>(address));
}
