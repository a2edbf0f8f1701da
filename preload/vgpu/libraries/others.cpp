// cuFFT, cuSOLVER, cuSPARSE and cuRAND in one library, for machines without NVIDIA's libraries. A
// program that loads them by name finds them (README.md, "Without NVIDIA's libraries"). Handles can
// be made; plans of cuFFT take no workspace; everything else that is missing here is an error of
// the program's own wrapper.
#include "common/stub.h"
#include "libraries/kernel_launch.h"

#include <cstddef>
#include <cstdint>
#include <stdlib.h>

using fragtrace::vgpu::launch_empty_kernel;

namespace {

constexpr int kSuccess = 0;
constexpr int kAllocFailed = 2;  // in cuFFT, cuSOLVER and cuSPARSE
constexpr int kInvalidValue = 3;

struct Handle {
    void* stream;
};

int make(Handle** out) {
    if (out == nullptr) return kInvalidValue;
    *out = static_cast<Handle*>(calloc(1, sizeof(Handle)));
    return *out != nullptr ? kSuccess : kAllocFailed;
}

int set(Handle* handle, void* stream) {
    if (handle == nullptr) return kInvalidValue;
    handle->stream = stream;
    return kSuccess;
}

int get(const Handle* handle, void** stream) {
    if (handle == nullptr || stream == nullptr) return kInvalidValue;
    *stream = handle->stream;
    return kSuccess;
}

// cuFFT's handles are numbers. One stream per plan, the last one for plans beyond the table.
constexpr int kMostPlans = 1024;
void* g_streams[kMostPlans];
int g_plans;

int place_of(int plan) {
    return plan >= 1 && plan < kMostPlans ? plan : 0;
}

int new_plan(int* plan) {
    if (plan == nullptr) return kInvalidValue;
    *plan = __atomic_add_fetch(&g_plans, 1, __ATOMIC_RELAXED) % kMostPlans;
    return kSuccess;
}

int transform(int plan, void* input, void* output) {
    void* registers[] = {input, output};
    void* parameters[] = {static_cast<void*>(registers), nullptr};
    launch_empty_kernel(g_streams[place_of(plan)], parameters);
    return kSuccess;
}

}  // namespace

extern "C" {

#define FT_HANDLES(create, destroy, set_stream, get_stream)         \
    FT_EXPORT int create(Handle** out) {                            \
        return make(out);                                           \
    }                                                               \
    FT_EXPORT int destroy(Handle* handle) {                         \
        free(handle);                                               \
        return kSuccess;                                            \
    }                                                               \
    FT_EXPORT int set_stream(Handle* handle, void* stream) {        \
        return set(handle, stream);                                 \
    }                                                               \
    FT_EXPORT int get_stream(const Handle* handle, void** stream) { \
        return get(handle, stream);                                 \
    }
FT_HANDLES(cusolverDnCreate, cusolverDnDestroy, cusolverDnSetStream, cusolverDnGetStream)
FT_HANDLES(cusparseCreate, cusparseDestroy, cusparseSetStream, cusparseGetStream)

FT_EXPORT int cufftCreate(int* plan) {
    return new_plan(plan);
}

FT_EXPORT int cufftDestroy(int plan) {
    g_streams[place_of(plan)] = nullptr;
    return kSuccess;
}

FT_EXPORT int cufftSetStream(int plan, void* stream) {
    g_streams[place_of(plan)] = stream;
    return kSuccess;
}

FT_EXPORT int cufftSetAutoAllocation(int, int) {
    return kSuccess;
}

FT_EXPORT int cufftSetWorkArea(int, void*) {
    return kSuccess;
}

FT_EXPORT int cufftGetSize(int, size_t* bytes) {
    if (bytes != nullptr) *bytes = 0;
    return kSuccess;
}

FT_EXPORT int cufftGetVersion(int* version) {
    if (version == nullptr) return kInvalidValue;
    *version = 12000;
    return kSuccess;
}

FT_EXPORT int cufftPlan1d(int* plan, int, int, int) {
    return new_plan(plan);
}

FT_EXPORT int cufftPlan2d(int* plan, int, int, int) {
    return new_plan(plan);
}

FT_EXPORT int cufftPlan3d(int* plan, int, int, int, int) {
    return new_plan(plan);
}

FT_EXPORT int cufftPlanMany(int* plan, int, int*, int*, int, int, int*, int, int, int, int) {
    return new_plan(plan);
}

FT_EXPORT int cufftMakePlan1d(int, int, int, int, size_t* bytes) {
    return cufftGetSize(0, bytes);
}

FT_EXPORT int cufftMakePlan2d(int, int, int, int, size_t* bytes) {
    return cufftGetSize(0, bytes);
}

FT_EXPORT int cufftMakePlan3d(int, int, int, int, int, size_t* bytes) {
    return cufftGetSize(0, bytes);
}

FT_EXPORT int cufftMakePlanMany(
    int, int, int*, int*, int, int, int*, int, int, int, int, size_t* bytes) {
    return cufftGetSize(0, bytes);
}

#define FT_TRANSFORM(name)                                    \
    FT_EXPORT int name(int plan, void* input, void* output) { \
        return transform(plan, input, output);                \
    }
FT_TRANSFORM(cufftExecC2C)
FT_TRANSFORM(cufftExecC2R)
FT_TRANSFORM(cufftExecD2Z)
FT_TRANSFORM(cufftExecR2C)
FT_TRANSFORM(cufftExecZ2D)
FT_TRANSFORM(cufftExecZ2Z)

FT_EXPORT int curandCreateGenerator(Handle** out, int) {
    return make(out);
}

FT_EXPORT int curandDestroyGenerator(Handle* handle) {
    free(handle);
    return kSuccess;
}

FT_EXPORT int curandSetStream(Handle* handle, void* stream) {
    return set(handle, stream);
}

FT_EXPORT int curandSetPseudoRandomGeneratorSeed(Handle*, unsigned long long) {
    return kSuccess;
}

FT_EXPORT int curandSetGeneratorOffset(Handle*, unsigned long long) {
    return kSuccess;
}

}  // extern "C"
