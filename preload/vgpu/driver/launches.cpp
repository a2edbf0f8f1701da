// Kernel launches, host functions and occupancy. A launch only makes contents of the device
// unknown.
#include "driver/capture.h"
#include "driver/modules.h"

namespace fragtrace::vgpu {
namespace {

CUresult launch(
    CUfunction handle, CUstream stream, uint64_t blocks, uint64_t block, void** parameters) {
    if (as<Function>(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (blocks == 0 || block == 0) return CUDA_ERROR_INVALID_VALUE;
    note_kernel_with(parameters, blocks * block);
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
                        void** parameters,
                        void**) {
    FT_ENTER();
    const uint64_t blocks = uint64_t(grid_x) * grid_y * grid_z;
    return launch(function, stream, blocks, uint64_t(block_x) * block_y * block_z, parameters);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* launch_config,
                          CUfunction function,
                          void** parameters,
                          void**) {
    FT_ENTER();
    if (launch_config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUlaunchConfig& with = *launch_config;
    return launch(function,
                  with.hStream,
                  uint64_t(with.gridDimX) * with.gridDimY * with.gridDimZ,
                  uint64_t(with.blockDimX) * with.blockDimY * with.blockDimZ,
                  parameters);
}

CUresult cuLaunchCooperativeKernel(CUfunction function,
                                   unsigned grid_x,
                                   unsigned grid_y,
                                   unsigned grid_z,
                                   unsigned block_x,
                                   unsigned block_y,
                                   unsigned block_z,
                                   unsigned,
                                   CUstream stream,
                                   void** parameters) {
    FT_ENTER();
    const uint64_t blocks = uint64_t(grid_x) * grid_y * grid_z;
    return launch(function, stream, blocks, uint64_t(block_x) * block_y * block_z, parameters);
}

// Runs the function on the calling thread, because all earlier work is already complete, apart from
// collectives, which it waits for. Difference to the real driver: the function deadlocks if it
// waits for a lock that its caller holds.
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    wait_for(stream);
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
    wait_for(stream);
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
