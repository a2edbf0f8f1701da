// Registration of device code, and launches. Any host function can be launched. Every launch is one
// launch of the driver's, except those of known_kernels.h.
#include "runtime/known_kernels.h"
#include "runtime/runtime.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

using namespace fragtrace::vgpu;

namespace {

pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
CUlibrary g_library;
CUfunction g_kernel;

// A variable of device code, identified by the address of its host shadow.
struct Variable {
    const void* shadow;
    const char* name;
    size_t size;
};

Variable* g_variables;
int g_variable_count;
int g_variable_room;

// All launches use one kernel: the driver sees that a kernel was launched, not which one.
cudaError_t load_kernel(const DriverFunctions* driver, CUfunction* kernel) {
    pthread_mutex_lock(&g_mutex);
    CUresult result = CUDA_SUCCESS;
    if (g_kernel == nullptr) {
        static const char kImage[] = "fragtrace";
        result = driver->cuLibraryLoadData_(
            &g_library, kImage, nullptr, nullptr, 0, nullptr, nullptr, 0);
        CUkernel found = nullptr;
        if (result == CUDA_SUCCESS) {
            result = driver->cuLibraryGetKernel_(&found, g_library, "virtual_kernel");
        }
        g_kernel = reinterpret_cast<CUfunction>(found);
    }
    *kernel = g_kernel;
    pthread_mutex_unlock(&g_mutex);
    return static_cast<cudaError_t>(result);
}

cudaError_t launch(const void* function,
                   dim3 grid,
                   dim3 block,
                   void** arguments,
                   size_t shared_bytes,
                   cudaStream_t stream) {
    FT_CONTEXT();
    if (compute_kernel(function, grid, arguments, stream)) return finish(cudaSuccess);
    CUfunction kernel = nullptr;
    if (const cudaError_t error = load_kernel(driver, &kernel)) return finish(error);
    return finish(driver->cuLaunchKernel_(kernel,
                                          grid.x,
                                          grid.y,
                                          grid.z,
                                          block.x,
                                          block.y,
                                          block.z,
                                          unsigned(shared_bytes),
                                          stream,
                                          arguments,
                                          nullptr));
}

struct CallConfiguration {
    dim3 grid;
    dim3 block;
    size_t shared_bytes;
    cudaStream_t stream;
};

constexpr int kCallDepth = 16;
__thread char t_calls[kCallDepth][sizeof(CallConfiguration)];
__thread int t_call_depth;

Variable* find_variable(const void* shadow) {
    for (int i = 0; i < g_variable_count; ++i) {
        if (g_variables[i].shadow == shadow) return &g_variables[i];
    }
    return nullptr;
}

cudaError_t variable_address(const void* shadow, CUdeviceptr* address, size_t* size) {
    FT_CONTEXT();
    CUfunction kernel = nullptr;
    if (const cudaError_t error = load_kernel(driver, &kernel)) return finish(error);
    pthread_mutex_lock(&g_mutex);
    Variable* variable = find_variable(shadow);
    char unique_name[32] = "variable ";
    if (variable != nullptr) {
        unsigned long number = static_cast<unsigned long>(variable - g_variables);
        for (int i = 9; i < 29; ++i, number /= 10)
            unique_name[i] = char('0' + number % 10);
        *size = variable->size;
    }
    pthread_mutex_unlock(&g_mutex);
    if (variable == nullptr) return finish(cudaErrorInvalidSymbol);
    return finish(driver->cuLibraryGetGlobal_(address, nullptr, g_library, unique_name));
}

}  // namespace

extern "C" {

FT_EXPORT void** __cudaRegisterFatBinary(void* binary) {
    void** handle = static_cast<void**>(calloc(1, sizeof(void*)));
    if (handle != nullptr) *handle = binary;
    return handle;
}

FT_EXPORT void __cudaRegisterFatBinaryEnd(void**) {}

FT_EXPORT void __cudaUnregisterFatBinary(void** handle) {
    free(handle);
}

FT_EXPORT void __cudaRegisterFunction(
    void**, const char* function, char*, const char* name, int, void*, void*, void*, void*, int*) {
    note_kernel_name(function, name);
}

FT_EXPORT void __cudaRegisterVar(
    void**, char* shadow, char*, const char* name, int, size_t size, int, int) {
    pthread_mutex_lock(&g_mutex);
    if (g_variable_count == g_variable_room) {
        const int room = g_variable_room == 0 ? 256 : g_variable_room * 2;
        void* grown = realloc(static_cast<void*>(g_variables), sizeof(Variable) * size_t(room));
        if (grown != nullptr) {
            g_variables = static_cast<Variable*>(grown);
            g_variable_room = room;
        }
    }
    if (g_variable_count < g_variable_room) g_variables[g_variable_count++] = {shadow, name, size};
    pthread_mutex_unlock(&g_mutex);
}

FT_EXPORT void __cudaRegisterManagedVar(
    void**, void** shadow, char*, const char*, int, size_t size, int, int) {
    if (shadow != nullptr && *shadow == nullptr) *shadow = calloc(1, size);
}

FT_EXPORT char __cudaInitModule(void**) {
    return 1;
}

FT_EXPORT void __cudaRegisterTexture(
    void**, const void*, const void**, const char*, int, int, int) {}

FT_EXPORT void __cudaRegisterSurface(void**, const void*, const void**, const char*, int, int) {}

FT_EXPORT unsigned __cudaPushCallConfiguration(dim3 grid,
                                               dim3 block,
                                               size_t shared_bytes,
                                               cudaStream_t stream) {
    if (t_call_depth == kCallDepth) return 1;
    const CallConfiguration call{grid, block, shared_bytes, stream};
    memcpy(t_calls[t_call_depth++], &call, sizeof call);
    return 0;
}

FT_EXPORT cudaError_t __cudaPopCallConfiguration(dim3* grid,
                                                 dim3* block,
                                                 size_t* shared_bytes,
                                                 void* stream) {
    if (t_call_depth == 0) return finish(cudaErrorMissingConfiguration);
    CallConfiguration call;
    memcpy(&call, t_calls[--t_call_depth], sizeof call);
    *grid = call.grid;
    *block = call.block;
    *shared_bytes = call.shared_bytes;
    memcpy(stream, static_cast<void*>(&call.stream), sizeof call.stream);
    return cudaSuccess;
}

FT_EXPORT cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
    *kernel = static_cast<cudaKernel_t>(const_cast<void*>(function));
    return cudaSuccess;
}

// All kernels of the runtime are one kernel of the driver.
cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
    if (function == nullptr || symbol == nullptr) return finish(cudaErrorInvalidValue);
    FT_CONTEXT();
    return finish(load_kernel(driver, function));
}

FT_EXPORT cudaError_t __cudaLaunchKernel(cudaKernel_t kernel,
                                         dim3 grid,
                                         dim3 block,
                                         void** arguments,
                                         size_t shared_bytes,
                                         cudaStream_t stream) {
    return launch(kernel, grid, block, arguments, shared_bytes, stream);
}

FT_EXPORT cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel,
                                              dim3 grid,
                                              dim3 block,
                                              void** arguments,
                                              size_t shared_bytes,
                                              cudaStream_t stream) {
    return launch(kernel, grid, block, arguments, shared_bytes, stream);
}

}  // extern "C"

cudaError_t cudaLaunchKernel(const void* function,
                             dim3 grid,
                             dim3 block,
                             void** arguments,
                             size_t shared_bytes,
                             cudaStream_t stream) {
    return launch(function, grid, block, arguments, shared_bytes, stream);
}

cudaError_t cudaLaunchCooperativeKernel(const void* function,
                                        dim3 grid,
                                        dim3 block,
                                        void** arguments,
                                        size_t shared_bytes,
                                        cudaStream_t stream) {
    return launch(function, grid, block, arguments, shared_bytes, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config,
                                const void* function,
                                void** arguments) {
    if (config == nullptr) return finish(cudaErrorInvalidValue);
    return launch(function,
                  config->gridDim,
                  config->blockDim,
                  arguments,
                  config->dynamicSmemBytes,
                  config->stream);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
    if (attributes == nullptr) return finish(cudaErrorInvalidValue);
    FT_CONTEXT();
    int device = 0;
    int major = 0;
    int minor = 0;
    int shared_bytes = 0;
    driver->cuCtxGetDevice_(&device);
    driver->cuDeviceGetAttribute_(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    driver->cuDeviceGetAttribute_(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    driver->cuDeviceGetAttribute_(
        &shared_bytes, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, device);
    *attributes = {};
    attributes->maxThreadsPerBlock = 1024;
    attributes->numRegs = 32;
    attributes->binaryVersion = attributes->ptxVersion = major * 10 + minor;
    attributes->maxDynamicSharedSizeBytes = shared_bytes;
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) {
    FT_CONTEXT();
    return cudaSuccess;
}

cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) {
    FT_CONTEXT();
    return cudaSuccess;
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t, cudaFuncAttribute, int, int) {
    FT_CONTEXT();
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void*, int block_size, size_t shared_bytes, unsigned flags) {
    FT_CONTEXT();
    CUfunction kernel = nullptr;
    if (const cudaError_t error = load_kernel(driver, &kernel)) return finish(error);
    return finish(driver->cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags_(
        blocks, kernel, block_size, shared_bytes, flags));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                          const void* function,
                                                          int block_size,
                                                          size_t shared_bytes) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks, function, block_size, shared_bytes, 0);
}

cudaError_t cudaGetSymbolAddress(void** out, const void* symbol) {
    if (out == nullptr) return finish(cudaErrorInvalidValue);
    CUdeviceptr address = 0;
    size_t size = 0;
    const cudaError_t error = variable_address(symbol, &address, &size);
    if (error == cudaSuccess) *out = reinterpret_cast<void*>(address);
    return error;
}

cudaError_t cudaGetSymbolSize(size_t* out, const void* symbol) {
    if (out == nullptr) return finish(cudaErrorInvalidValue);
    CUdeviceptr address = 0;
    return variable_address(symbol, &address, out);
}

cudaError_t cudaMemcpyToSymbol(
    const void* symbol, const void* from, size_t size, size_t offset, cudaMemcpyKind kind) {
    void* address = nullptr;
    if (const cudaError_t error = cudaGetSymbolAddress(&address, symbol)) return error;
    return cudaMemcpy(static_cast<char*>(address) + offset, from, size, kind);
}

cudaError_t cudaMemcpyFromSymbol(
    void* to, const void* symbol, size_t size, size_t offset, cudaMemcpyKind kind) {
    void* address = nullptr;
    if (const cudaError_t error = cudaGetSymbolAddress(&address, symbol)) return error;
    return cudaMemcpy(to, static_cast<char*>(address) + offset, size, kind);
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library,
                                const void* code,
                                cudaJitOption*,
                                void**,
                                unsigned,
                                cudaLibraryOption*,
                                void**,
                                unsigned) {
    FT_FORWARD(cuLibraryLoadData, library, code, nullptr, nullptr, 0, nullptr, nullptr, 0);
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library,
                                    const char* path,
                                    cudaJitOption*,
                                    void**,
                                    unsigned,
                                    cudaLibraryOption*,
                                    void**,
                                    unsigned) {
    FT_FORWARD(cuLibraryLoadFromFile, library, path, nullptr, nullptr, 0, nullptr, nullptr, 0);
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
    FT_FORWARD(cuLibraryUnload, library);
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
    FT_FORWARD(cuLibraryGetKernel, kernel, library, name);
}

cudaError_t cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t library) {
    FT_FORWARD(cuLibraryGetKernelCount, count, library);
}

cudaError_t cudaLibraryGetGlobal(void** address,
                                 size_t* size,
                                 cudaLibrary_t library,
                                 const char* name) {
    FT_FORWARD(cuLibraryGetGlobal, reinterpret_cast<CUdeviceptr*>(address), size, library, name);
}

extern "C" FT_EXPORT cudaError_t cudaProfilerStart(void) {
    return cudaSuccess;
}

extern "C" FT_EXPORT cudaError_t cudaProfilerStop(void) {
    return cudaSuccess;
}
