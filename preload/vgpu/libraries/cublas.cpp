// cuBLAS: handles that store what a program sets. All other functions come from cublas.def. Written
// from the documented interface, so the build needs no cuBLAS headers. The library's own workspace
// is not modelled: PyTorch always sets one that it allocates itself.
#include "common/stub.h"
#include "libraries/def_functions.h"
#include "libraries/kernel_launch.h"

#include <cstdint>
#include <stdlib.h>

using fragtrace::vgpu::launch_empty_kernel;

namespace {

constexpr int kSuccess = 0;
constexpr int kNotInitialized = 1;
constexpr int kAllocFailed = 3;
constexpr int kInvalidValue = 7;
constexpr int kVersion = 130400;

struct Handle {
    void* stream;
    int pointer_mode;
    int math_mode;
    int atomics_mode;
    int multiprocessors;
};

int get(const Handle* handle, int value, int* out) {
    if (handle == nullptr) return kNotInitialized;
    if (out == nullptr) return kInvalidValue;
    *out = value;
    return kSuccess;
}

int set(Handle* handle, int Handle::*field, int value) {
    if (handle == nullptr) return kNotInitialized;
    handle->*field = value;
    return kSuccess;
}

int compute(const Handle* handle, void** parameters) {
    if (handle == nullptr) return kNotInitialized;
    launch_empty_kernel(handle->stream, parameters);
    return kSuccess;
}

}  // namespace

extern "C" {

FT_EXPORT int cublasCreate_v2(Handle** out) {
    if (out == nullptr) return kInvalidValue;
    *out = static_cast<Handle*>(calloc(1, sizeof(Handle)));
    return *out != nullptr ? kSuccess : kAllocFailed;
}

FT_EXPORT int cublasDestroy_v2(Handle* handle) {
    free(handle);
    return kSuccess;
}

FT_EXPORT int cublasXtCreate(Handle** out) {
    return cublasCreate_v2(out);
}

FT_EXPORT int cublasXtDestroy(Handle* handle) {
    return cublasDestroy_v2(handle);
}

FT_EXPORT int cublasGetVersion_v2(Handle*, int* version) {
    if (version == nullptr) return kInvalidValue;
    *version = kVersion;
    return kSuccess;
}

FT_EXPORT int cublasGetProperty(int type, int* value) {
    if (value == nullptr || type < 0 || type > 2) return kInvalidValue;
    const int parts[] = {kVersion / 10000, kVersion / 100 % 100, kVersion % 100};
    *value = parts[type];
    return kSuccess;
}

FT_EXPORT size_t cublasGetCudartVersion(void) {
    return 13000;
}

FT_EXPORT const char* cublasGetStatusName(int status) {
    return status == kSuccess ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_INVALID_VALUE";
}

FT_EXPORT const char* cublasGetStatusString(int status) {
    return status == kSuccess ? "success" : "an error of the virtual cuBLAS";
}

FT_EXPORT int cublasSetStream_v2(Handle* handle, void* stream) {
    if (handle == nullptr) return kNotInitialized;
    handle->stream = stream;
    return kSuccess;
}

FT_EXPORT int cublasGetStream_v2(Handle* handle, void** stream) {
    if (handle == nullptr) return kNotInitialized;
    if (stream == nullptr) return kInvalidValue;
    *stream = handle->stream;
    return kSuccess;
}

FT_EXPORT int cublasGetPointerMode_v2(Handle* handle, int* mode) {
    return get(handle, handle != nullptr ? handle->pointer_mode : 0, mode);
}

FT_EXPORT int cublasSetPointerMode_v2(Handle* handle, int mode) {
    return set(handle, &Handle::pointer_mode, mode);
}

FT_EXPORT int cublasGetMathMode(Handle* handle, int* mode) {
    return get(handle, handle != nullptr ? handle->math_mode : 0, mode);
}

FT_EXPORT int cublasSetMathMode(Handle* handle, int mode) {
    return set(handle, &Handle::math_mode, mode);
}

FT_EXPORT int cublasGetAtomicsMode(Handle* handle, int* mode) {
    return get(handle, handle != nullptr ? handle->atomics_mode : 0, mode);
}

FT_EXPORT int cublasSetAtomicsMode(Handle* handle, int mode) {
    return set(handle, &Handle::atomics_mode, mode);
}

FT_EXPORT int cublasGetSmCountTarget(Handle* handle, int* count) {
    return get(handle, handle != nullptr ? handle->multiprocessors : 0, count);
}

FT_EXPORT int cublasSetSmCountTarget(Handle* handle, int count) {
    return set(handle, &Handle::multiprocessors, count);
}

#include "libraries/cublas.def"

}  // extern "C"
