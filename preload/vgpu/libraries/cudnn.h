// What the files of the cuDNN stand-in share. Written from the documented interface (version 9), so
// the build needs no cuDNN headers. Descriptors keep what a program sets, shapes follow from them,
// and each computation is one kernel that computes nothing.
#pragma once

#include "common/stub.h"

#include <cstddef>
#include <cstdint>

namespace fragtrace::vgpu::cudnn {

constexpr int kSuccess = 0;
constexpr int kBadParameter = 2000;
constexpr int kNotSupported = 3000;
constexpr int kNoHostMemory = 4003;

constexpr int kMostDims = 8;  // of a tensor, in cuDNN

struct Handle {
    void* stream;
};

// A tensor or a filter.
struct Tensor {
    int type;
    int format;  // a tensor that is given with strides has 0
    int dims;
    int size[kMostDims];
    int stride[kMostDims];  // in elements
};

struct Convolution {
    int dims;  // spatial ones
    int pad[kMostDims];
    int stride[kMostDims];
    int dilation[kMostDims];
    int mode;
    int type;
    int groups;  // 0 = 1
    int math;
    int reorder;
};

struct Pooling {
    int mode;
    int nan;
    int dims;  // spatial ones
    int window[kMostDims];
    int pad[kMostDims];
    int stride[kMostDims];
};

struct Dropout {
    float share;
    void* states;
    unsigned long long seed;
};

uint64_t bytes_of_type(int type, uint64_t elements);
uint64_t elements_of(const Tensor* tensor);
uint64_t bytes_of(const Tensor* tensor);

// The model of workspaces (an assumption, see README.md). Bytes of a tensor that has to be copied
// to channels-last: 0 if its channels already lie side by side.
uint64_t transposed_bytes(uint64_t bytes, int64_t channels, int64_t channel_stride);
// Filter gradients are summed in float.
constexpr uint64_t kSumBytes = 4;

// Zeroed memory for a descriptor.
int make(void** out, size_t bytes);

// Sets a packed NCHW tensor.
void set_packed(Tensor* tensor, int type, int dims, const int* size, bool channels_last);

}  // namespace fragtrace::vgpu::cudnn
