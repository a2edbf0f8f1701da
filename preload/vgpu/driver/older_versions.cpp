// Older versions of functions that are implemented elsewhere: same work, other signature. The
// #undefs remove the header's renaming, so that the old symbols get their own names.
#include "driver/state.h"

#undef cuCtxCreate
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuDevicePrimaryCtxSetFlags
#undef cuDeviceGetUuid
#undef cuEventElapsedTime
#undef cuGetProcAddress
#undef cuGraphInstantiate
#undef cuGraphNodeGetDependencies
#undef cuGraphAddNode
#undef cuIpcOpenMemHandle
#undef cuMemAdvise
#undef cuMemHostRegister
#undef cuMemPrefetchAsync
#undef cuStreamBeginCapture
#undef cuStreamGetCaptureInfo
#undef cuStreamUpdateCaptureDependencies
#undef cuStreamDestroy
#undef cuEventDestroy
#undef cuCtxDestroy
#undef cuCtxPushCurrent
#undef cuCtxPopCurrent

extern "C" {

FT_EXPORT CUresult cuCtxCreate_v2(CUcontext* out, unsigned flags, CUdevice device) {
    return cuCtxCreate_v4(out, nullptr, flags, device);
}

FT_EXPORT CUresult cuCtxCreate(CUcontext* out, unsigned flags, CUdevice device) {
    return cuCtxCreate_v4(out, nullptr, flags, device);
}

FT_EXPORT CUresult
cuCtxCreate_v3(CUcontext* out, CUexecAffinityParam*, int, unsigned flags, CUdevice device) {
    return cuCtxCreate_v4(out, nullptr, flags, device);
}

FT_EXPORT CUresult cuCtxDestroy(CUcontext context) {
    return cuCtxDestroy_v2(context);
}

FT_EXPORT CUresult cuCtxPushCurrent(CUcontext context) {
    return cuCtxPushCurrent_v2(context);
}

FT_EXPORT CUresult cuCtxPopCurrent(CUcontext* context) {
    return cuCtxPopCurrent_v2(context);
}

FT_EXPORT CUresult cuCtxAttach(CUcontext* context, unsigned) {
    return cuCtxGetCurrent(context);
}

FT_EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
    return cuDevicePrimaryCtxRelease_v2(device);
}

FT_EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice device) {
    return cuDevicePrimaryCtxReset_v2(device);
}

FT_EXPORT CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
    return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

FT_EXPORT CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
    return cuDeviceGetUuid_v2(uuid, device);
}

FT_EXPORT CUresult cuEventElapsedTime(float* milliseconds, CUevent first, CUevent last) {
    return cuEventElapsedTime_v2(milliseconds, first, last);
}

FT_EXPORT CUresult cuEventDestroy(CUevent event) {
    return cuEventDestroy_v2(event);
}

FT_EXPORT CUresult cuStreamDestroy(CUstream stream) {
    return cuStreamDestroy_v2(stream);
}

FT_EXPORT CUresult cuGetProcAddress(const char* name,
                                    void** function,
                                    int version,
                                    cuuint64_t flags) {
    return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}

FT_EXPORT CUresult
cuGraphInstantiate(CUgraphExec* out, CUgraph graph, CUgraphNode*, char*, size_t) {
    return cuGraphInstantiateWithFlags(out, graph, 0);
}

FT_EXPORT CUresult
cuGraphInstantiate_v2(CUgraphExec* out, CUgraph graph, CUgraphNode*, char*, size_t) {
    return cuGraphInstantiateWithFlags(out, graph, 0);
}

FT_EXPORT CUresult cuGraphNodeGetDependencies(CUgraphNode node,
                                              CUgraphNode* dependencies,
                                              size_t* count) {
    return cuGraphNodeGetDependencies_v2(node, dependencies, nullptr, count);
}

FT_EXPORT CUresult cuGraphAddNode(CUgraphNode* node,
                                  CUgraph graph,
                                  const CUgraphNode* dependencies,
                                  size_t count,
                                  CUgraphNodeParams* parameters) {
    return cuGraphAddNode_v2(node, graph, dependencies, nullptr, count, parameters);
}

FT_EXPORT CUresult cuIpcOpenMemHandle(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
    return cuIpcOpenMemHandle_v2(address, handle, flags);
}

FT_EXPORT CUresult cuMemHostRegister(void* pointer, size_t bytes, unsigned flags) {
    return cuMemHostRegister_v2(pointer, bytes, flags);
}

FT_EXPORT CUresult cuMemAdvise(CUdeviceptr address, size_t size, CUmem_advise advice, CUdevice) {
    return cuMemAdvise_v2(address, size, advice, CUmemLocation{});
}

FT_EXPORT CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t size, CUdevice, CUstream stream) {
    return cuMemPrefetchAsync_v2(address, size, CUmemLocation{}, 0, stream);
}

FT_EXPORT CUresult cuStreamBeginCapture(CUstream stream) {
    return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

FT_EXPORT CUresult cuStreamGetCaptureInfo(CUstream stream,
                                          CUstreamCaptureStatus* status,
                                          cuuint64_t* id) {
    return cuStreamGetCaptureInfo_v3(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}

FT_EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream stream,
                                             CUstreamCaptureStatus* status,
                                             cuuint64_t* id,
                                             CUgraph* graph,
                                             const CUgraphNode** dependencies,
                                             size_t* count) {
    return cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, nullptr, count);
}

FT_EXPORT CUresult cuStreamUpdateCaptureDependencies(CUstream stream,
                                                     CUgraphNode* dependencies,
                                                     size_t count,
                                                     unsigned flags) {
    return cuStreamUpdateCaptureDependencies_v2(stream, dependencies, nullptr, count, flags);
}

}  // extern "C"
