// All variants of copies and fills. A captured call becomes a node and does nothing. Any other call
// updates what is known of the contents (contents.cpp).
#include "driver/state.h"

namespace fragtrace::vgpu {
namespace {

CUresult copy(uint64_t to, uint64_t from, size_t size, CUstream stream) {
    if (host_can_read(to) && !host_can_read(from)) wait_for_contents(from, size);
    FT_ENTER();
    if (size == 0) return CUDA_SUCCESS;
    if (to == 0 || from == 0) return CUDA_ERROR_INVALID_VALUE;
    if (!captured(stream, CU_GRAPH_NODE_TYPE_MEMCPY)) copy_memory(to, from, size);
    return CUDA_SUCCESS;
}

// A copy to the host that returns after all earlier work.
CUresult copy_and_wait(uint64_t to, uint64_t from, size_t size) {
    if (host_can_read(to)) wait_for(nullptr);
    return copy(to, from, size, nullptr);
}

CUresult fill(uint64_t to, size_t count, uint32_t pattern, int pattern_bytes, CUstream stream) {
    FT_ENTER();
    if (count == 0) return CUDA_SUCCESS;
    if (to == 0) return CUDA_ERROR_INVALID_VALUE;
    if (!captured(stream, CU_GRAPH_NODE_TYPE_MEMSET)) {
        note_fill(to, count * size_t(pattern_bytes), pattern, pattern_bytes);
    }
    return CUDA_SUCCESS;
}

CUresult fill_rows(uint64_t to,
                   size_t pitch,
                   size_t width,
                   size_t rows,
                   uint32_t pattern,
                   int pattern_bytes,
                   CUstream stream) {
    for (size_t row = 0; row < rows; ++row) {
        FT_TRY(fill(to + row * pitch, width, pattern, pattern_bytes, stream));
    }
    return CUDA_SUCCESS;
}

template <typename Side>
uint64_t address_of(CUmemorytype type, const void* host, Side device) {
    return type == CU_MEMORYTYPE_HOST ? reinterpret_cast<uint64_t>(host) : uint64_t(device);
}

// Arrays have no contents: a copy from an array yields zeros, a copy to an array is dropped.
template <typename Copy>
CUresult copy_rows(const Copy& copy_of, size_t rows, uint64_t to, uint64_t from, CUstream stream) {
    for (size_t row = 0; row < rows; ++row) {
        const uint64_t source =
            from + copy_of.srcXInBytes + (copy_of.srcY + row) * copy_of.srcPitch;
        const uint64_t target = to + copy_of.dstXInBytes + (copy_of.dstY + row) * copy_of.dstPitch;
        if (copy_of.dstMemoryType == CU_MEMORYTYPE_ARRAY) continue;
        if (copy_of.srcMemoryType == CU_MEMORYTYPE_ARRAY) {
            FT_TRY(fill(target, copy_of.WidthInBytes, 0, 1, stream));
        } else {
            FT_TRY(copy(target, source, copy_of.WidthInBytes, stream));
        }
    }
    return CUDA_SUCCESS;
}

CUresult copy_2d(const CUDA_MEMCPY2D* what, CUstream stream) {
    if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const uint64_t to = address_of(what->dstMemoryType, what->dstHost, what->dstDevice);
    const uint64_t from = address_of(what->srcMemoryType, what->srcHost, what->srcDevice);
    return copy_rows(*what, what->Height, to, from, stream);
}

CUresult copy_3d(const CUDA_MEMCPY3D* what, CUstream stream) {
    if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (size_t slice = 0; slice < what->Depth; ++slice) {
        const uint64_t to = address_of(what->dstMemoryType, what->dstHost, what->dstDevice) +
                            (what->dstZ + slice) * what->dstHeight * what->dstPitch;
        const uint64_t from = address_of(what->srcMemoryType, what->srcHost, what->srcDevice) +
                              (what->srcZ + slice) * what->srcHeight * what->srcPitch;
        FT_TRY(copy_rows(*what, what->Height, to, from, stream));
    }
    return CUDA_SUCCESS;
}

uint64_t address(const void* host) {
    return reinterpret_cast<uint64_t>(host);
}

}  // namespace
}  // namespace fragtrace::vgpu

using namespace fragtrace::vgpu;

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
    return copy_and_wait(to, from, size);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    return copy(to, from, size, stream);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t size) {
    return copy(to, address(from), size, nullptr);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t size, CUstream stream) {
    return copy(to, address(from), size, stream);
}

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t size) {
    return copy_and_wait(address(to), from, size);
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t size, CUstream stream) {
    return copy(address(to), from, size, stream);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size) {
    return copy(to, from, size, nullptr);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    return copy(to, from, size, stream);
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t size) {
    return copy(to, from, size, nullptr);
}

CUresult cuMemcpyPeerAsync(
    CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t size, CUstream stream) {
    return copy(to, from, size, stream);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* what) {
    return copy_2d(what, nullptr);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* what) {
    return copy_2d(what, nullptr);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* what, CUstream stream) {
    return copy_2d(what, stream);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* what) {
    return copy_3d(what, nullptr);
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* what, CUstream stream) {
    return copy_3d(what, stream);
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
    return fill(to, count, value, 1, nullptr);
}

CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
    return fill(to, count, value, 2, nullptr);
}

CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count) {
    return fill(to, count, value, 4, nullptr);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    return fill(to, count, value, 1, stream);
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
    return fill(to, count, value, 2, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
    return fill(to, count, value, 4, stream);
}

CUresult cuMemsetD2D8_v2(
    CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t rows) {
    return fill_rows(to, pitch, width, rows, value, 1, nullptr);
}

CUresult cuMemsetD2D8Async(
    CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t rows, CUstream stream) {
    return fill_rows(to, pitch, width, rows, value, 1, stream);
}

CUresult cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t rows) {
    return fill_rows(to, pitch, width, rows, value, 4, nullptr);
}

CUresult cuMemsetD2D32Async(
    CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t rows, CUstream stream) {
    return fill_rows(to, pitch, width, rows, value, 4, stream);
}
