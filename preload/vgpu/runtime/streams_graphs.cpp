// Streams, events, capture and graphs: the driver's functions under the runtime's names.
#include "runtime/runtime.h"

using namespace fragtrace::vgpu;

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
    FT_FORWARD(cuStreamCreate, stream, 0);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
    FT_FORWARD(cuStreamCreate, stream, flags);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
    FT_FORWARD(cuStreamCreateWithPriority, stream, flags, priority);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    FT_FORWARD(cuStreamDestroy, stream);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
    FT_FORWARD(cuStreamQuery, stream);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    FT_FORWARD(cuStreamSynchronize, stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    FT_FORWARD(cuStreamWaitEvent, stream, event, flags);
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
    FT_FORWARD(cuStreamGetPriority, stream, priority);
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
    FT_FORWARD(cuStreamGetFlags, stream, flags);
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
    FT_FORWARD(cuStreamGetId, stream, id);
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
    FT_FORWARD(cuStreamGetDevice, stream, device);
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream,
                                  cudaStreamCallback_t callback,
                                  void* data,
                                  unsigned flags) {
    FT_FORWARD(
        cuStreamAddCallback, stream, reinterpret_cast<CUstreamCallback>(callback), data, flags);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
    FT_FORWARD(cuLaunchHostFunc, stream, function, data);
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
    FT_FORWARD(cuEventCreate, event, 0);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
    FT_FORWARD(cuEventCreate, event, flags);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    FT_FORWARD(cuEventDestroy, event);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    FT_FORWARD(cuEventQuery, event);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    FT_FORWARD(cuEventSynchronize, event);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    FT_FORWARD(cuEventRecord, event, stream);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
    FT_FORWARD(cuEventRecordWithFlags, event, stream, flags);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t first, cudaEvent_t last) {
    FT_FORWARD(cuEventElapsedTime, milliseconds, first, last);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
    FT_FORWARD(cuStreamBeginCapture, stream, static_cast<CUstreamCaptureMode>(mode));
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream,
                                          cudaGraph_t graph,
                                          const cudaGraphNode_t* dependencies,
                                          const cudaGraphEdgeData* edges,
                                          size_t count,
                                          cudaStreamCaptureMode mode) {
    FT_FORWARD(cuStreamBeginCaptureToGraph,
               stream,
               graph,
               dependencies,
               reinterpret_cast<const CUgraphEdgeData*>(edges),
               count,
               static_cast<CUstreamCaptureMode>(mode));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
    FT_FORWARD(cuStreamEndCapture, stream, graph);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
    FT_FORWARD(cuStreamIsCapturing, stream, reinterpret_cast<CUstreamCaptureStatus*>(status));
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
                                     cudaStreamCaptureStatus* status,
                                     unsigned long long* id,
                                     cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges,
                                     size_t* count) {
    FT_FORWARD(cuStreamGetCaptureInfo,
               stream,
               reinterpret_cast<CUstreamCaptureStatus*>(status),
               reinterpret_cast<cuuint64_t*>(id),
               graph,
               dependencies,
               reinterpret_cast<const CUgraphEdgeData**>(edges),
               count);
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream,
                                                cudaGraphNode_t* dependencies,
                                                const cudaGraphEdgeData* edges,
                                                size_t count,
                                                unsigned flags) {
    FT_FORWARD(cuStreamUpdateCaptureDependencies,
               stream,
               dependencies,
               reinterpret_cast<const CUgraphEdgeData*>(edges),
               count,
               flags);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
    FT_FORWARD(cuThreadExchangeStreamCaptureMode, reinterpret_cast<CUstreamCaptureMode*>(mode));
}

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
    FT_FORWARD(cuGraphCreate, graph, flags);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    FT_FORWARD(cuGraphDestroy, graph);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* out,
                                 cudaGraph_t graph,
                                 unsigned long long flags) {
    FT_FORWARD(cuGraphInstantiateWithFlags, out, graph, flags);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* out,
                                          cudaGraph_t graph,
                                          unsigned long long flags) {
    FT_FORWARD(cuGraphInstantiateWithFlags, out, graph, flags);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    FT_FORWARD(cuGraphExecDestroy, exec);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
    FT_FORWARD(cuGraphLaunch, exec, stream);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
    FT_FORWARD(cuGraphUpload, exec, stream);
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec,
                                cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* result) {
    FT_FORWARD(
        cuGraphExecUpdate, exec, graph, reinterpret_cast<CUgraphExecUpdateResultInfo*>(result));
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
    FT_FORWARD(cuGraphGetNodes, graph, nodes, count);
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
    FT_FORWARD(cuGraphNodeGetType, node, reinterpret_cast<CUgraphNodeType*>(type));
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node,
                                         cudaGraphNode_t* dependencies,
                                         cudaGraphEdgeData* edges,
                                         size_t* count) {
    FT_FORWARD(cuGraphNodeGetDependencies,
               node,
               dependencies,
               reinterpret_cast<CUgraphEdgeData*>(edges),
               count);
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* out,
                                  cudaGraph_t graph,
                                  const cudaGraphNode_t* dependencies,
                                  size_t count) {
    FT_FORWARD(cuGraphAddEmptyNode, out, graph, dependencies, count);
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t* out,
                             cudaGraph_t graph,
                             const cudaGraphNode_t* dependencies,
                             const cudaGraphEdgeData* edges,
                             size_t count,
                             cudaGraphNodeParams* parameters) {
    static_assert(sizeof(cudaGraphNodeParams) == sizeof(CUgraphNodeParams));
    FT_FORWARD(cuGraphAddNode,
               out,
               graph,
               dependencies,
               reinterpret_cast<const CUgraphEdgeData*>(edges),
               count,
               reinterpret_cast<CUgraphNodeParams*>(parameters));
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* out,
                                     cudaGraph_t graph,
                                     const cudaGraphNode_t* dependencies,
                                     size_t count,
                                     cudaMemAllocNodeParams* parameters) {
    static_assert(sizeof(cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS));
    FT_FORWARD(cuGraphAddMemAllocNode,
               out,
               graph,
               dependencies,
               count,
               reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS*>(parameters));
}

cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams* out) {
    FT_FORWARD(
        cuGraphMemAllocNodeGetParams, node, reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS*>(out));
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* out,
                                    cudaGraph_t graph,
                                    const cudaGraphNode_t* dependencies,
                                    size_t count,
                                    void* pointer) {
    FT_FORWARD(cuGraphAddMemFreeNode,
               out,
               graph,
               dependencies,
               count,
               reinterpret_cast<CUdeviceptr>(pointer));
}

cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void* out) {
    FT_FORWARD(cuGraphMemFreeNodeGetParams, node, static_cast<CUdeviceptr*>(out));
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* out,
                                             cudaGraph_t graph,
                                             unsigned initial,
                                             unsigned flags) {
    FT_CONTEXT();
    CUgraphConditionalHandle handle = 0;
    const CUresult result =
        driver->cuGraphConditionalHandleCreate_(&handle, graph, nullptr, initial, flags);
    if (result == CUDA_SUCCESS) *out = handle;
    return finish(result);
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned flags) {
    FT_FORWARD(cuGraphDebugDotPrint, graph, path, flags);
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph,
                                      cudaUserObject_t object,
                                      unsigned count,
                                      unsigned flags) {
    FT_FORWARD(cuGraphRetainUserObject, graph, object, count, flags);
}

cudaError_t cudaUserObjectCreate(
    cudaUserObject_t* out, void* data, cudaHostFn_t destroy, unsigned references, unsigned flags) {
    FT_FORWARD(cuUserObjectCreate, out, data, destroy, references, flags);
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count) {
    FT_FORWARD(cuUserObjectRetain, object, count);
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
    FT_FORWARD(cuUserObjectRelease, object, count);
}
