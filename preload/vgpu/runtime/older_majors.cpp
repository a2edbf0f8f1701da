// CUDA 11 and 12 variants of functions whose signature or structures changed up to CUDA 13.
// `fragtrace_v12_NAME` is exported as NAME in version node 12, and in node 11 too if there is no
// `fragtrace_v11_NAME` (generate/older_versions.py).
#include "runtime/older_layouts.h"
#include "runtime/runtime.h"

#include <string.h>

using namespace fragtrace::vgpu;

namespace {

constexpr unsigned kCuda11 = 11080;
constexpr unsigned kCuda12 = 12080;

cudaError_t version(int* out, unsigned value) {
    if (out == nullptr) return finish(cudaErrorInvalidValue);
    *out = int(value);
    return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t fragtrace_v12_cudaRuntimeGetVersion(int* out) {
    return version(out, kCuda12);
}

cudaError_t fragtrace_v11_cudaRuntimeGetVersion(int* out) {
    return version(out, kCuda11);
}

cudaError_t fragtrace_v12_cudaGetDriverEntryPoint(const char* symbol,
                                                  void** function,
                                                  unsigned long long flags,
                                                  cudaDriverEntryPointQueryResult* status) {
    return cudaGetDriverEntryPointByVersion(symbol, function, kCuda12, flags, status);
}

cudaError_t fragtrace_v11_cudaGetDriverEntryPoint(const char* symbol,
                                                  void** function,
                                                  unsigned long long flags) {
    return cudaGetDriverEntryPointByVersion(symbol, function, kCuda11, flags, nullptr);
}

cudaError_t fragtrace_v12_cudaPointerGetAttributes(OlderPointerAttributes* out,
                                                   const void* pointer) {
    if (out == nullptr) return finish(cudaErrorInvalidValue);
    cudaPointerAttributes found{};
    if (const cudaError_t error = cudaPointerGetAttributes(&found, pointer)) return error;
    *out = {found.type, found.device, found.devicePointer, found.hostPointer};
    return cudaSuccess;
}

cudaError_t fragtrace_v11_cudaFuncGetAttributes(void* out, const void* function) {
    if (out == nullptr) return finish(cudaErrorInvalidValue);
    cudaFuncAttributes found{};
    if (const cudaError_t error = cudaFuncGetAttributes(&found, function)) return error;
    memcpy(out, &found, kFunctionAttributesOfCuda11);
    return cudaSuccess;
}

cudaError_t fragtrace_v12_cudaMemPrefetchAsync(const void* pointer,
                                               size_t size,
                                               int device,
                                               cudaStream_t stream) {
    return cudaMemPrefetchAsync(
        pointer, size, cudaMemLocation{cudaMemLocationTypeDevice, {device}}, 0, stream);
}

cudaError_t fragtrace_v12_cudaMemPrefetchAsync_v2(const void* pointer,
                                                  size_t size,
                                                  cudaMemLocation location,
                                                  unsigned flags,
                                                  cudaStream_t stream) {
    return cudaMemPrefetchAsync(pointer, size, location, flags, stream);
}

cudaError_t fragtrace_v12_cudaMemAdvise(const void* pointer,
                                        size_t size,
                                        cudaMemoryAdvise advice,
                                        int device) {
    return cudaMemAdvise(
        pointer, size, advice, cudaMemLocation{cudaMemLocationTypeDevice, {device}});
}

cudaError_t fragtrace_v12_cudaMemAdvise_v2(const void* pointer,
                                           size_t size,
                                           cudaMemoryAdvise advice,
                                           cudaMemLocation location) {
    return cudaMemAdvise(pointer, size, advice, location);
}

cudaError_t fragtrace_v12_cudaEventElapsedTime_v2(float* out, cudaEvent_t first, cudaEvent_t last) {
    return cudaEventElapsedTime(out, first, last);
}

cudaError_t fragtrace_v12_cudaStreamGetCaptureInfo(cudaStream_t stream,
                                                   cudaStreamCaptureStatus* status,
                                                   unsigned long long* id) {
    return cudaStreamGetCaptureInfo(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}

cudaError_t fragtrace_v12_cudaStreamGetCaptureInfo_v2(cudaStream_t stream,
                                                      cudaStreamCaptureStatus* status,
                                                      unsigned long long* id,
                                                      cudaGraph_t* graph,
                                                      const cudaGraphNode_t** dependencies,
                                                      size_t* count) {
    return cudaStreamGetCaptureInfo(stream, status, id, graph, dependencies, nullptr, count);
}

cudaError_t fragtrace_v12_cudaStreamGetCaptureInfo_v3(cudaStream_t stream,
                                                      cudaStreamCaptureStatus* status,
                                                      unsigned long long* id,
                                                      cudaGraph_t* graph,
                                                      const cudaGraphNode_t** dependencies,
                                                      const cudaGraphEdgeData** edges,
                                                      size_t* count) {
    return cudaStreamGetCaptureInfo(stream, status, id, graph, dependencies, edges, count);
}

cudaError_t fragtrace_v12_cudaStreamUpdateCaptureDependencies(cudaStream_t stream,
                                                              cudaGraphNode_t* dependencies,
                                                              size_t count,
                                                              unsigned flags) {
    return cudaStreamUpdateCaptureDependencies(stream, dependencies, nullptr, count, flags);
}

cudaError_t fragtrace_v12_cudaStreamUpdateCaptureDependencies_v2(cudaStream_t stream,
                                                                 cudaGraphNode_t* dependencies,
                                                                 const cudaGraphEdgeData* edges,
                                                                 size_t count,
                                                                 unsigned flags) {
    return cudaStreamUpdateCaptureDependencies(stream, dependencies, edges, count, flags);
}

cudaError_t fragtrace_v12_cudaGraphNodeGetDependencies(cudaGraphNode_t node,
                                                       cudaGraphNode_t* dependencies,
                                                       size_t* count) {
    return cudaGraphNodeGetDependencies(node, dependencies, nullptr, count);
}

cudaError_t fragtrace_v12_cudaGraphNodeGetDependencies_v2(cudaGraphNode_t node,
                                                          cudaGraphNode_t* dependencies,
                                                          cudaGraphEdgeData* edges,
                                                          size_t* count) {
    return cudaGraphNodeGetDependencies(node, dependencies, edges, count);
}

cudaError_t fragtrace_v12_cudaGraphAddNode(cudaGraphNode_t* out,
                                           cudaGraph_t graph,
                                           const cudaGraphNode_t* dependencies,
                                           size_t count,
                                           cudaGraphNodeParams* parameters) {
    return cudaGraphAddNode(out, graph, dependencies, nullptr, count, parameters);
}

cudaError_t fragtrace_v12_cudaGraphAddNode_v2(cudaGraphNode_t* out,
                                              cudaGraph_t graph,
                                              const cudaGraphNode_t* dependencies,
                                              const cudaGraphEdgeData* edges,
                                              size_t count,
                                              cudaGraphNodeParams* parameters) {
    return cudaGraphAddNode(out, graph, dependencies, edges, count, parameters);
}

cudaError_t fragtrace_v11_cudaGraphInstantiate(
    cudaGraphExec_t* out, cudaGraph_t graph, cudaGraphNode_t*, char* log, size_t log_bytes) {
    if (log != nullptr && log_bytes > 0) log[0] = '\0';
    return cudaGraphInstantiate(out, graph, 0);
}

cudaError_t fragtrace_v11_cudaGraphExecUpdate(cudaGraphExec_t exec,
                                              cudaGraph_t graph,
                                              cudaGraphNode_t* failed,
                                              cudaGraphExecUpdateResult* result) {
    if (failed != nullptr) *failed = nullptr;
    if (result != nullptr) *result = cudaGraphExecUpdateSuccess;
    return cudaGraphExecUpdate(exec, graph, nullptr);
}

cudaError_t fragtrace_v12_cudaThreadSynchronize(void) {
    return cudaDeviceSynchronize();
}

cudaError_t fragtrace_v12_cudaThreadExit(void) {
    return cudaDeviceReset();
}

}  // extern "C"
