// Kernel launches, host functions and occupancy. A launch only marks the contents of the device as
// unknown.
#include "driver/capture.h"
#include "driver/modules.h"

namespace fragtrace::vgpu {
namespace {

CUresult launch(CUfunction handle, CUstream stream, unsigned grid, unsigned block) {
    if (as<Function>(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (grid == 0 || block == 0) return CUDA_ERROR_INVALID_VALUE;
    note_kernel();
    captured(stream, CU_GRAPH_NODE_TYPE_KERNEL);
    return CUDA_SUCCESS;
}

}  // namespace
}  // namespace fragtrace::vgpu

using namespace fragtrace::vgpu;

CUresult cuLaunchKernel(CUfunction function,
                        unsigned grid_x,
                        unsigned grid_y,
                        unsigned grid_z,
                        unsigned block_x,
                        unsigned block_y,
                        unsigned block_z,
                        unsigned,
                        CUstream stream,
                        void**,
                        void**) {
    FT_ENTER();
    const unsigned grid = grid_x == 0 || grid_y == 0 || grid_z == 0 ? 0 : 1;
    return launch(function, stream, grid, block_x * block_y * block_z);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* launch_config,
                          CUfunction function,
                          void**,
                          void**) {
    FT_ENTER();
    if (launch_config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return launch(
        function, launch_config->hStream, launch_config->gridDimX, launch_config->blockDimX);
}

CUresult cuLaunchCooperativeKernel(CUfunction function,
                                   unsigned grid_x,
                                   unsigned,
                                   unsigned,
                                   unsigned block_x,
                                   unsigned,
                                   unsigned,
                                   unsigned,
                                   CUstream stream,
                                   void**) {
    FT_ENTER();
    return launch(function, stream, grid_x, block_x);
}

// Runs the function at once on the calling thread, because all earlier work is already complete.
// Difference to the real driver: the function deadlocks if it waits for a lock that its caller
// holds.
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    {
        FT_ENTER();
        GraphNode* node = capture_node(stream, CU_GRAPH_NODE_TYPE_HOST);
        if (node != nullptr) {
            node->host_function = function;
            node->host_data = data;
            return CUDA_SUCCESS;
        }
    }
    function(data);
    return CUDA_SUCCESS;
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* data, unsigned) {
    if (callback == nullptr) return CUDA_ERROR_INVALID_VALUE;
    FT_TRY(cuStreamQuery(stream));
    callback(stream, CUDA_SUCCESS, data);
    return CUDA_SUCCESS;
}

// As many blocks as the threads of a multiprocessor allow, at most 16. A kernel's registers and
// shared memory are not known.
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, CUfunction, int block_size, size_t, unsigned) {
    FT_TRY(require_initialised());
    if (blocks == nullptr || block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
    int threads = 0;
    FT_TRY(cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0));
    *blocks = block_size <= threads ? threads / block_size : 0;
    if (*blocks > 16) *blocks = 16;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                     CUfunction function,
                                                     int block_size,
                                                     size_t shared_bytes) {
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks, function, block_size, shared_bytes, 0);
}

CUresult cuOccupancyMaxPotentialBlockSize(
    int* grid, int* block, CUfunction, CUoccupancyB2DSize, size_t, int limit) {
    FT_TRY(require_initialised());
    if (grid == nullptr || block == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *block = limit > 0 && limit < 1024 ? limit : 1024;
    *grid = config().card.multiprocessors;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction, const CUlaunchConfig*) {
    FT_TRY(require_initialised());
    if (clusters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *clusters = config().card.multiprocessors;
    return CUDA_SUCCESS;
}

CUresult cuProfilerStart(void) {
    return CUDA_SUCCESS;
}

CUresult cuProfilerStop(void) {
    return CUDA_SUCCESS;
}
