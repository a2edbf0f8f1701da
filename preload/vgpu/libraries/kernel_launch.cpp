// The driver's functions are looked up by dlsym, as programs do, so that the recorder sees the
// calls.
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
PFN_cuCtxGetDevice_v2000 g_get_device;
PFN_cuDevicePrimaryCtxRetain_v7000 g_retain;
PFN_cuDevicePrimaryCtxRelease_v11000 g_release;
PFN_cuCtxPushCurrent_v4000 g_push;
PFN_cuCtxPopCurrent_v4000 g_pop;
PFN_cuMemAlloc_v3020 g_allocate;
PFN_cuMemFree_v3020 g_free;
const DriverInterface* g_interface;

template <typename Pointer>
bool find(void* library, const char* name, Pointer* pointer) {
    *pointer = reinterpret_cast<Pointer>(dlsym(library, name));
    return *pointer != nullptr;
}

void load() {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    PFN_cuLibraryLoadData_v12000 load_data = nullptr;
    PFN_cuLibraryGetKernel_v12000 get_kernel = nullptr;
    if (driver == nullptr) return;
    const DriverInterface* (*get_interface)() = nullptr;
    if (find(driver, "fragtrace_vgpu_driver_interface", &get_interface)) {
        g_interface = get_interface();
    }
    find(driver, "cuCtxGetDevice", &g_get_device);
    find(driver, "cuDevicePrimaryCtxRetain", &g_retain);
    find(driver, "cuDevicePrimaryCtxRelease_v2", &g_release);
    find(driver, "cuCtxPushCurrent_v2", &g_push);
    find(driver, "cuCtxPopCurrent_v2", &g_pop);
    find(driver, "cuMemAlloc_v2", &g_allocate);
    find(driver, "cuMemFree_v2", &g_free);
    if (!find(driver, "cuLibraryLoadData", &load_data) ||
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
    find(driver, "cuLaunchKernel", &g_launch);
}

// Makes the device's primary context current for the life of the object.
class OnDevice {
  public:
    explicit OnDevice(int device) : device_(device) {
        CUcontext context = nullptr;
        if (device < 0 || device == current_device() || g_retain == nullptr ||
            g_retain(&context, device) != CUDA_SUCCESS) {
            return;
        }
        pushed_ = g_push(context) == CUDA_SUCCESS;
        if (!pushed_) g_release(device);
    }

    ~OnDevice() {
        if (!pushed_) return;
        CUcontext context = nullptr;
        g_pop(&context);
        g_release(device_);
    }

    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;

  private:
    int device_;
    bool pushed_ = false;
};

}  // namespace

void launch_empty_kernel(void* stream, void** parameters) {
    pthread_once(&g_once, load);
    if (g_launch == nullptr) return;
    g_launch(g_kernel, 1, 1, 1, 1, 1, 1, 0, static_cast<CUstream>(stream), parameters, nullptr);
}

const DriverInterface* driver_interface() {
    pthread_once(&g_once, load);
    return g_interface;
}

int current_device() {
    pthread_once(&g_once, load);
    CUdevice device = -1;
    if (g_get_device == nullptr || g_get_device(&device) != CUDA_SUCCESS) return -1;
    return device;
}

uint64_t begin_work_on_device(int device, void* stream, uint64_t address, size_t bytes) {
    const OnDevice on(device);
    return driver_interface()->begin_work(stream, address, bytes);
}

void* allocate_on_device(int device, size_t bytes) {
    pthread_once(&g_once, load);
    const OnDevice on(device);
    CUdeviceptr address = 0;
    if (g_allocate == nullptr || g_allocate(&address, bytes) != CUDA_SUCCESS) return nullptr;
    return reinterpret_cast<void*>(address);
}

void free_on_device(int device, void* memory) {
    if (memory == nullptr) return;
    pthread_once(&g_once, load);
    const OnDevice on(device);
    if (g_free != nullptr) g_free(reinterpret_cast<CUdeviceptr>(memory));
}

}  // namespace fragtrace::vgpu
