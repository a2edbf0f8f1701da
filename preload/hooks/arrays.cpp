// Hooks of arrays and mipmapped arrays. No call gives their size. It is the size that the driver
// reports. If it reports none: the size in the descriptor without padding; otherwise unknown.
#include "hooks/hook_call.h"

namespace fragtrace::preload {
namespace {

// CUDA_ARRAY3D_... and cudaArray...
constexpr unsigned kLayered = 0x01;
constexpr unsigned kCubemap = 0x04;
constexpr unsigned kSparse = 0x40;
constexpr unsigned kDeferredMapping = 0x80;

uint64_t format_bytes(int format) {
    switch (format) {  // CUarray_format: the formats with one number per channel
        case 0x01:
        case 0x08:
            return 1;
        case 0x02:
        case 0x09:
        case 0x10:
            return 2;
        case 0x03:
        case 0x0a:
        case 0x20:
            return 4;
        default:
            return 0;
    }
}

struct Shape {
    uint64_t element_bytes;  // 0 = unknown
    uint64_t width;
    uint64_t height;
    uint64_t depth;
    uint32_t levels;
    uint32_t flags;
};

uint64_t at_least_one(uint64_t value) {
    return value == 0 ? 1 : value;
}

uint64_t shape_bytes(const Shape& shape) {
    // Other calls create their memory and map it.
    if ((shape.flags & (kSparse | kDeferredMapping)) != 0) {
        return 0;
    }
    if (shape.element_bytes == 0) {
        return kUnknown64;
    }
    const bool layers = (shape.flags & (kLayered | kCubemap)) != 0;
    uint64_t elements = 0;
    for (uint32_t level = 0; level < shape.levels && level < 32; ++level) {
        const uint64_t depth = layers ? shape.depth : shape.depth >> level;
        elements += at_least_one(shape.width >> level) * at_least_one(shape.height >> level) *
                    at_least_one(depth);
    }
    return elements * shape.element_bytes;
}

template <Hook kRequirements>
void array_made(Call& call, int result, const void* array, const Shape& shape) {
    const uint16_t device = call.current_device();
    uint64_t bytes = shape_bytes(shape);
    ArrayRequirements requirements{};
    auto* ask = real<kRequirements>(call.caller());
    if (result == kSuccess && bytes != 0 && ask != nullptr &&
        ask(&requirements, const_cast<void*>(array), device) == kSuccess &&
        requirements.bytes != 0) {
        bytes = requirements.bytes;
    }
    call.allocation(result,
                    {.kind = EventKind::kArrayAlloc,
                     .device = device,
                     .address = number(array),
                     .size = bytes});
}

void array_made(Call& call, int result, void* const* array, const Shape& shape) {
    array_made<Hook::k_cuArrayGetMemoryRequirements>(
        call, result, result == kSuccess ? *array : nullptr, shape);
}

void mipmapped_made(Call& call, int result, void* const* array, const Shape& shape) {
    array_made<Hook::k_cuMipmappedArrayGetMemoryRequirements>(
        call, result, result == kSuccess ? *array : nullptr, shape);
}

// The driver rejects a call without a descriptor before it allocates anything.
Shape shape_of(const Array3dDescriptor* descriptor, unsigned levels) {
    return descriptor == nullptr ? Shape{}
                                 : Shape{format_bytes(descriptor->format) * descriptor->channels,
                                         descriptor->width,
                                         descriptor->height,
                                         descriptor->depth,
                                         levels,
                                         descriptor->flags};
}

Shape shape_of(const ChannelFormat* format, Extent extent, unsigned levels, unsigned flags) {
    if (format == nullptr) {
        return {};
    }
    int bits = 0;
    for (const int channel : format->bits) {
        bits += channel;
    }
    constexpr int kLastPlainKind = 2;  // signed, unsigned, float; others pack or compress
    const int element_bytes = format->kind <= kLastPlainKind && bits > 0 ? bits / 8 : 0;
    return {static_cast<uint64_t>(element_bytes),
            extent.width,
            extent.height,
            extent.depth,
            levels,
            flags};
}

template <Hook kHook>
int create_array(const void* caller, void** array, const ArrayDescriptor* descriptor) {
    return recorded<kHook>(
        caller,
        [&](Call& call, int result) {
            const Array3dDescriptor full = descriptor == nullptr
                                               ? Array3dDescriptor{}
                                               : Array3dDescriptor{descriptor->width,
                                                                   descriptor->height,
                                                                   0,
                                                                   descriptor->format,
                                                                   descriptor->channels,
                                                                   0};
            array_made(call, result, array, shape_of(descriptor == nullptr ? nullptr : &full, 1));
        },
        array,
        descriptor);
}

template <Hook kHook>
int create_array_3d(const void* caller, void** array, const Array3dDescriptor* descriptor) {
    return recorded<kHook>(
        caller,
        [&](Call& call, int result) { array_made(call, result, array, shape_of(descriptor, 1)); },
        array,
        descriptor);
}

template <Hook kHook>
int create_mipmapped(const void* caller,
                     void** array,
                     const Array3dDescriptor* descriptor,
                     unsigned levels) {
    return recorded<kHook>(
        caller,
        [&](Call& call, int result) {
            mipmapped_made(call, result, array, shape_of(descriptor, levels));
        },
        array,
        descriptor,
        levels);
}

template <Hook kHook>
int malloc_array(const void* caller,
                 void** array,
                 const ChannelFormat* format,
                 size_t width,
                 size_t height,
                 unsigned flags) {
    return recorded<kHook>(
        caller,
        [&](Call& call, int result) {
            array_made(call, result, array, shape_of(format, {width, height, 0}, 1, flags));
        },
        array,
        format,
        width,
        height,
        flags);
}

template <Hook kHook>
int malloc_array_3d(
    const void* caller, void** array, const ChannelFormat* format, Extent extent, unsigned flags) {
    return recorded<kHook>(
        caller,
        [&](Call& call, int result) {
            array_made(call, result, array, shape_of(format, extent, 1, flags));
        },
        array,
        format,
        extent,
        flags);
}

template <Hook kHook>
int malloc_mipmapped(const void* caller,
                     void** array,
                     const ChannelFormat* format,
                     Extent extent,
                     unsigned levels,
                     unsigned flags) {
    return recorded<kHook>(
        caller,
        [&](Call& call, int result) {
            mipmapped_made(call, result, array, shape_of(format, extent, levels, flags));
        },
        array,
        format,
        extent,
        levels,
        flags);
}

template <Hook kHook>
int free_array(const void* caller, void* array) {
    return ending<kHook>(
        caller,
        [&](Call& call) {
            return array == nullptr ? 0
                                    : call.record({.kind = EventKind::kArrayFree,
                                                   .device = call.current_device(),
                                                   .address = number(array)});
        },
        array);
}

}  // namespace

FT_HOOK_2(cuArrayCreate_v2, create_array)
FT_HOOK_2(cuArray3DCreate_v2, create_array_3d)
FT_HOOK_3(cuMipmappedArrayCreate, create_mipmapped)
FT_HOOK_5(cudaMallocArray, malloc_array)
FT_HOOK_4(cudaMalloc3DArray, malloc_array_3d)
FT_HOOK_5(cudaMallocMipmappedArray, malloc_mipmapped)
FT_HOOK_1(cuArrayDestroy, free_array)
FT_HOOK_1(cuMipmappedArrayDestroy, free_array)
FT_HOOK_1(cudaFreeArray, free_array)
FT_HOOK_1(cudaFreeMipmappedArray, free_array)

}  // namespace fragtrace::preload
