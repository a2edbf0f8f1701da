// cuBLASLt: descriptors without contents, a heuristic with one answer that needs no workspace, and
// products that compute nothing. Written from the documented interface. It needs no header.
#include "common/stub.h"
#include "libraries/def_functions.h"
#include "libraries/kernel_launch.h"

#include <cstdint>
#include <stdlib.h>
#include <string.h>

using fragtrace::vgpu::launch_empty_kernel;

namespace {

constexpr int kSuccess = 0;
constexpr int kAllocFailed = 3;
constexpr int kInvalidValue = 7;
constexpr size_t kVersion = 130400;
constexpr size_t kDescriptorBytes = 256;  // no opaque structure of the library is larger

struct Algorithm {
    uint64_t data[8];
};

// cublasLtMatmulHeuristicResult_t
struct HeuristicResult {
    Algorithm algorithm;
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
};

int create(void** out) {
    if (out == nullptr) return kInvalidValue;
    *out = calloc(1, kDescriptorBytes);
    return *out != nullptr ? kSuccess : kAllocFailed;
}

int release(void* object) {
    free(object);
    return kSuccess;
}

int clear_result(HeuristicResult* result) {
    if (result == nullptr) return kSuccess;
    *result = HeuristicResult{};
    result->waves = 1.0F;
    return kSuccess;
}

// Fills the caller's buffer with zeros and reports its whole size as written.
int zero_attribute(void* buffer, size_t size, size_t* written) {
    if (buffer != nullptr) memset(buffer, 0, size);
    if (written != nullptr) *written = size;
    return kSuccess;
}

}  // namespace

extern "C" {

FT_EXPORT int cublasLtCreate(void** out) {
    return create(out);
}

FT_EXPORT int cublasLtDestroy(void* handle) {
    return release(handle);
}

FT_EXPORT size_t cublasLtGetVersion(void) {
    return kVersion;
}

FT_EXPORT size_t cublasLtGetCudartVersion(void) {
    return 13000;
}

FT_EXPORT int cublasLtGetProperty(int type, int* value) {
    if (value == nullptr || type < 0 || type > 2) return kInvalidValue;
    const int parts[] = {13, 4, 0};
    *value = parts[type];
    return kSuccess;
}

FT_EXPORT const char* cublasLtGetStatusName(int status) {
    return status == kSuccess ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_INVALID_VALUE";
}

FT_EXPORT const char* cublasLtGetStatusString(int status) {
    return status == kSuccess ? "success" : "an error of the virtual cuBLASLt";
}

FT_EXPORT int cublasLtMatmulDescCreate(void** out, int, int) {
    return create(out);
}

FT_EXPORT int cublasLtMatmulDescDestroy(void* object) {
    return release(object);
}

FT_EXPORT int cublasLtMatmulPreferenceCreate(void** out) {
    return create(out);
}

FT_EXPORT int cublasLtMatmulPreferenceDestroy(void* object) {
    return release(object);
}

FT_EXPORT int cublasLtMatrixLayoutCreate(void** out, int, uint64_t, uint64_t, int64_t) {
    return create(out);
}

FT_EXPORT int cublasLtGroupedMatrixLayoutCreate(void** out) {
    return create(out);
}

FT_EXPORT int cublasLtMatrixLayoutDestroy(void* object) {
    return release(object);
}

FT_EXPORT int cublasLtMatrixTransformDescCreate(void** out, int) {
    return create(out);
}

FT_EXPORT int cublasLtMatrixTransformDescDestroy(void* object) {
    return release(object);
}

FT_EXPORT int cublasLtEmulationDescCreate(void** out) {
    return create(out);
}

FT_EXPORT int cublasLtEmulationDescDestroy(void* object) {
    return release(object);
}

FT_EXPORT int cublasLtMatmulAlgoGetHeuristic(const void*,
                                             const void*,
                                             const void*,
                                             const void*,
                                             const void*,
                                             const void*,
                                             const void*,
                                             int requested,
                                             HeuristicResult* results,
                                             int* returned) {
    if (requested < 1 || results == nullptr || returned == nullptr) return kInvalidValue;
    *returned = 1;
    return clear_result(results);
}

FT_EXPORT int cublasLtMatmulAlgoCheck(const void*,
                                      const void*,
                                      const void*,
                                      const void*,
                                      const void*,
                                      const void*,
                                      const Algorithm*,
                                      HeuristicResult* result) {
    return clear_result(result);
}

FT_EXPORT int cublasLtMatmulAlgoInit(
    const void*, int, int, int, int, int, int, int, Algorithm* algorithm) {
    if (algorithm == nullptr) return kInvalidValue;
    *algorithm = Algorithm{};
    return kSuccess;
}

FT_EXPORT int cublasLtMatmulAlgoGetIds(
    const void*, int, int, int, int, int, int, int requested, int* ids, int* returned) {
    if (requested < 1 || ids == nullptr || returned == nullptr) return kInvalidValue;
    ids[0] = 0;
    *returned = 1;
    return kSuccess;
}

FT_EXPORT int cublasLtMatmulAlgoConfigGetAttribute(
    const Algorithm*, int, void* buffer, size_t size, size_t* written) {
    return zero_attribute(buffer, size, written);
}

FT_EXPORT int cublasLtMatmulAlgoCapGetAttribute(
    const Algorithm*, int, void* buffer, size_t size, size_t* written) {
    return zero_attribute(buffer, size, written);
}

FT_EXPORT int cublasLtMatmul(const void*,
                             const void*,
                             const void*,
                             const void*,
                             const void*,
                             const void*,
                             const void*,
                             const void*,
                             const void*,
                             const void*,
                             void* result,
                             const void*,
                             const Algorithm*,
                             void* workspace,
                             size_t,
                             void* stream) {
    void* written[] = {result, workspace};
    void* parameters[] = {static_cast<void*>(written), nullptr};
    launch_empty_kernel(stream, parameters);
    return kSuccess;
}

FT_EXPORT int cublasLtMatrixTransform(const void*,
                                      const void*,
                                      const void*,
                                      const void*,
                                      const void*,
                                      const void*,
                                      const void*,
                                      const void*,
                                      void* result,
                                      const void*,
                                      void* stream) {
    void* parameters[] = {static_cast<void*>(&result), nullptr};
    launch_empty_kernel(stream, parameters);
    return kSuccess;
}

#include "libraries/cublasLt.def"

}  // extern "C"
