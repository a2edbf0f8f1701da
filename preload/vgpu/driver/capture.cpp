// Capture of streams into graphs: begin, end, and queries in between.
#include "driver/capture.h"

namespace fragtrace::vgpu {
namespace {

CUresult begin_capture(CUstream handle, CUstreamCaptureMode mode, Graph* graph) {
    Stream* stream = nullptr;
    FT_TRY(require_stream(handle, &stream));
    if (stream == nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture.graph != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    if (graph == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    stream->capture = {graph, g_next_id++, true, mode, {}};
    return CUDA_SUCCESS;
}

__thread CUstreamCaptureMode t_capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

}  // namespace
}  // namespace fragtrace::vgpu

using namespace fragtrace::vgpu;

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
    FT_ENTER();
    return begin_capture(stream, mode, new_graph());
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream,
                                     CUgraph graph,
                                     const CUgraphNode* dependencies,
                                     const CUgraphEdgeData*,
                                     size_t count,
                                     CUstreamCaptureMode mode) {
    FT_ENTER();
    if (as<Graph>(graph) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    FT_TRY(begin_capture(stream, mode, as<Graph>(graph)));
    for (size_t i = 0; i < count; ++i) {
        add(&as<Stream>(stream)->capture.leaves, as<GraphNode>(dependencies[i]));
    }
    return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph* out) {
    FT_ENTER();
    Stream* stream = nullptr;
    FT_TRY(require_stream(handle, &stream));
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (stream == nullptr || stream->capture.graph == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    if (!stream->capture.origin) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    *out = reinterpret_cast<CUgraph>(stream->capture.graph);
    const uint64_t id = stream->capture.id;
    for (Stream* at = g_streams; at != nullptr; at = at->next) {
        if (at->capture.id == id) stop_capturing(at);
    }
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
    FT_ENTER();
    Stream* stream = nullptr;
    FT_TRY(require_stream(handle, &stream));
    if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *status = stream != nullptr && stream->capture.graph != nullptr
                  ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                  : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v3(CUstream handle,
                                   CUstreamCaptureStatus* status,
                                   cuuint64_t* id,
                                   CUgraph* graph,
                                   const CUgraphNode** dependencies,
                                   const CUgraphEdgeData** edges,
                                   size_t* count) {
    FT_TRY(cuStreamIsCapturing(handle, status));
    FT_ENTER();
    if (*status == CU_STREAM_CAPTURE_STATUS_NONE) return CUDA_SUCCESS;
    Capture* capture = &as<Stream>(handle)->capture;
    if (id != nullptr) *id = capture->id;
    if (graph != nullptr) *graph = reinterpret_cast<CUgraph>(capture->graph);
    if (edges != nullptr) *edges = nullptr;
    if (count != nullptr) *count = size_t(capture->leaves.count);
    if (dependencies != nullptr) {
        *dependencies = reinterpret_cast<const CUgraphNode*>(capture->leaves.nodes);
    }
    return CUDA_SUCCESS;
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream handle,
                                              CUgraphNode* dependencies,
                                              const CUgraphEdgeData*,
                                              size_t count,
                                              unsigned flags) {
    FT_ENTER();
    Stream* stream = nullptr;
    FT_TRY(require_stream(handle, &stream));
    if (stream == nullptr || stream->capture.graph == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) clear(&stream->capture.leaves);
    for (size_t i = 0; i < count; ++i) {
        GraphNode* node = as<GraphNode>(dependencies[i]);
        if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
        if (!add(&stream->capture.leaves, node)) return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    FT_ENTER();
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUstreamCaptureMode before = t_capture_mode;
    t_capture_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
