// cuDNN: recurrent networks. Parameters have their documented number and shape, so weight spaces
// have the real size. Workspaces and reserve spaces are a model (README.md).
#include "libraries/cudnn.h"

#include <stdlib.h>
#include <string.h>

using namespace fragtrace::vgpu::cudnn;

namespace {

constexpr int kLstm = 2;  // of the modes relu, tanh, LSTM, GRU
constexpr int kGru = 3;

struct Network {
    int algorithm;
    int mode;
    int bias;       // 0: none; 3: two vectors per gate, 1 and 2: one
    int direction;  // 1: both
    int input_mode;
    int type;
    int precision;
    int math;
    int input;
    int hidden;
    int projection;
    int layers;
    void* dropout;
    uint32_t flags;
    // of both calls to set a clip
    int clip_mode;
    int clip_nan;
    double low;
    double high;
};

struct Sequences {
    int type;
    int layout;
    int longest;
    int batch;
    int vector;
    int* lengths;  // `batch` of them
};

uint64_t gates_of(const Network& network) {
    return network.mode == kLstm ? 4 : (network.mode == kGru ? 3 : 1);
}

uint64_t directions_of(const Network& network) {
    return network.direction == 1 ? 2 : 1;
}

// Width of what a layer passes on, in one direction.
uint64_t output_of(const Network& network) {
    const int width = network.projection > 0 ? network.projection : network.hidden;
    return static_cast<uint64_t>(width > 0 ? width : 0);
}

uint64_t hidden_of(const Network& network) {
    return static_cast<uint64_t>(network.hidden > 0 ? network.hidden : 0);
}

uint64_t input_of_layer(const Network& network, uint64_t layer) {
    return layer == 0 ? static_cast<uint64_t>(network.input > 0 ? network.input : 0)
                      : output_of(network) * directions_of(network);
}

uint64_t biases_of(const Network& network) {
    return network.bias == 0 ? 0 : (network.bias == 3 ? 2 : 1);
}

// Elements of a layer in one direction: matrices for the input and for the state, then biases.
uint64_t matrices_of_layer(const Network& network, uint64_t layer) {
    const bool projects = output_of(network) != hidden_of(network);
    return gates_of(network) * hidden_of(network) *
               (input_of_layer(network, layer) + output_of(network)) +
           (projects ? hidden_of(network) * output_of(network) : 0);
}

uint64_t elements_of_layer(const Network& network, uint64_t layer) {
    return matrices_of_layer(network, layer) +
           biases_of(network) * gates_of(network) * hidden_of(network);
}

uint64_t weights_of(const Network& network) {
    uint64_t elements = 0;
    for (uint64_t layer = 0; layer < static_cast<uint64_t>(network.layers); ++layer) {
        elements += directions_of(network) * elements_of_layer(network, layer);
    }
    return elements;
}

}  // namespace

extern "C" {

FT_EXPORT int cudnnCreateRNNDescriptor(void** out) {
    return make(out, sizeof(Network));
}

FT_EXPORT int cudnnDestroyRNNDescriptor(Network* network) {
    free(network);
    return kSuccess;
}

FT_EXPORT int cudnnSetRNNDescriptor_v8(Network* network,
                                       int algorithm,
                                       int mode,
                                       int bias,
                                       int direction,
                                       int input_mode,
                                       int type,
                                       int precision,
                                       int math,
                                       int32_t input,
                                       int32_t hidden,
                                       int32_t projection,
                                       int32_t layers,
                                       void* dropout,
                                       uint32_t flags) {
    constexpr int32_t kMost = 1 << 24;
    if (network == nullptr || input < 0 || input > kMost || hidden < 1 || hidden > kMost ||
        projection > hidden || layers < 1 || layers > 4096) {
        return kBadParameter;
    }
    *network = {};
    network->algorithm = algorithm;
    network->mode = mode;
    network->bias = bias;
    network->direction = direction;
    network->input_mode = input_mode;
    network->type = type;
    network->precision = precision;
    network->math = math;
    network->input = input;
    network->hidden = hidden;
    network->projection = projection;
    network->layers = layers;
    network->dropout = dropout;
    network->flags = flags;
    return kSuccess;
}

FT_EXPORT int cudnnRNNSetClip_v8(Network* network, int mode, int nan, double low, double high) {
    if (network == nullptr) return kBadParameter;
    network->clip_mode = mode;
    network->clip_nan = nan;
    network->low = low;
    network->high = high;
    return kSuccess;
}

FT_EXPORT int cudnnRNNSetClip_v9(Network* network, int mode, double low, double high) {
    return cudnnRNNSetClip_v8(network, mode, 0, low, high);
}

FT_EXPORT int cudnnCreateRNNDataDescriptor(void** out) {
    return make(out, sizeof(Sequences));
}

FT_EXPORT int cudnnDestroyRNNDataDescriptor(Sequences* data) {
    if (data != nullptr) free(data->lengths);
    free(data);
    return kSuccess;
}

FT_EXPORT int cudnnSetRNNDataDescriptor(Sequences* data,
                                        int type,
                                        int layout,
                                        int longest,
                                        int batch,
                                        int vector,
                                        const int* lengths,
                                        void*) {
    if (data == nullptr || longest < 1 || batch < 1 || vector < 1 || lengths == nullptr) {
        return kBadParameter;
    }
    const size_t bytes = static_cast<size_t>(batch) * sizeof(int);
    auto* copy = static_cast<int*>(malloc(bytes));
    if (copy == nullptr) return kNoHostMemory;
    memcpy(copy, lengths, bytes);
    free(data->lengths);
    *data = {type, layout, longest, batch, vector, copy};
    return kSuccess;
}

FT_EXPORT int cudnnGetRNNDataDescriptor(const Sequences* data,
                                        int* type,
                                        int* layout,
                                        int* longest,
                                        int* batch,
                                        int* vector,
                                        int wanted,
                                        int* lengths,
                                        void*) {
    if (data == nullptr) return kBadParameter;
    const int values[] = {data->type, data->layout, data->longest, data->batch, data->vector};
    int* const out[] = {type, layout, longest, batch, vector};
    for (int i = 0; i < 5; ++i) {
        if (out[i] != nullptr) *out[i] = values[i];
    }
    for (int i = 0; data->lengths != nullptr && lengths != nullptr && i < wanted && i < data->batch;
         ++i) {
        lengths[i] = data->lengths[i];
    }
    return kSuccess;
}

FT_EXPORT int cudnnGetRNNWeightSpaceSize(void*, const Network* network, size_t* bytes) {
    if (network == nullptr || bytes == nullptr) return kBadParameter;
    *bytes = bytes_of_type(network->type, weights_of(*network));
    return kSuccess;
}

// Per step and layer: the gates before and after activation, and the state. The backward pass needs
// them (reserve); a pass itself needs one layer of them.
FT_EXPORT int cudnnGetRNNTempSpaceSizes(void*,
                                        const Network* network,
                                        int training,
                                        const Sequences* x,
                                        size_t* workspace,
                                        size_t* reserve) {
    if (network == nullptr || x == nullptr) return kBadParameter;
    const uint64_t steps = static_cast<uint64_t>(x->longest) * static_cast<uint64_t>(x->batch);
    const uint64_t per_layer = bytes_of_type(
        network->type,
        steps * directions_of(*network) * (gates_of(*network) + 1) * hidden_of(*network));
    if (workspace != nullptr) *workspace = per_layer;
    if (reserve != nullptr) {
        *reserve = training == 1 ? per_layer * static_cast<uint64_t>(network->layers) : 0;
    }
    return kSuccess;
}

// The place of a matrix and of its bias. `part`: the gates' matrices for the input, then for the
// state.
FT_EXPORT int cudnnGetRNNWeightParams(void*,
                                      const Network* network,
                                      int32_t pseudo_layer,
                                      size_t,
                                      void* weights,
                                      int32_t part,
                                      Tensor* matrix,
                                      void** matrix_at,
                                      Tensor* bias,
                                      void** bias_at) {
    if (network == nullptr || pseudo_layer < 0 || part < 0) return kBadParameter;
    const uint64_t directions = directions_of(*network);
    const uint64_t layer = static_cast<uint64_t>(pseudo_layer) / directions;
    const uint64_t gates = gates_of(*network);
    if (layer >= static_cast<uint64_t>(network->layers)) return kBadParameter;
    uint64_t before = 0;
    for (uint64_t i = 0; i < layer; ++i)
        before += directions * elements_of_layer(*network, i);
    before += static_cast<uint64_t>(pseudo_layer) % directions * elements_of_layer(*network, layer);
    const uint64_t hidden = hidden_of(*network);
    const uint64_t wide = input_of_layer(*network, layer);
    const auto number = static_cast<uint64_t>(part);
    const bool of_state = number >= gates;
    const bool exists = number < 2 * gates;
    auto* base = static_cast<char*>(weights);
    const uint64_t columns = of_state ? output_of(*network) : wide;
    const uint64_t place =
        before + (of_state ? gates * hidden * wide + (number - gates) * hidden * columns
                           : number * hidden * columns);
    const bool has_bias =
        exists && (network->bias == 3 || (network->bias == 2) == of_state) && network->bias != 0;
    const uint64_t bias_number = network->bias == 3 || !of_state ? number : number - gates;
    const uint64_t bias_place = before + matrices_of_layer(*network, layer) + bias_number * hidden;
    const int rows = static_cast<int>(hidden);
    const int matrix_size[] = {1, rows, exists ? static_cast<int>(columns) : 0};
    const int bias_size[] = {1, rows, 1};
    if (matrix != nullptr) set_packed(matrix, network->type, 3, matrix_size, false);
    if (bias != nullptr) set_packed(bias, network->type, 3, bias_size, false);
    if (matrix_at != nullptr) {
        *matrix_at = exists ? base + bytes_of_type(network->type, place) : nullptr;
    }
    if (bias_at != nullptr) {
        *bias_at = has_bias ? base + bytes_of_type(network->type, bias_place) : nullptr;
    }
    return kSuccess;
}

}  // extern "C"
