// The virtual cuDNN: descriptors keep their values, shapes follow from them, workspaces follow the
// model of preload/vgpu/README.md, by both interfaces.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

int cudnnCreate(void** handle);
int cudnnDestroy(void* handle);
int cudnnSetStream(void* handle, void* stream);
int cudnnGetStream(void* handle, void** stream);
size_t cudnnGetVersion(void);
int cudnnCreateTensorDescriptor(void** out);
int cudnnDestroyTensorDescriptor(void* tensor);
int cudnnSetTensor4dDescriptor(void* tensor, int format, int type, int n, int c, int h, int w);
int cudnnGetTensorNdDescriptor(
    void* tensor, int wanted, int* type, int* dims, int* size, int* stride);
int cudnnGetTensorSizeInBytes(void* tensor, size_t* bytes);
int cudnnCreateFilterDescriptor(void** out);
int cudnnDestroyFilterDescriptor(void* filter);
int cudnnSetFilter4dDescriptor(void* filter, int type, int format, int k, int c, int h, int w);
int cudnnCreateConvolutionDescriptor(void** out);
int cudnnDestroyConvolutionDescriptor(void* kept);
int cudnnSetConvolution2dDescriptor(
    void* kept, int pad_h, int pad_w, int u, int v, int down, int right, int mode, int type);
int cudnnGetConvolution2dForwardOutputDim(
    void* kept, void* x, void* w, int* n, int* c, int* h, int* width);
int cudnnGetConvolutionForwardWorkspaceSize(
    void* handle, void* x, void* w, void* kept, void* y, int algorithm, size_t* bytes);
int cudnnGetConvolutionBackwardFilterWorkspaceSize(
    void* handle, void* x, void* dy, void* kept, void* dw, int algorithm, size_t* bytes);
int cudnnConvolutionForward(void* handle,
                            const void* alpha,
                            void* x,
                            const void* x_data,
                            void* w,
                            const void* w_data,
                            void* kept,
                            int algorithm,
                            void* workspace,
                            size_t bytes,
                            const void* beta,
                            void* y,
                            void* y_data);
int cudnnCreatePoolingDescriptor(void** out);
int cudnnDestroyPoolingDescriptor(void* kept);
int cudnnSetPooling2dDescriptor(
    void* kept, int mode, int nan, int h, int w, int pad_h, int pad_w, int down, int right);
int cudnnGetPooling2dForwardOutputDim(void* kept, void* x, int* n, int* c, int* h, int* w);
int cudnnCreateRNNDescriptor(void** out);
int cudnnDestroyRNNDescriptor(void* network);
int cudnnSetRNNDescriptor_v8(void* network,
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
                             uint32_t flags);
int cudnnGetRNNWeightSpaceSize(void* handle, void* network, size_t* bytes);
int cudnnGetRNNWeightParams(void* handle,
                            void* network,
                            int32_t layer,
                            size_t bytes,
                            void* weights,
                            int32_t part,
                            void* matrix,
                            void** matrix_at,
                            void* bias,
                            void** bias_at);
int cudnnCreateFusedOpsPlan(void);
int cudnnBackendCreateDescriptor(int type, void** out);
int cudnnBackendDestroyDescriptor(void* descriptor);
int cudnnBackendFinalize(void* descriptor);
int cudnnBackendSetAttribute(
    void* descriptor, int name, int type, int64_t count, const void* values);
int cudnnBackendGetAttribute(
    void* descriptor, int name, int type, int64_t wanted, int64_t* count, void* values);
int cudnnBackendExecute(void* handle, void* plan, void* pack);

static int g_failures;

static void check(int good, const char* what) {
    if (!good) {
        printf("FAILED: %s\n", what);
        ++g_failures;
    }
}

enum {
    kEngineHeuristics = 4,
    kPlan = 5,
    kEngineConfig = 3,
    kForward = 10,
    kBackwardFilter = 11,
    kGraph = 15,
    kPack = 16,
    kTensor = 17,
    kInteger = 3,
    kPointer = 6,
    kDescriptor = 15,
};

static void* backend(int type) {
    void* descriptor = NULL;
    check(cudnnBackendCreateDescriptor(type, &descriptor) == 0, "create a descriptor");
    return descriptor;
}

static void* backend_tensor(const int64_t* size, const int64_t* stride) {
    void* tensor = backend(kTensor);
    const int type = 0;
    cudnnBackendSetAttribute(tensor, 901, 1, 1, &type);
    cudnnBackendSetAttribute(tensor, 902, kInteger, 4, size);
    cudnnBackendSetAttribute(tensor, 903, kInteger, 4, stride);
    check(cudnnBackendFinalize(tensor) == 0, "finalize a tensor");
    return tensor;
}

// The workspace of a plan for one convolution, made as programs do. The parts are destroyed before
// the plan is asked.
static int64_t planned(void* handle, int operation_type, int first_name, const int64_t stride[4]) {
    const int64_t x_size[] = {2, 4, 8, 8};
    const int64_t w_size[] = {16, 4, 1, 1};
    const int64_t y_size[] = {2, 16, 8, 8};
    const int64_t w_stride[] = {4, 1, 1, 1};
    const int64_t y_stride[] = {1024, stride[1] == 1 ? 1 : 64, 8, 1};
    void* tensors[] = {backend_tensor(w_size, w_stride),
                       backend_tensor(x_size, stride),
                       backend_tensor(y_size, y_stride)};
    void* operation = backend(operation_type);
    for (int i = 0; i < 3; ++i) {
        cudnnBackendSetAttribute(operation, first_name + i, kDescriptor, 1, &tensors[i]);
    }
    cudnnBackendFinalize(operation);
    void* graph = backend(kGraph);
    cudnnBackendSetAttribute(graph, 801, kDescriptor, 1, &operation);
    cudnnBackendFinalize(graph);
    void* heuristics = backend(kEngineHeuristics);
    cudnnBackendSetAttribute(heuristics, 201, kDescriptor, 1, &graph);
    check(cudnnBackendFinalize(heuristics) == 0, "finalize the heuristics");
    int64_t count = 0;
    cudnnBackendGetAttribute(heuristics, 202, kDescriptor, 0, &count, NULL);
    check(count == 1, "one engine");
    void* config = backend(kEngineConfig);
    check(cudnnBackendGetAttribute(heuristics, 202, kDescriptor, 1, &count, &config) == 0,
          "get the configuration of the engine");
    void* plan = backend(kPlan);
    cudnnBackendSetAttribute(plan, 401, kDescriptor, 1, &config);
    check(cudnnBackendFinalize(plan) == 0, "finalize the plan");
    for (int i = 0; i < 3; ++i)
        cudnnBackendDestroyDescriptor(tensors[i]);
    cudnnBackendDestroyDescriptor(operation);
    cudnnBackendDestroyDescriptor(graph);
    cudnnBackendDestroyDescriptor(heuristics);
    cudnnBackendDestroyDescriptor(config);
    int64_t bytes = -1;
    check(cudnnBackendGetAttribute(plan, 402, kInteger, 1, &count, &bytes) == 0 && count == 1,
          "get the workspace");
    void* pack = backend(kPack);
    void* data[] = {NULL, NULL, NULL};
    cudnnBackendSetAttribute(pack, 1001, kPointer, 3, data);
    check(cudnnBackendExecute(handle, plan, pack) == 0, "execute the plan");
    check(cudnnBackendGetAttribute(plan, 402, 4, 1, &count, &bytes) == 2000, "wrong type");
    cudnnBackendDestroyDescriptor(pack);
    cudnnBackendDestroyDescriptor(plan);
    return bytes;
}

int main(void) {
    void* handle = NULL;
    void* stream = NULL;
    check(cudnnCreate(&handle) == 0 && handle != NULL, "cudnnCreate");
    check(cudnnSetStream(handle, &stream) == 0, "cudnnSetStream");
    check(cudnnGetStream(handle, &stream) == 0 && stream == &stream, "the stream is kept");
    cudnnSetStream(handle, NULL);
    check(cudnnGetVersion() / 10000 == 9, "major version 9");
    check(cudnnCreateFusedOpsPlan() == 3000, "a missing function is not supported");

    void *x = NULL, *w = NULL, *y = NULL, *kept = NULL, *pool = NULL, *network = NULL;
    cudnnCreateTensorDescriptor(&x);
    cudnnCreateTensorDescriptor(&y);
    cudnnCreateFilterDescriptor(&w);
    cudnnCreateConvolutionDescriptor(&kept);
    cudnnCreatePoolingDescriptor(&pool);
    cudnnCreateRNNDescriptor(&network);
    size_t bytes = 0;
    int n = 0, c = 0, h = 0, width = 0, type = -1, dims = 0, size[4], stride[4];

    check(cudnnSetTensor4dDescriptor(x, 1, 2, 2, 3, 224, 224) == 0, "set a tensor");
    cudnnGetTensorNdDescriptor(x, 4, &type, &dims, size, stride);
    check(type == 2 && dims == 4 && size[1] == 3 && stride[1] == 1 && stride[3] == 3 &&
              stride[2] == 672 && stride[0] == 150528,
          "channels lie side by side");
    cudnnGetTensorSizeInBytes(x, &bytes);
    check(bytes == 2u * 3 * 224 * 224 * 2, "bytes of a tensor of half");
    cudnnSetFilter4dDescriptor(w, 2, 1, 64, 3, 7, 7);
    cudnnSetConvolution2dDescriptor(kept, 3, 3, 2, 2, 1, 1, 1, 0);
    cudnnGetConvolution2dForwardOutputDim(kept, x, w, &n, &c, &h, &width);
    check(n == 2 && c == 64 && h == 112 && width == 112, "result of a convolution");
    cudnnSetTensor4dDescriptor(y, 1, 2, n, c, h, width);
    cudnnGetConvolutionForwardWorkspaceSize(handle, x, w, kept, y, 1, &bytes);
    check(bytes == 0, "no workspace if the channels lie side by side");
    cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, x, y, kept, w, 1, &bytes);
    check(bytes == 64u * 3 * 7 * 7 * 4, "a filter's gradient is summed in float");
    check(cudnnConvolutionForward(handle, &n, x, NULL, w, NULL, kept, 1, NULL, 0, &n, y, NULL) == 0,
          "a convolution");
    cudnnSetPooling2dDescriptor(pool, 0, 0, 3, 3, 1, 1, 2, 2);
    cudnnGetPooling2dForwardOutputDim(pool, y, &n, &c, &h, &width);
    check(c == 64 && h == 56 && width == 56, "result of a pooling");
    check(cudnnSetTensor4dDescriptor(NULL, 0, 0, 1, 1, 1, 1) == 2000, "no tensor is an error");

    // The same convolution by both interfaces: 1x1, so the filter has no other order.
    cudnnSetTensor4dDescriptor(x, 0, 0, 2, 4, 8, 8);
    cudnnSetTensor4dDescriptor(y, 0, 0, 2, 16, 8, 8);
    cudnnSetFilter4dDescriptor(w, 0, 0, 16, 4, 1, 1);
    cudnnSetConvolution2dDescriptor(kept, 0, 0, 1, 1, 1, 1, 1, 0);
    const size_t both = (2u * 4 * 64 + 2u * 16 * 64) * 4;
    cudnnGetConvolutionForwardWorkspaceSize(handle, x, w, kept, y, 1, &bytes);
    check(bytes == both, "tensors in another order are copied");
    const int64_t rows[] = {256, 64, 8, 1};
    const int64_t channels[] = {256, 1, 32, 4};
    check(planned(handle, kForward, 703, rows) == (int64_t)both, "the plan needs the same");
    check(planned(handle, kForward, 703, channels) == 0, "channels side by side in a plan");
    check(planned(handle, kBackwardFilter, 715, rows) == (int64_t)both + 64 * 4,
          "a filter's gradient in a plan");

    // One layer of LSTM: four gates, matrices for input and state, two biases.
    cudnnSetRNNDescriptor_v8(network, 0, 2, 3, 0, 0, 0, 0, 0, 10, 20, 20, 1, NULL, 0);
    cudnnGetRNNWeightSpaceSize(handle, network, &bytes);
    check(bytes == (4u * 20 * (10 + 20) + 2 * 4 * 20) * 4, "weights of an LSTM");
    void *matrix = NULL, *bias = NULL;
    cudnnGetRNNWeightParams(handle, network, 0, bytes, (void*)4096, 7, x, &matrix, y, &bias);
    check((char*)matrix - (char*)4096 == (4 * 20 * 10 + 3 * 20 * 20) * 4, "the last matrix");
    check((char*)bias - (char*)4096 == (4 * 20 * 30 + 7 * 20) * 4, "the last bias");

    cudnnDestroyTensorDescriptor(x);
    cudnnDestroyTensorDescriptor(y);
    cudnnDestroyFilterDescriptor(w);
    cudnnDestroyConvolutionDescriptor(kept);
    cudnnDestroyPoolingDescriptor(pool);
    cudnnDestroyRNNDescriptor(network);
    check(cudnnDestroy(handle) == 0, "cudnnDestroy");
    return g_failures != 0;
}
