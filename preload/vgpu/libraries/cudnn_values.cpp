// cuDNN: descriptors that only keep values, and dropout.
#include "libraries/cudnn.h"

#include <stdlib.h>

using namespace fragtrace::vgpu::cudnn;

namespace {

// Descriptors that keep a few values of each kind.
struct Values {
    int integers[20];
    double reals[4];
    void* pointer;
};

void get(int value, int* out) {
    if (out != nullptr) *out = value;
}

}  // namespace

extern "C" {

// ---- descriptors that keep values ---------------------------------------------------------------

#define FT_KEEPS(kind, structure)                                \
    FT_EXPORT int cudnnCreate##kind##Descriptor(void** out) {    \
        return make(out, sizeof(structure));                     \
    }                                                            \
    FT_EXPORT int cudnnDestroy##kind##Descriptor(void* keeper) { \
        free(keeper);                                            \
        return kSuccess;                                         \
    }
FT_KEEPS(Activation, Values)
FT_KEEPS(Attn, Values)
FT_KEEPS(Convolution, Convolution)
FT_KEEPS(CTCLoss, Values)
FT_KEEPS(Dropout, Dropout)
FT_KEEPS(LRN, Values)
FT_KEEPS(OpTensor, Values)
FT_KEEPS(Pooling, Pooling)
FT_KEEPS(ReduceTensor, Values)
FT_KEEPS(SeqData, Values)
FT_KEEPS(SpatialTransformer, Values)
FT_KEEPS(TensorTransform, Values)

FT_EXPORT int cudnnSetActivationDescriptor(Values* kept, int mode, int nan, double coefficient) {
    if (kept == nullptr) return kBadParameter;
    kept->integers[0] = mode;
    kept->integers[1] = nan;
    kept->reals[0] = coefficient;
    return kSuccess;
}

FT_EXPORT int cudnnGetActivationDescriptor(const Values* kept,
                                           int* mode,
                                           int* nan,
                                           double* coefficient) {
    if (kept == nullptr) return kBadParameter;
    get(kept->integers[0], mode);
    get(kept->integers[1], nan);
    if (coefficient != nullptr) *coefficient = kept->reals[0];
    return kSuccess;
}

FT_EXPORT int cudnnSetActivationDescriptorSwishBeta(Values* kept, double beta) {
    if (kept == nullptr) return kBadParameter;
    kept->reals[1] = beta;
    return kSuccess;
}

FT_EXPORT int cudnnGetActivationDescriptorSwishBeta(const Values* kept, double* beta) {
    if (kept == nullptr || beta == nullptr) return kBadParameter;
    *beta = kept->reals[1];
    return kSuccess;
}

FT_EXPORT int cudnnSetLRNDescriptor(
    Values* kept, unsigned window, double alpha, double beta, double k) {
    if (kept == nullptr) return kBadParameter;
    kept->integers[0] = static_cast<int>(window);
    kept->reals[0] = alpha;
    kept->reals[1] = beta;
    kept->reals[2] = k;
    return kSuccess;
}

FT_EXPORT int cudnnSetOpTensorDescriptor(Values* kept, int operation, int type, int nan) {
    if (kept == nullptr) return kBadParameter;
    kept->integers[0] = operation;
    kept->integers[1] = type;
    kept->integers[2] = nan;
    return kSuccess;
}

FT_EXPORT int cudnnGetOpTensorDescriptor(const Values* kept, int* operation, int* type, int* nan) {
    if (kept == nullptr) return kBadParameter;
    get(kept->integers[0], operation);
    get(kept->integers[1], type);
    get(kept->integers[2], nan);
    return kSuccess;
}

FT_EXPORT int cudnnSetReduceTensorDescriptor(
    Values* kept, int operation, int type, int nan, int indices, int index_type) {
    if (kept == nullptr) return kBadParameter;
    const int values[] = {operation, type, nan, indices, index_type};
    for (int i = 0; i < 5; ++i) {
        kept->integers[i] = values[i];
    }
    return kSuccess;
}

FT_EXPORT int cudnnGetReduceTensorDescriptor(
    const Values* kept, int* operation, int* type, int* nan, int* indices, int* index_type) {
    if (kept == nullptr) return kBadParameter;
    int* const out[] = {operation, type, nan, indices, index_type};
    for (int i = 0; i < 5; ++i)
        get(kept->integers[i], out[i]);
    return kSuccess;
}

#define FT_ACCEPTS(name)                                   \
    FT_EXPORT int name(void* kept) {                       \
        return kept == nullptr ? kBadParameter : kSuccess; \
    }
FT_ACCEPTS(cudnnSetCTCLossDescriptor)
FT_ACCEPTS(cudnnSetCTCLossDescriptorEx)
FT_ACCEPTS(cudnnSetCTCLossDescriptor_v8)
FT_ACCEPTS(cudnnSetCTCLossDescriptor_v9)
FT_ACCEPTS(cudnnSetSpatialTransformerNdDescriptor)
FT_ACCEPTS(cudnnSetTensorTransformDescriptor)

// ---- dropout ------------------------------------------------------------------------------------

FT_EXPORT int cudnnSetDropoutDescriptor(
    Dropout* kept, Handle*, float share, void* states, size_t, unsigned long long seed) {
    if (kept == nullptr) return kBadParameter;
    *kept = {share, states, seed};
    return kSuccess;
}

FT_EXPORT int cudnnRestoreDropoutDescriptor(Dropout* kept,
                                            Handle* handle,
                                            float share,
                                            void* states,
                                            size_t bytes,
                                            unsigned long long seed) {
    return cudnnSetDropoutDescriptor(kept, handle, share, states, bytes, seed);
}

FT_EXPORT int cudnnGetDropoutDescriptor(
    const Dropout* kept, Handle*, float* share, void** states, unsigned long long* seed) {
    if (kept == nullptr) return kBadParameter;
    if (share != nullptr) *share = kept->share;
    if (states != nullptr) *states = kept->states;
    if (seed != nullptr) *seed = kept->seed;
    return kSuccess;
}

// Assumption: one state of 48 bytes for each of the threads of an H100 (132 * 2,048).
FT_EXPORT int cudnnDropoutGetStatesSize(Handle*, size_t* bytes) {
    if (bytes == nullptr) return kBadParameter;
    *bytes = size_t{132} * 2048 * 48;
    return kSuccess;
}

// A bit per element.
FT_EXPORT int cudnnDropoutGetReserveSpaceSize(const Tensor* x, size_t* bytes) {
    if (x == nullptr || bytes == nullptr) return kBadParameter;
    *bytes = (elements_of(x) + 7) / 8;
    return kSuccess;
}

}  // extern "C"
