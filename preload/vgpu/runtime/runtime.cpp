// Start-up of the virtual CUDA runtime, contexts of threads, and errors.
#include "runtime/runtime.h"

#include "common/config.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

namespace fragtrace::vgpu {
namespace {

pthread_once_t g_once = PTHREAD_ONCE_INIT;
DriverFunctions g_driver;
cudaError_t g_start_error = cudaSuccess;
pthread_mutex_t g_contexts_mutex = PTHREAD_MUTEX_INITIALIZER;
CUcontext g_contexts[kMaxDevices];

__thread int t_device;
__thread cudaError_t t_last_error;

template <typename Pointer>
void find(const char* name, int version, Pointer* pointer) {
    void* found = nullptr;
    CUdriverProcAddressQueryResult status{};
    g_driver.get_proc_address(name, &found, version, CU_GET_PROC_ADDRESS_DEFAULT, &status);
    *pointer = reinterpret_cast<Pointer>(found);
    if (found == nullptr) g_start_error = cudaErrorInsufficientDriver;
}

void load() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void* get = library != nullptr ? dlsym(library, "cuGetProcAddress_v2") : nullptr;
    if (get == nullptr) {
        g_start_error = cudaErrorInsufficientDriver;
        return;
    }
    g_driver.get_proc_address = reinterpret_cast<PFN_cuGetProcAddress_v12000>(get);
#define FT_DRIVER(name, version) find(#name, version, &g_driver.name##_);
#include "runtime/driver_functions.def"
#undef FT_DRIVER
    if (g_start_error == cudaSuccess) g_start_error = static_cast<cudaError_t>(g_driver.cuInit_(0));
}

cudaError_t primary_context(int device, CUcontext* context) {
    pthread_mutex_lock(&g_contexts_mutex);
    CUresult result = CUDA_SUCCESS;
    if (g_contexts[device] == nullptr) {
        result = g_driver.cuDevicePrimaryCtxRetain_(&g_contexts[device], device);
    }
    *context = g_contexts[device];
    pthread_mutex_unlock(&g_contexts_mutex);
    return static_cast<cudaError_t>(result);
}

struct ErrorName {
    cudaError_t value;
    const char* name;
};

constexpr ErrorName kErrors[] = {
#define FT_ERROR(name, value) {static_cast<cudaError_t>(value), #name},
#include "runtime_errors.inc"
#undef FT_ERROR
};

struct ErrorText {
    cudaError_t value;
    const char* text;
};

// Texts of the errors that programs show most. The other errors are described by their name.
constexpr ErrorText kTexts[] = {
    {cudaSuccess, "no error"},
    {cudaErrorInvalidValue, "invalid argument"},
    {cudaErrorMemoryAllocation, "out of memory"},
    {cudaErrorInitializationError, "initialization error"},
    {cudaErrorInsufficientDriver, "the CUDA driver is missing or too old for this CUDA runtime"},
    {cudaErrorNoDevice, "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "invalid device ordinal"},
    {cudaErrorNotSupported, "operation not supported"},
    {cudaErrorInvalidResourceHandle, "invalid resource handle"},
};

}  // namespace

cudaError_t load_driver(const DriverFunctions** driver) {
    pthread_once(&g_once, load);
    *driver = &g_driver;
    return g_start_error;
}

cudaError_t context_of_device(int device, CUcontext* context) {
    int count = 0;
    if (g_driver.cuDeviceGetCount_(&count) != CUDA_SUCCESS || device < 0 || device >= count) {
        return cudaErrorInvalidDevice;
    }
    return primary_context(device, context);
}

cudaError_t set_device(int device) {
    CUcontext context = nullptr;
    if (const cudaError_t error = context_of_device(device, &context)) return error;
    t_device = device;
    return static_cast<cudaError_t>(g_driver.cuCtxSetCurrent_(context));
}

cudaError_t enter(const DriverFunctions** driver) {
    if (const cudaError_t error = load_driver(driver)) return error;
    CUcontext current = nullptr;
    g_driver.cuCtxGetCurrent_(&current);
    return current != nullptr ? cudaSuccess : set_device(t_device);
}

cudaError_t finish(cudaError_t error) {
    if (error != cudaSuccess) t_last_error = error;
    return error;
}

cudaError_t last_error(bool clear) {
    const cudaError_t error = t_last_error;
    if (clear) t_last_error = cudaSuccess;
    return error;
}

}  // namespace fragtrace::vgpu

using namespace fragtrace::vgpu;

cudaError_t cudaGetLastError(void) {
    return last_error(true);
}

cudaError_t cudaPeekAtLastError(void) {
    return last_error(false);
}

const char* cudaGetErrorName(cudaError_t error) {
    for (const ErrorName& known : kErrors) {
        if (known.value == error) return known.name;
    }
    return "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
    for (const ErrorText& known : kTexts) {
        if (known.value == error) return known.text;
    }
    return cudaGetErrorName(error);
}

cudaError_t cudaDriverGetVersion(int* version) {
    if (version == nullptr) return finish(cudaErrorInvalidValue);
    const DriverFunctions* driver = nullptr;
    load_driver(&driver);
    *version = 0;  // the documented value without an installed driver
    if (driver->cuDriverGetVersion_ != nullptr) driver->cuDriverGetVersion_(version);
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
    if (version == nullptr) return finish(cudaErrorInvalidValue);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol,
                                             void** function,
                                             unsigned version,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* status) {
    FT_DRIVER_ONLY();
    CUdriverProcAddressQueryResult found{};
    const CUresult result = driver->get_proc_address(symbol, function, int(version), flags, &found);
    if (status != nullptr) *status = static_cast<cudaDriverEntryPointQueryResult>(found);
    return finish(result);
}

// CUDA 13's headers no longer have this function, but older programs still call it.
extern "C" FT_EXPORT cudaError_t cudaGetDriverEntryPoint(const char* symbol,
                                                         void** function,
                                                         unsigned long long flags,
                                                         cudaDriverEntryPointQueryResult* status) {
    return cudaGetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, status);
}
