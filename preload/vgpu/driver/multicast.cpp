// Multicast objects: the devices that joined and the memory bound to each. Bound memory stays
// allocated, as mapped memory does. The objects themselves take no memory of a card.
#include "driver/virtual_memory.h"

namespace fragtrace::vgpu {
namespace {

struct Binding {
    Physical* multicast;
    Physical* memory;
    uint64_t offset;
    uint64_t size;
    Binding* next;
};

Binding* g_bindings;

Physical* multicast_of(CUmemGenericAllocationHandle handle) {
    Physical* physical = live_handle(handle);
    return physical != nullptr && physical->multicast ? physical : nullptr;
}

bool joined(const Physical& multicast, int device) {
    return device >= 0 && (multicast.devices & (uint64_t{1} << device)) != 0;
}

CUresult bind(Physical* multicast,
              uint64_t offset,
              Physical* memory,
              uint64_t memory_offset,
              uint64_t size,
              unsigned long long flags) {
    if (multicast == nullptr || memory == nullptr || memory->multicast || flags != 0 || size == 0 ||
        !is_paged(offset) || !is_paged(memory_offset) || !is_paged(size) ||
        size > multicast->size || offset > multicast->size - size || size > memory->size ||
        memory_offset > memory->size - size) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!joined(*multicast, memory->device)) return CUDA_ERROR_INVALID_DEVICE;
    for (const Binding* at = g_bindings; at != nullptr; at = at->next) {
        if (at->multicast == multicast && at->memory->device == memory->device &&
            offset < at->offset + at->size && at->offset < offset + size) {
            return CUDA_ERROR_INVALID_VALUE;  // range is already bound
        }
    }
    Binding* binding = static_cast<Binding*>(malloc(sizeof(Binding)));
    if (binding == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    *binding = {multicast, memory, offset, size, g_bindings};
    g_bindings = binding;
    ++memory->mappings;
    return CUDA_SUCCESS;
}

template <typename Wanted>
int unbind(Wanted wanted) {
    int found = 0;
    for (Binding** at = &g_bindings; *at != nullptr;) {
        Binding* binding = *at;
        if (!wanted(*binding)) {
            at = &binding->next;
            continue;
        }
        *at = binding->next;
        --binding->memory->mappings;
        drop_if_unused(binding->memory);
        free(binding);
        ++found;
    }
    return found;
}

bool is_valid(const CUmulticastObjectProp* properties) {
    return properties != nullptr && properties->numDevices > 0 && properties->size > 0 &&
           is_paged(properties->size) && properties->flags == 0;
}

}  // namespace

void unbind_all(Physical* multicast) {
    unbind([=](const Binding& binding) { return binding.multicast == multicast; });
}

}  // namespace fragtrace::vgpu

using namespace fragtrace::vgpu;

CUresult cuMulticastGetGranularity(size_t* granularity,
                                   const CUmulticastObjectProp* properties,
                                   CUmulticastGranularity_flags) {
    FT_ENTER();
    if (granularity == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *granularity = kPageBytes;
    return CUDA_SUCCESS;
}

CUresult cuMulticastCreate(CUmemGenericAllocationHandle* out,
                           const CUmulticastObjectProp* properties) {
    FT_ENTER();
    if (out == nullptr || !is_valid(properties)) return CUDA_ERROR_INVALID_VALUE;
    Physical* multicast = make<Physical>();
    if (multicast == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    multicast->id = g_next_id++;
    multicast->size = properties->size;
    multicast->properties.requestedHandleTypes =
        static_cast<CUmemAllocationHandleType>(properties->handleTypes);
    multicast->device = -1;
    multicast->handles = 1;
    multicast->multicast = true;
    *out = reinterpret_cast<CUmemGenericAllocationHandle>(multicast);
    return CUDA_SUCCESS;
}

CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice device) {
    FT_ENTER();
    Physical* multicast = multicast_of(handle);
    if (multicast == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (joined(*multicast, device)) return CUDA_ERROR_INVALID_VALUE;
    multicast->devices |= uint64_t{1} << device;
    return CUDA_SUCCESS;
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle handle,
                            size_t offset,
                            CUmemGenericAllocationHandle memory,
                            size_t memory_offset,
                            size_t size,
                            unsigned long long flags) {
    FT_ENTER();
    return bind(multicast_of(handle), offset, live_handle(memory), memory_offset, size, flags);
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle handle,
                             size_t offset,
                             CUdeviceptr address,
                             size_t size,
                             unsigned long long flags) {
    FT_ENTER();
    uint64_t memory_offset = 0;
    Physical* memory = mapped_at(address, &memory_offset);
    return bind(multicast_of(handle), offset, memory, memory_offset, size, flags);
}

CUresult cuMulticastUnbind(CUmemGenericAllocationHandle handle,
                           CUdevice device,
                           size_t offset,
                           size_t size) {
    FT_ENTER();
    const Physical* multicast = multicast_of(handle);
    if (multicast == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    const int found = unbind([=](const Binding& binding) {
        return binding.multicast == multicast && binding.memory->device == device &&
               binding.offset >= offset && binding.offset + binding.size <= offset + size;
    });
    return found > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
