// CUDA arrays and mipmapped arrays. They take device memory as linear allocations do, and have no
// contents. Each row is rounded up to 512 bytes. The real driver's tiling was not measured.
#include "driver/state.h"

namespace fragtrace::vgpu {
namespace {

constexpr uint64_t kRowBytes = 512;

struct Mipmap;

struct Array {
    static constexpr Kind kKind = Kind::kArray;
    Object object;
    CUDA_ARRAY3D_DESCRIPTOR description;
    Context* context;
    uint64_t bytes;
    CUdeviceptr memory;  // 0: mapped later, or a level of a mipmapped array
    Mipmap* mipmap;      // the mipmapped array it is a level of, or null
    Array* next;
};

constexpr unsigned kMostLevels = 18;  // enough levels for the widest array down to one element

struct Mipmap {
    static constexpr Kind kKind = Kind::kMipmappedArray;
    Object object;
    CUDA_ARRAY3D_DESCRIPTOR description;
    Context* context;
    uint64_t bytes;
    CUdeviceptr memory;
    unsigned levels;
    Array* level[kMostLevels];
    Mipmap* next;
};

Array* g_arrays;
Mipmap* g_mipmaps;

uint64_t channel_bytes(CUarray_format format) {
    switch (format) {
        case CU_AD_FORMAT_UNSIGNED_INT8:
        case CU_AD_FORMAT_SIGNED_INT8:
            return 1;
        case CU_AD_FORMAT_UNSIGNED_INT16:
        case CU_AD_FORMAT_SIGNED_INT16:
        case CU_AD_FORMAT_HALF:
            return 2;
        case CU_AD_FORMAT_UNSIGNED_INT32:
        case CU_AD_FORMAT_SIGNED_INT32:
        case CU_AD_FORMAT_FLOAT:
            return 4;
        default:
            return 0;  // video formats and compressed textures are not supported
    }
}

bool has(const CUDA_ARRAY3D_DESCRIPTOR& description, unsigned flag) {
    return (description.Flags & flag) != 0;
}

bool is_valid(const CUDA_ARRAY3D_DESCRIPTOR& wanted) {
    constexpr size_t kWidest = 131072;
    constexpr size_t kDeepest = 16384;
    const unsigned channels = wanted.NumChannels;
    if (channels != 1 && channels != 2 && channels != 4) return false;
    if (wanted.Width == 0 || wanted.Width > kWidest || wanted.Height > kWidest) return false;
    if (wanted.Depth > kDeepest) return false;
    const bool layered = has(wanted, CUDA_ARRAY3D_LAYERED);
    if (has(wanted, CUDA_ARRAY3D_CUBEMAP)) {
        const bool faces = layered ? wanted.Depth % 6 == 0 : wanted.Depth == 6;
        return wanted.Depth > 0 && faces && wanted.Width == wanted.Height;
    }
    if (layered) return wanted.Depth > 0;
    return wanted.Depth == 0 || wanted.Height > 0;
}

uint64_t bytes_of(const CUDA_ARRAY3D_DESCRIPTOR& array) {
    const uint64_t row = array.Width * channel_bytes(array.Format) * array.NumChannels;
    const uint64_t rows =
        (array.Height > 0 ? array.Height : 1) * (array.Depth > 0 ? array.Depth : 1);
    return round_up(row, kRowBytes) * rows;
}

size_t half(size_t extent, unsigned level) {
    if (extent == 0) return 0;
    return extent >> level > 0 ? extent >> level : 1;
}

CUDA_ARRAY3D_DESCRIPTOR level_of(CUDA_ARRAY3D_DESCRIPTOR array, unsigned level) {
    array.Width = half(array.Width, level);
    array.Height = half(array.Height, level);
    const bool layers = has(array, CUDA_ARRAY3D_LAYERED) || has(array, CUDA_ARRAY3D_CUBEMAP);
    if (!layers) array.Depth = half(array.Depth, level);
    return array;
}

// Allocates `bytes` for an array. An array that the program maps itself gets no memory here.
CUresult back(const CUDA_ARRAY3D_DESCRIPTOR& wanted,
              Context* context,
              uint64_t bytes,
              CUdeviceptr* memory) {
    *memory = 0;
    if (has(wanted, CUDA_ARRAY3D_DEFERRED_MAPPING) || has(wanted, CUDA_ARRAY3D_SPARSE)) {
        return CUDA_SUCCESS;
    }
    return allocate_device(context->device, bytes, nullptr, context, memory);
}

template <typename Item>
void unlink(Item** list, Item* item) {
    for (Item** at = list; *at != nullptr; at = &(*at)->next) {
        if (*at != item) continue;
        *at = item->next;
        return;
    }
}

CUresult new_array(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR& wanted) {
    Context* context = nullptr;
    FT_TRY(require_context(&context));
    if (out == nullptr || !is_valid(wanted)) return CUDA_ERROR_INVALID_VALUE;
    if (channel_bytes(wanted.Format) == 0) return CUDA_ERROR_NOT_SUPPORTED;
    CUdeviceptr memory = 0;
    FT_TRY(back(wanted, context, bytes_of(wanted), &memory));
    Array* array = make<Array>();
    if (array == nullptr) {
        free_memory(memory);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    array->description = wanted;
    array->context = context;
    array->bytes = bytes_of(wanted);
    array->memory = memory;
    array->next = g_arrays;
    g_arrays = array;
    *out = reinterpret_cast<CUarray>(array);
    return CUDA_SUCCESS;
}

void destroy_mipmap(Mipmap* mipmap) {
    for (Array* level : mipmap->level) {
        if (level != nullptr) destroy(level);
    }
    unlink(&g_mipmaps, mipmap);
    destroy(mipmap);
}

template <typename Item>
CUresult requirements_of(const Item* item, CUDA_ARRAY_MEMORY_REQUIREMENTS* out, CUdevice device) {
    if (item == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (out == nullptr || !has(item->description, CUDA_ARRAY3D_DEFERRED_MAPPING)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    *out = {};
    out->size = round_up(item->bytes, kPageBytes);
    out->alignment = kPageBytes;
    return CUDA_SUCCESS;
}

}  // namespace

// Arrays are freed with their context.
void free_arrays_of(const Context* context) {
    for (Array **at = &g_arrays, *array = nullptr; (array = *at) != nullptr;) {
        if (array->context != context) {
            at = &array->next;
            continue;
        }
        *at = array->next;
        destroy(array);
    }
    for (Mipmap *mipmap = g_mipmaps, *next = nullptr; mipmap != nullptr; mipmap = next) {
        next = mipmap->next;
        if (mipmap->context == context) destroy_mipmap(mipmap);
    }
}

}  // namespace fragtrace::vgpu

using namespace fragtrace::vgpu;

CUresult cuArrayCreate_v2(CUarray* out, const CUDA_ARRAY_DESCRIPTOR* wanted) {
    FT_ENTER();
    if (wanted == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR description{};
    description.Width = wanted->Width;
    description.Height = wanted->Height;
    description.Format = wanted->Format;
    description.NumChannels = wanted->NumChannels;
    return new_array(out, description);
}

CUresult cuArray3DCreate_v2(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* wanted) {
    FT_ENTER();
    return wanted != nullptr ? new_array(out, *wanted) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuArrayDestroy(CUarray handle) {
    FT_ENTER();
    Array* array = as<Array>(handle);
    if (array == nullptr || array->mipmap != nullptr) return CUDA_ERROR_INVALID_HANDLE;
    free_memory(array->memory);
    unlink(&g_arrays, array);
    destroy(array);
    return CUDA_SUCCESS;
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* out, CUarray handle) {
    FT_ENTER();
    const Array* array = as<Array>(handle);
    if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (out == nullptr || array->description.Depth > 0) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY3D_DESCRIPTOR& from = array->description;
    *out = {from.Width, from.Height, from.Format, from.NumChannels};
    return CUDA_SUCCESS;
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* out, CUarray handle) {
    FT_ENTER();
    const Array* array = as<Array>(handle);
    if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = array->description;
    return CUDA_SUCCESS;
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out,
                                      CUarray array,
                                      CUdevice device) {
    FT_ENTER();
    return requirements_of(as<Array>(array), out, device);
}

// Only multi-planar formats have planes, and such arrays cannot be created here.
CUresult cuArrayGetPlane(CUarray*, CUarray array, unsigned) {
    FT_ENTER();
    return as<Array>(array) != nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* out,
                                const CUDA_ARRAY3D_DESCRIPTOR* wanted,
                                unsigned levels) {
    FT_ENTER();
    Context* context = nullptr;
    FT_TRY(require_context(&context));
    if (out == nullptr || wanted == nullptr || !is_valid(*wanted) || levels == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (channel_bytes(wanted->Format) == 0) return CUDA_ERROR_NOT_SUPPORTED;
    // CUDA's documentation says: levels beyond the number of halvings are dropped.
    unsigned most = 1;
    for (size_t widest = wanted->Width | wanted->Height | wanted->Depth; widest > 1; widest >>= 1)
        ++most;
    if (levels > most) levels = most;
    uint64_t bytes = 0;
    for (unsigned level = 0; level < levels; ++level)
        bytes += bytes_of(level_of(*wanted, level));
    CUdeviceptr memory = 0;
    FT_TRY(back(*wanted, context, bytes, &memory));
    Mipmap* mipmap = make<Mipmap>();
    if (mipmap == nullptr) {
        free_memory(memory);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    mipmap->description = *wanted;
    mipmap->context = context;
    mipmap->bytes = bytes;
    mipmap->memory = memory;
    mipmap->levels = levels;
    mipmap->next = g_mipmaps;
    g_mipmaps = mipmap;
    *out = reinterpret_cast<CUmipmappedArray>(mipmap);
    return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayGetLevel(CUarray* out, CUmipmappedArray handle, unsigned index) {
    FT_ENTER();
    Mipmap* mipmap = as<Mipmap>(handle);
    if (mipmap == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (out == nullptr || index >= mipmap->levels) return CUDA_ERROR_INVALID_VALUE;
    Array*& level = mipmap->level[index];
    if (level == nullptr) {
        level = make<Array>();
        if (level == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
        level->description = level_of(mipmap->description, index);
        level->context = mipmap->context;
        level->bytes = bytes_of(level->description);
        level->mipmap = mipmap;
    }
    *out = reinterpret_cast<CUarray>(level);
    return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray handle) {
    FT_ENTER();
    Mipmap* mipmap = as<Mipmap>(handle);
    if (mipmap == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    free_memory(mipmap->memory);
    destroy_mipmap(mipmap);
    return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out,
                                               CUmipmappedArray mipmap,
                                               CUdevice device) {
    FT_ENTER();
    return requirements_of(as<Mipmap>(mipmap), out, device);
}
