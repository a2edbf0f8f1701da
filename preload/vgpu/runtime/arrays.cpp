// CUDA arrays under the runtime's names. The runtime's array is the driver's handle.
#include "runtime/runtime.h"

using namespace fragtrace::vgpu;

namespace {

CUarray as_driver(cudaArray_const_t array) {
    return reinterpret_cast<CUarray>(const_cast<cudaArray*>(array));
}

CUmipmappedArray as_driver(cudaMipmappedArray_const_t array) {
    return reinterpret_cast<CUmipmappedArray>(const_cast<cudaMipmappedArray*>(array));
}

// Counts the channels that have bits. All of them must have the same number of bits.
bool channels_of(const cudaChannelFormatDesc& format, CUDA_ARRAY3D_DESCRIPTOR* out) {
    const int bits[] = {format.x, format.y, format.z, format.w};
    unsigned channels = 0;
    for (const int of : bits) {
        if (of != 0 && of != format.x) return false;
        if (of != 0) ++channels;
    }
    const bool is_float = format.f == cudaChannelFormatKindFloat;
    const bool is_signed = format.f == cudaChannelFormatKindSigned;
    if (!is_float && !is_signed && format.f != cudaChannelFormatKindUnsigned) return false;
    out->NumChannels = channels;
    switch (format.x) {
        case 8:
            out->Format = is_signed ? CU_AD_FORMAT_SIGNED_INT8 : CU_AD_FORMAT_UNSIGNED_INT8;
            return !is_float;
        case 16:
            out->Format = is_float    ? CU_AD_FORMAT_HALF
                          : is_signed ? CU_AD_FORMAT_SIGNED_INT16
                                      : CU_AD_FORMAT_UNSIGNED_INT16;
            return true;
        case 32:
            out->Format = is_float    ? CU_AD_FORMAT_FLOAT
                          : is_signed ? CU_AD_FORMAT_SIGNED_INT32
                                      : CU_AD_FORMAT_UNSIGNED_INT32;
            return true;
        default:
            return false;
    }
}

cudaChannelFormatDesc format_of(const CUDA_ARRAY3D_DESCRIPTOR& array) {
    int bits = 32;
    cudaChannelFormatKind kind = cudaChannelFormatKindUnsigned;
    switch (array.Format) {
        case CU_AD_FORMAT_SIGNED_INT8:
        case CU_AD_FORMAT_UNSIGNED_INT8:
            bits = 8;
            break;
        case CU_AD_FORMAT_SIGNED_INT16:
        case CU_AD_FORMAT_UNSIGNED_INT16:
        case CU_AD_FORMAT_HALF:
            bits = 16;
            break;
        default:
            break;
    }
    if (array.Format == CU_AD_FORMAT_HALF || array.Format == CU_AD_FORMAT_FLOAT) {
        kind = cudaChannelFormatKindFloat;
    } else if (array.Format == CU_AD_FORMAT_SIGNED_INT8 ||
               array.Format == CU_AD_FORMAT_SIGNED_INT16 ||
               array.Format == CU_AD_FORMAT_SIGNED_INT32) {
        kind = cudaChannelFormatKindSigned;
    }
    const unsigned channels = array.NumChannels;
    return {bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0, channels > 3 ? bits : 0, kind};
}

// The runtime's flags have the same values as the driver's.
bool describe(const cudaChannelFormatDesc* format,
              cudaExtent extent,
              unsigned flags,
              CUDA_ARRAY3D_DESCRIPTOR* out) {
    *out = {};
    out->Width = extent.width;
    out->Height = extent.height;
    out->Depth = extent.depth;
    out->Flags = flags;
    return format != nullptr && channels_of(*format, out);
}

cudaError_t create(cudaArray_t* out,
                   const cudaChannelFormatDesc* format,
                   cudaExtent extent,
                   unsigned flags) {
    FT_CONTEXT();
    CUDA_ARRAY3D_DESCRIPTOR wanted;
    if (!describe(format, extent, flags, &wanted)) return finish(cudaErrorInvalidValue);
    return finish(driver->cuArray3DCreate_(reinterpret_cast<CUarray*>(out), &wanted));
}

void convert(const CUDA_ARRAY_MEMORY_REQUIREMENTS& from, cudaArrayMemoryRequirements* to) {
    *to = {};
    to->size = from.size;
    to->alignment = from.alignment;
}

}  // namespace

cudaError_t cudaMallocArray(cudaArray_t* out,
                            const cudaChannelFormatDesc* format,
                            size_t width,
                            size_t height,
                            unsigned flags) {
    return create(out, format, {width, height, 0}, flags);
}

cudaError_t cudaMalloc3DArray(cudaArray_t* out,
                              const cudaChannelFormatDesc* format,
                              cudaExtent extent,
                              unsigned flags) {
    return create(out, format, extent, flags);
}

cudaError_t cudaFreeArray(cudaArray_t array) {
    if (array == nullptr) return cudaSuccess;
    FT_FORWARD(cuArrayDestroy, as_driver(array));
}

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind f) {
    return {x, y, z, w, f};
}

cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* format,
                             cudaExtent* extent,
                             unsigned* flags,
                             cudaArray_t array) {
    FT_CONTEXT();
    CUDA_ARRAY3D_DESCRIPTOR found{};
    if (const CUresult result = driver->cuArray3DGetDescriptor_(&found, as_driver(array))) {
        return finish(result);
    }
    if (format != nullptr) *format = format_of(found);
    if (extent != nullptr) *extent = {found.Width, found.Height, found.Depth};
    if (flags != nullptr) *flags = found.Flags;
    return cudaSuccess;
}

cudaError_t cudaArrayGetPlane(cudaArray_t* out, cudaArray_t array, unsigned plane) {
    FT_FORWARD(cuArrayGetPlane, reinterpret_cast<CUarray*>(out), as_driver(array), plane);
}

cudaError_t cudaArrayGetMemoryRequirements(cudaArrayMemoryRequirements* out,
                                           cudaArray_t array,
                                           int device) {
    FT_CONTEXT();
    CUDA_ARRAY_MEMORY_REQUIREMENTS found{};
    const CUresult result = driver->cuArrayGetMemoryRequirements_(
        out != nullptr ? &found : nullptr, as_driver(array), device);
    if (result == CUDA_SUCCESS) convert(found, out);
    return finish(result);
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* out,
                                     const cudaChannelFormatDesc* format,
                                     cudaExtent extent,
                                     unsigned levels,
                                     unsigned flags) {
    FT_CONTEXT();
    CUDA_ARRAY3D_DESCRIPTOR wanted;
    if (!describe(format, extent, flags, &wanted)) return finish(cudaErrorInvalidValue);
    return finish(
        driver->cuMipmappedArrayCreate_(reinterpret_cast<CUmipmappedArray*>(out), &wanted, levels));
}

cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t* out,
                                       cudaMipmappedArray_const_t array,
                                       unsigned level) {
    FT_FORWARD(cuMipmappedArrayGetLevel, reinterpret_cast<CUarray*>(out), as_driver(array), level);
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array) {
    if (array == nullptr) return cudaSuccess;
    FT_FORWARD(cuMipmappedArrayDestroy, as_driver(array));
}

cudaError_t cudaMipmappedArrayGetMemoryRequirements(cudaArrayMemoryRequirements* out,
                                                    cudaMipmappedArray_t array,
                                                    int device) {
    FT_CONTEXT();
    CUDA_ARRAY_MEMORY_REQUIREMENTS found{};
    const CUresult result = driver->cuMipmappedArrayGetMemoryRequirements_(
        out != nullptr ? &found : nullptr, as_driver(array), device);
    if (result == CUDA_SUCCESS) convert(found, out);
    return finish(result);
}
