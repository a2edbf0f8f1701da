// cuDNN: handles, tensors and filters. All other functions come from cudnn.def and the other files.
#include "libraries/cudnn.h"

#include "libraries/def_functions.h"
#include "libraries/kernel_launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace fragtrace::vgpu::cudnn {

uint64_t bytes_of_type(int type, uint64_t elements) {
    // By number of the type: float, double, half, int8, int32, int8x4, uint8, uint8x4, int8x32,
    // bfloat16, int64, bool, and two kinds of 8-bit float.
    static constexpr uint8_t kBytes[] = {4, 8, 2, 1, 4, 4, 1, 4, 32, 2, 8, 1, 1, 1};
    const bool known = type >= 0 && type < static_cast<int>(sizeof kBytes);
    return elements * (known ? kBytes[type] : 4);
}

uint64_t elements_of(const Tensor* tensor) {
    uint64_t elements = 1;
    for (int i = 0; i < tensor->dims; ++i) {
        elements *= tensor->size[i] > 0 ? static_cast<uint64_t>(tensor->size[i]) : 0;
    }
    return tensor->dims > 0 ? elements : 0;
}

// From the first to the last element.
uint64_t bytes_of(const Tensor* tensor) {
    uint64_t last = 0;
    for (int i = 0; i < tensor->dims; ++i) {
        if (tensor->size[i] <= 0) return 0;
        const auto stride = static_cast<uint64_t>(tensor->stride[i] > 0 ? tensor->stride[i] : 0);
        last += static_cast<uint64_t>(tensor->size[i] - 1) * stride;
    }
    return tensor->dims > 0 ? bytes_of_type(tensor->type, last + 1) : 0;
}

uint64_t transposed_bytes(uint64_t bytes, int64_t channels, int64_t channel_stride) {
    return channels > 1 && channel_stride != 1 ? bytes : 0;
}

int make(void** out, size_t bytes) {
    if (out == nullptr) return kBadParameter;
    *out = calloc(1, bytes);
    return *out != nullptr ? kSuccess : kNoHostMemory;
}

void set_packed(Tensor* tensor, int type, int dims, const int* size, bool channels_last) {
    tensor->type = type;
    tensor->format = channels_last ? 1 : 0;
    tensor->dims = dims;
    for (int i = 0; i < dims; ++i)
        tensor->size[i] = size[i];
    int stride = 1;
    if (channels_last && dims > 2) {
        tensor->stride[1] = 1;
        stride = size[1];
    }
    for (int i = dims - 1; i >= 0; --i) {
        if (channels_last && dims > 2 && i == 1) continue;
        tensor->stride[i] = stride;
        stride *= size[i];
    }
}

namespace {

// Newer than any program was built with: programs refuse an older cuDNN of the same major version.
constexpr size_t kVersion[] = {9, 99, 0};

bool has_room(int dims) {
    return dims >= 1 && dims <= kMostDims;
}

void get_ints(const int* from, int count, int* to) {
    for (int i = 0; to != nullptr && i < count; ++i)
        to[i] = from[i];
}

void get(int value, int* out) {
    if (out != nullptr) *out = value;
}

int compute(const Handle* handle, void** parameters) {
    if (handle == nullptr) return kBadParameter;
    launch_empty_kernel(handle->stream, parameters);
    return kSuccess;
}

}  // namespace

}  // namespace fragtrace::vgpu::cudnn

using namespace fragtrace::vgpu::cudnn;
using fragtrace::vgpu::launch_empty_kernel;

extern "C" {

FT_EXPORT int cudnnCreate(void** out) {
    return make(out, sizeof(Handle));
}

FT_EXPORT int cudnnDestroy(Handle* handle) {
    free(handle);
    return kSuccess;
}

FT_EXPORT int cudnnSetStream(Handle* handle, void* stream) {
    if (handle == nullptr) return kBadParameter;
    handle->stream = stream;
    return kSuccess;
}

FT_EXPORT int cudnnGetStream(const Handle* handle, void** stream) {
    if (handle == nullptr || stream == nullptr) return kBadParameter;
    *stream = handle->stream;
    return kSuccess;
}

FT_EXPORT size_t cudnnGetVersion(void) {
    return kVersion[0] * 10000 + kVersion[1] * 100 + kVersion[2];
}

FT_EXPORT size_t cudnnGetMaxDeviceVersion(void) {
    return 1300;
}

FT_EXPORT size_t cudnnGetCudartVersion(void) {
    return 13000;
}

FT_EXPORT int cudnnGetProperty(int type, int* value) {
    if (value == nullptr || type < 0 || type > 2) return kBadParameter;
    *value = static_cast<int>(kVersion[type]);
    return kSuccess;
}

FT_EXPORT const char* cudnnGetErrorString(int status) {
    switch (status) {
        case kSuccess:
            return "CUDNN_STATUS_SUCCESS";
        case kBadParameter:
            return "CUDNN_STATUS_BAD_PARAM";
        case kNotSupported:
            return "CUDNN_STATUS_NOT_SUPPORTED";
        default:
            return "CUDNN_STATUS_INTERNAL_ERROR";
    }
}

FT_EXPORT void cudnnGetLastErrorString(char* message, size_t size) {
    if (message != nullptr && size > 0) {
        snprintf(message, size, "an error of the virtual cuDNN");
    }
}

FT_EXPORT int cudnnQueryRuntimeError(Handle*, int* status, int, void*) {
    get(kSuccess, status);
    return kSuccess;
}

// ---- tensors and filters ------------------------------------------------------------------------

FT_EXPORT int cudnnCreateTensorDescriptor(void** out) {
    return make(out, sizeof(Tensor));
}

FT_EXPORT int cudnnCreateFilterDescriptor(void** out) {
    return make(out, sizeof(Tensor));
}

FT_EXPORT int cudnnDestroyTensorDescriptor(Tensor* tensor) {
    free(tensor);
    return kSuccess;
}

FT_EXPORT int cudnnDestroyFilterDescriptor(Tensor* filter) {
    free(filter);
    return kSuccess;
}

FT_EXPORT int cudnnSetTensorNdDescriptorEx(
    Tensor* tensor, int format, int type, int dims, const int* size) {
    if (tensor == nullptr || size == nullptr || !has_room(dims)) return kBadParameter;
    set_packed(tensor, type, dims, size, format == 1);
    return kSuccess;
}

FT_EXPORT int cudnnSetTensor4dDescriptor(
    Tensor* tensor, int format, int type, int n, int c, int h, int w) {
    const int size[] = {n, c, h, w};
    return cudnnSetTensorNdDescriptorEx(tensor, format, type, 4, size);
}

FT_EXPORT int cudnnSetTensorNdDescriptor(
    Tensor* tensor, int type, int dims, const int* size, const int* stride) {
    if (tensor == nullptr || size == nullptr || stride == nullptr || !has_room(dims)) {
        return kBadParameter;
    }
    tensor->type = type;
    tensor->format = 0;
    tensor->dims = dims;
    get_ints(size, dims, tensor->size);
    get_ints(stride, dims, tensor->stride);
    return kSuccess;
}

FT_EXPORT int cudnnSetTensor4dDescriptorEx(Tensor* tensor,
                                           int type,
                                           int n,
                                           int c,
                                           int h,
                                           int w,
                                           int n_stride,
                                           int c_stride,
                                           int h_stride,
                                           int w_stride) {
    const int size[] = {n, c, h, w};
    const int stride[] = {n_stride, c_stride, h_stride, w_stride};
    return cudnnSetTensorNdDescriptor(tensor, type, 4, size, stride);
}

FT_EXPORT int cudnnGetTensorNdDescriptor(
    const Tensor* tensor, int wanted, int* type, int* dims, int* size, int* stride) {
    if (tensor == nullptr) return kBadParameter;
    const int count = wanted < tensor->dims ? wanted : tensor->dims;
    get(tensor->type, type);
    get(tensor->dims, dims);
    get_ints(tensor->size, count, size);
    get_ints(tensor->stride, count, stride);
    return kSuccess;
}

FT_EXPORT int cudnnGetTensor4dDescriptor(const Tensor* tensor,
                                         int* type,
                                         int* n,
                                         int* c,
                                         int* h,
                                         int* w,
                                         int* n_stride,
                                         int* c_stride,
                                         int* h_stride,
                                         int* w_stride) {
    if (tensor == nullptr) return kBadParameter;
    get(tensor->type, type);
    int* const sizes[] = {n, c, h, w};
    int* const strides[] = {n_stride, c_stride, h_stride, w_stride};
    for (int i = 0; i < 4; ++i) {
        get(tensor->size[i], sizes[i]);
        get(tensor->stride[i], strides[i]);
    }
    return kSuccess;
}

FT_EXPORT int cudnnGetTensorSizeInBytes(const Tensor* tensor, size_t* bytes) {
    if (tensor == nullptr || bytes == nullptr) return kBadParameter;
    *bytes = bytes_of(tensor);
    return kSuccess;
}

FT_EXPORT int cudnnSetFilterNdDescriptor(
    Tensor* filter, int type, int format, int dims, const int* size) {
    return cudnnSetTensorNdDescriptorEx(filter, format, type, dims, size);
}

FT_EXPORT int cudnnSetFilter4dDescriptor(
    Tensor* filter, int type, int format, int k, int c, int h, int w) {
    return cudnnSetTensor4dDescriptor(filter, format, type, k, c, h, w);
}

FT_EXPORT int cudnnGetFilterNdDescriptor(
    const Tensor* filter, int wanted, int* type, int* format, int* dims, int* size) {
    if (filter == nullptr) return kBadParameter;
    get(filter->format, format);
    return cudnnGetTensorNdDescriptor(filter, wanted, type, dims, size, nullptr);
}

FT_EXPORT int cudnnGetFilter4dDescriptor(
    const Tensor* filter, int* type, int* format, int* k, int* c, int* h, int* w) {
    if (filter == nullptr) return kBadParameter;
    get(filter->format, format);
    return cudnnGetTensor4dDescriptor(filter, type, k, c, h, w, nullptr, nullptr, nullptr, nullptr);
}

FT_EXPORT int cudnnGetFilterSizeInBytes(const Tensor* filter, size_t* bytes) {
    return cudnnGetTensorSizeInBytes(filter, bytes);
}

// One value per channel (mode 1, spatial) or per channel and place.
FT_EXPORT int cudnnDeriveBNTensorDescriptor(Tensor* derived, const Tensor* x, int mode) {
    if (derived == nullptr || x == nullptr || x->dims < 2) return kBadParameter;
    int size[kMostDims];
    for (int i = 0; i < x->dims; ++i)
        size[i] = i == 1 || (mode == 0 && i > 1) ? x->size[i] : 1;
    // Statistics of half-precision values are floats.
    const bool half = x->type == 2 || x->type == 9;
    set_packed(derived, half ? 0 : x->type, x->dims, size, false);
    return kSuccess;
}

// ---- computations and the rest ------------------------------------------------------------------

#define FT_MISSING(name)                          \
    FT_EXPORT int name(void) {                    \
        static unsigned char said;                \
        fragtrace_vgpu_unsupported(#name, &said); \
        return kNotSupported;                     \
    }
#include "libraries/cudnn.def"

}  // extern "C"
