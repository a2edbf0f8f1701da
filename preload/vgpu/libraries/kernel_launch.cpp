// The first call looks up the driver. Without a driver, calls do nothing.
#include "libraries/kernel_launch.h"

#include <cuda.h>
#include <cudaTypedefs.h>

#include <dlfcn.h>
#include <pthread.h>

namespace fragtrace::vgpu {
namespace {

pthread_once_t g_once = PTHREAD_ONCE_INIT;
CUfunction g_kernel;
PFN_cuLaunchKernel_v4000 g_launch;
PFN_cuMemcpyDtoDAsync_v3020 g_copy;

template <typename Pointer>
bool find(void* library, const char* name, Pointer* pointer) {
    *pointer = reinterpret_cast<Pointer>(dlsym(library, name));
    return *pointer != nullptr;
}

void load() {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    PFN_cuLibraryLoadData_v12000 load_data = nullptr;
    PFN_cuLibraryGetKernel_v12000 get_kernel = nullptr;
    if (driver == nullptr || !find(driver, "cuLibraryLoadData", &load_data) ||
        !find(driver, "cuLibraryGetKernel", &get_kernel)) {
        return;
    }
    static const char kImage[] = "fragtrace";
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    if (load_data(&library, kImage, nullptr, nullptr, 0, nullptr, nullptr, 0) != CUDA_SUCCESS ||
        get_kernel(&kernel, library, "library_kernel") != CUDA_SUCCESS) {
        return;
    }
    g_kernel = reinterpret_cast<CUfunction>(kernel);
    find(driver, "cuMemcpyDtoDAsync_v2", &g_copy);
    find(driver, "cuLaunchKernel", &g_launch);
}

}  // namespace

void launch_empty_kernel(void* stream) {
    pthread_once(&g_once, load);
    if (g_launch == nullptr) return;
    g_launch(g_kernel, 1, 1, 1, 1, 1, 1, 0, static_cast<CUstream>(stream), nullptr, nullptr);
}

void copy_on_device(void* to, const void* from, size_t bytes, void* stream) {
    pthread_once(&g_once, load);
    if (g_copy == nullptr || to == from || bytes == 0) return;
    g_copy(reinterpret_cast<CUdeviceptr>(to),
           reinterpret_cast<CUdeviceptr>(from),
           bytes,
           static_cast<CUstream>(stream));
}

}  // namespace fragtrace::vgpu
