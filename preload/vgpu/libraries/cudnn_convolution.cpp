// cuDNN: convolutions and pooling, the shapes of their results, and the model of workspaces.
#include "libraries/cudnn.h"

using namespace fragtrace::vgpu::cudnn;

namespace {

// The results of cudnnFind* and cudnnGet*_v7.
struct Performance {
    int algorithm;
    int status;
    float milliseconds;
    size_t memory;
    int determinism;
    int math;
    int reserved[3];
};

uint64_t transposed(const Tensor* tensor) {
    return tensor->dims > 1 ? transposed_bytes(bytes_of(tensor), tensor->size[1], tensor->stride[1])
                            : 0;
}

// `summed`: the filter's gradient, or null.
uint64_t workspace(const Tensor* x, const Tensor* w, const Tensor* y, const Tensor* summed) {
    const uint64_t sums = summed != nullptr ? elements_of(summed) * kSumBytes : 0;
    return transposed(x) + transposed(w) + transposed(y) + sums;
}

int find(uint64_t memory, int math, int wanted, int* returned, Performance* result) {
    if (wanted < 1 || result == nullptr) return kBadParameter;
    // Algorithm 1 is the implicit matrix product in all three directions.
    *result = {1, kSuccess, 0.01f, memory, 1, math, {}};
    if (returned != nullptr) *returned = 1;
    return kSuccess;
}

int output_of(int size, int pad, int window, int dilation, int stride) {
    const int covered = 1 + (window - 1) * dilation;
    const int room = size + 2 * pad - covered;
    return stride < 1 || room < 0 ? 0 : 1 + room / stride;
}

bool fits(const Tensor* x, int spatial) {
    return x->dims == spatial + 2;
}

}  // namespace

extern "C" {

FT_EXPORT int cudnnSetConvolutionNdDescriptor(Convolution* kept,
                                              int dims,
                                              const int* pad,
                                              const int* stride,
                                              const int* dilation,
                                              int mode,
                                              int type) {
    if (kept == nullptr || dims < 1 || dims > kMostDims - 2) return kBadParameter;
    kept->dims = dims;
    for (int i = 0; i < dims; ++i) {
        kept->pad[i] = pad[i];
        kept->stride[i] = stride[i];
        kept->dilation[i] = dilation[i];
    }
    kept->mode = mode;
    kept->type = type;
    return kSuccess;
}

FT_EXPORT int cudnnSetConvolution2dDescriptor(Convolution* kept,
                                              int pad_h,
                                              int pad_w,
                                              int u,
                                              int v,
                                              int down,
                                              int right,
                                              int mode,
                                              int type) {
    const int pad[] = {pad_h, pad_w};
    const int stride[] = {u, v};
    const int dilation[] = {down, right};
    return cudnnSetConvolutionNdDescriptor(kept, 2, pad, stride, dilation, mode, type);
}

FT_EXPORT int cudnnGetConvolutionNdDescriptor(const Convolution* kept,
                                              int wanted,
                                              int* dims,
                                              int* pad,
                                              int* stride,
                                              int* dilation,
                                              int* mode,
                                              int* type) {
    if (kept == nullptr) return kBadParameter;
    for (int i = 0; i < wanted && i < kept->dims; ++i) {
        pad[i] = kept->pad[i];
        stride[i] = kept->stride[i];
        dilation[i] = kept->dilation[i];
    }
    if (dims != nullptr) *dims = kept->dims;
    if (mode != nullptr) *mode = kept->mode;
    if (type != nullptr) *type = kept->type;
    return kSuccess;
}

#define FT_FIELD(suffix, field)                                                      \
    FT_EXPORT int cudnnSetConvolution##suffix(Convolution* kept, int value) {        \
        if (kept == nullptr) return kBadParameter;                                   \
        kept->field = value;                                                         \
        return kSuccess;                                                             \
    }                                                                                \
    FT_EXPORT int cudnnGetConvolution##suffix(const Convolution* kept, int* value) { \
        if (kept == nullptr || value == nullptr) return kBadParameter;               \
        *value = kept->field;                                                        \
        return kSuccess;                                                             \
    }
FT_FIELD(GroupCount, groups)
FT_FIELD(MathType, math)
FT_FIELD(ReorderType, reorder)

FT_EXPORT int cudnnGetConvolutionNdForwardOutputDim(
    const Convolution* kept, const Tensor* x, const Tensor* w, int dims, int* out) {
    if (kept == nullptr || x == nullptr || w == nullptr || out == nullptr || !fits(x, kept->dims) ||
        !fits(w, kept->dims) || dims != x->dims) {
        return kBadParameter;
    }
    out[0] = x->size[0];
    out[1] = w->size[0];
    for (int i = 0; i < kept->dims; ++i) {
        out[2 + i] = output_of(
            x->size[2 + i], kept->pad[i], w->size[2 + i], kept->dilation[i], kept->stride[i]);
    }
    return kSuccess;
}

FT_EXPORT int cudnnGetConvolution2dForwardOutputDim(
    const Convolution* kept, const Tensor* x, const Tensor* w, int* n, int* c, int* h, int* width) {
    int out[4] = {};
    const int status = cudnnGetConvolutionNdForwardOutputDim(kept, x, w, 4, out);
    if (status != kSuccess) return status;
    *n = out[0];
    *c = out[1];
    *h = out[2];
    *width = out[3];
    return kSuccess;
}

#define FT_COUNT(direction)                                                              \
    FT_EXPORT int cudnnGetConvolution##direction##AlgorithmMaxCount(void*, int* count) { \
        if (count == nullptr) return kBadParameter;                                      \
        *count = 1;                                                                      \
        return kSuccess;                                                                 \
    }
FT_COUNT(Forward)
FT_COUNT(BackwardData)
FT_COUNT(BackwardFilter)

// `first` and `third` are the input, the filter and the output in some order; `summed` is the
// filter's gradient, if it is the result.
#define FT_ALGORITHMS(direction, summed)                                                     \
    FT_EXPORT int cudnnGetConvolution##direction##WorkspaceSize(void*,                       \
                                                                const Tensor* first,         \
                                                                const Tensor* second,        \
                                                                const Convolution*,          \
                                                                const Tensor* third,         \
                                                                int,                         \
                                                                size_t* bytes) {             \
        if (first == nullptr || second == nullptr || third == nullptr || bytes == nullptr) { \
            return kBadParameter;                                                            \
        }                                                                                    \
        *bytes = workspace(first, second, third, summed);                                    \
        return kSuccess;                                                                     \
    }                                                                                        \
    FT_EXPORT int cudnnGetConvolution##direction##Algorithm_v7(void*,                        \
                                                               const Tensor* first,          \
                                                               const Tensor* second,         \
                                                               const Convolution* kept,      \
                                                               const Tensor* third,          \
                                                               int wanted,                   \
                                                               int* returned,                \
                                                               Performance* result) {        \
        if (first == nullptr || second == nullptr || third == nullptr || kept == nullptr) {  \
            return kBadParameter;                                                            \
        }                                                                                    \
        const uint64_t memory = workspace(first, second, third, summed);                     \
        return find(memory, kept->math, wanted, returned, result);                           \
    }                                                                                        \
    FT_EXPORT int cudnnFindConvolution##direction##Algorithm(void* handle,                   \
                                                             const Tensor* first,            \
                                                             const Tensor* second,           \
                                                             const Convolution* kept,        \
                                                             const Tensor* third,            \
                                                             int wanted,                     \
                                                             int* returned,                  \
                                                             Performance* result) {          \
        return cudnnGetConvolution##direction##Algorithm_v7(                                 \
            handle, first, second, kept, third, wanted, returned, result);                   \
    }                                                                                        \
    FT_EXPORT int cudnnFindConvolution##direction##AlgorithmEx(void* handle,                 \
                                                               const Tensor* first,          \
                                                               const void*,                  \
                                                               const Tensor* second,         \
                                                               const void*,                  \
                                                               const Convolution* kept,      \
                                                               const Tensor* third,          \
                                                               void*,                        \
                                                               int wanted,                   \
                                                               int* returned,                \
                                                               Performance* result) {        \
        return cudnnGetConvolution##direction##Algorithm_v7(                                 \
            handle, first, second, kept, third, wanted, returned, result);                   \
    }
FT_ALGORITHMS(Forward, nullptr)
FT_ALGORITHMS(BackwardData, nullptr)
FT_ALGORITHMS(BackwardFilter, third)

// ---- pooling ------------------------------------------------------------------------------------

FT_EXPORT int cudnnSetPoolingNdDescriptor(Pooling* kept,
                                          int mode,
                                          int nan,
                                          int dims,
                                          const int* window,
                                          const int* pad,
                                          const int* stride) {
    if (kept == nullptr || dims < 1 || dims > kMostDims - 2) return kBadParameter;
    kept->mode = mode;
    kept->nan = nan;
    kept->dims = dims;
    for (int i = 0; i < dims; ++i) {
        kept->window[i] = window[i];
        kept->pad[i] = pad[i];
        kept->stride[i] = stride[i];
    }
    return kSuccess;
}

FT_EXPORT int cudnnSetPooling2dDescriptor(
    Pooling* kept, int mode, int nan, int h, int w, int pad_h, int pad_w, int down, int right) {
    const int window[] = {h, w};
    const int pad[] = {pad_h, pad_w};
    const int stride[] = {down, right};
    return cudnnSetPoolingNdDescriptor(kept, mode, nan, 2, window, pad, stride);
}

FT_EXPORT int cudnnGetPoolingNdForwardOutputDim(const Pooling* kept,
                                                const Tensor* x,
                                                int dims,
                                                int* out) {
    if (kept == nullptr || x == nullptr || out == nullptr || !fits(x, kept->dims) ||
        dims != x->dims) {
        return kBadParameter;
    }
    out[0] = x->size[0];
    out[1] = x->size[1];
    for (int i = 0; i < kept->dims; ++i) {
        out[2 + i] = output_of(x->size[2 + i], kept->pad[i], kept->window[i], 1, kept->stride[i]);
    }
    return kSuccess;
}

FT_EXPORT int cudnnGetPooling2dForwardOutputDim(
    const Pooling* kept, const Tensor* x, int* n, int* c, int* h, int* w) {
    int out[4] = {};
    const int status = cudnnGetPoolingNdForwardOutputDim(kept, x, 4, out);
    if (status != kSuccess) return status;
    *n = out[0];
    *c = out[1];
    *h = out[2];
    *w = out[3];
    return kSuccess;
}

// ---- other workspaces ---------------------------------------------------------------------------

FT_EXPORT int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    void*, int, int, void*, void*, void*, void*, void*, size_t* bytes) {
    if (bytes == nullptr) return kBadParameter;
    *bytes = 0;
    return kSuccess;
}

FT_EXPORT int cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    void*, int, int, void*, void*, void*, void*, void*, void*, void*, size_t* bytes) {
    if (bytes == nullptr) return kBadParameter;
    *bytes = 0;
    return kSuccess;
}

// With an activation, its mask of a bit per element is kept for the backward pass.
FT_EXPORT int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    void*, int, int operations, void*, const Tensor* x, size_t* bytes) {
    if (x == nullptr || bytes == nullptr) return kBadParameter;
    *bytes = operations == 0 ? 0 : (elements_of(x) + 7) / 8;
    return kSuccess;
}

FT_EXPORT int cudnnGetReductionIndicesSize(
    void*, void*, const Tensor*, const Tensor* result, size_t* bytes) {
    if (result == nullptr || bytes == nullptr) return kBadParameter;
    *bytes = elements_of(result) * 4;
    return kSuccess;
}

FT_EXPORT int cudnnGetReductionWorkspaceSize(
    void*, void*, const Tensor* input, const Tensor*, size_t* bytes) {
    if (input == nullptr || bytes == nullptr) return kBadParameter;
    *bytes = bytes_of(input);
    return kSuccess;
}

// Twice the probabilities: forward and backward variables.
FT_EXPORT int cudnnGetCTCLossWorkspaceSize(
    void*, const Tensor* x, void*, const int*, const int*, const int*, int, void*, size_t* bytes) {
    if (x == nullptr || bytes == nullptr) return kBadParameter;
    *bytes = 2 * bytes_of(x);
    return kSuccess;
}

FT_EXPORT int cudnnGetCTCLossWorkspaceSize_v8(
    void*, int, void*, const Tensor* x, void*, size_t* bytes) {
    if (x == nullptr || bytes == nullptr) return kBadParameter;
    *bytes = 2 * bytes_of(x);
    return kSuccess;
}

}  // extern "C"
