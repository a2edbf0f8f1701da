// Choosing a device and reading its properties.
#include "runtime/older_layouts.h"
#include "runtime/runtime.h"

#include <string.h>
#include <type_traits>

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
    CUdevice current = 0;
    driver->cuCtxGetDevice_(&current);
    if (current == peer) return finish(cudaErrorInvalidDevice);
    CUcontext context = nullptr;
    if (const cudaError_t error = context_of_device(peer, &context)) return finish(error);
    return finish(driver->cuCtxEnablePeerAccess_(context, flags));
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
    FT_CONTEXT();
    CUcontext context = nullptr;
    if (const cudaError_t error = context_of_device(peer, &context)) return finish(error);
    return finish(driver->cuCtxDisablePeerAccess_(context));
}

namespace {

// Fills the structure of one major version. An older program may pass a shorter one, so nothing is
// written beyond `bytes`.
template <typename Properties>
cudaError_t fill_properties(Properties* properties, size_t bytes, int device) {
    if (properties == nullptr) return finish(cudaErrorInvalidValue);
    FT_DRIVER_ONLY();
    memset(static_cast<void*>(properties), 0, bytes);
    if (const CUresult result =
            driver->cuDeviceGetName_(properties->name, int(sizeof properties->name), device)) {
        return finish(result);
    }
    driver->cuDeviceTotalMem_(&properties->totalGlobalMem, device);
    CUuuid uuid{};
    driver->cuDeviceGetUuid_(&uuid, device);
    memcpy(&properties->uuid, &uuid, sizeof uuid);
    auto put = [&](auto* field, CUdevice_attribute attribute) {
        const size_t end =
            size_t(reinterpret_cast<char*>(field + 1) - reinterpret_cast<char*>(properties));
        if (end > bytes) return;
        int value = 0;
        driver->cuDeviceGetAttribute_(&value, attribute, device);
        *field = static_cast<std::remove_pointer_t<decltype(field)>>(value);
    };
#define FT_FIELD(field, attribute) put(&properties->field, CU_DEVICE_ATTRIBUTE_##attribute);
#include "runtime/device_properties.def"
    if constexpr (std::is_same_v<Properties, OlderDeviceProperties>) {
#define FT_OLDER_FIELD(field, attribute) put(&properties->field, CU_DEVICE_ATTRIBUTE_##attribute);
#include "runtime/device_properties.def"
    }
    return cudaSuccess;
}

}  // namespace

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    return fill_properties(properties, sizeof *properties, device);
}

extern "C" cudaError_t fragtrace_v12_cudaGetDeviceProperties_v2(OlderDeviceProperties* properties,
                                                                int device) {
    return fill_properties(properties, sizeof *properties, device);
}

extern "C" cudaError_t fragtrace_v12_cudaGetDeviceProperties(OlderDeviceProperties* properties,
                                                             int device) {
    return fill_properties(properties, kBytesOfCuda11, device);
}
