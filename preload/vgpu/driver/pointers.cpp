// Attributes of addresses: cuPointerGetAttribute(s).
#include "driver/state.h"

namespace fragtrace::vgpu {
namespace {

bool is_device_side(const MemoryInfo& info) {
    return info.type == MemoryInfo::kDevice || info.type == MemoryInfo::kMapped ||
           info.type == MemoryInfo::kManaged;
}

Context* context_of(const MemoryInfo& info) {
    if (info.context != nullptr) return info.context;
    return info.device >= 0 ? g_devices[info.device].primary : nullptr;
}

// Writes the value of a supported attribute. The size of `out` depends on the attribute.
CUresult answer(CUpointer_attribute attribute,
                uint64_t address,
                const MemoryInfo& info,
                void* out) {
    auto put = [out](auto value) {
        memcpy(out, &value, sizeof value);
        return CUDA_SUCCESS;
    };
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
            return put(
                static_cast<void*>(info.type == MemoryInfo::kMapped ? nullptr : context_of(info)));
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            return put(unsigned(is_device_side(info) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST));
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
            return put(address);
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            if (!host_can_read(address)) return CUDA_ERROR_INVALID_VALUE;
            return put(address);
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
            return put(uint64_t{info.start});
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
            return put(static_cast<unsigned char>(info.type == MemoryInfo::kManaged));
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            return put(int(info.device));
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            return put(uint64_t{info.start});
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            return put(uint64_t{info.size});
        case CU_POINTER_ATTRIBUTE_MAPPED:
            return put(static_cast<unsigned char>(1));
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
            return put(static_cast<unsigned char>(0));
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
            return put(static_cast<unsigned char>(info.type == MemoryInfo::kDevice &&
                                                  info.context != nullptr));
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
            return put(info.pool != nullptr ? uint64_t(info.pool->properties.handleTypes) : 0);
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
            return put(int{3});
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
            return put(static_cast<void*>(info.pool));
        default:
            return CUDA_ERROR_NOT_SUPPORTED;
    }
}

// Addresses that the virtual driver did not allocate get the values of plain host memory.
void answer_unknown(CUpointer_attribute attribute, uint64_t address, void* out) {
    (void)address;
    const uint64_t none = 0;
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            memcpy(out, &none, 4);
            break;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: {
            const int no_device = -2;  // the value that the real driver reports
            memcpy(out, &no_device, sizeof no_device);
            break;
        }
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        case CU_POINTER_ATTRIBUTE_MAPPED:
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
            memcpy(out, &none, 1);
            break;
        default:
            memcpy(out, &none, 8);
            break;
    }
}

}  // namespace
}  // namespace fragtrace::vgpu

using namespace fragtrace::vgpu;

CUresult cuPointerGetAttribute(void* out, CUpointer_attribute attribute, CUdeviceptr address) {
    FT_ENTER();
    MemoryInfo info{};
    if (out == nullptr || !find_memory(address, &info)) return CUDA_ERROR_INVALID_VALUE;
    return answer(attribute, address, info, out);
}

CUresult cuPointerGetAttributes(unsigned count,
                                CUpointer_attribute* attributes,
                                void** out,
                                CUdeviceptr address) {
    FT_ENTER();
    if (attributes == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    MemoryInfo info{};
    const bool known = find_memory(address, &info);
    for (unsigned i = 0; i < count; ++i) {
        if (!known || answer(attributes[i], address, info, out[i]) != CUDA_SUCCESS) {
            answer_unknown(attributes[i], address, out[i]);
        }
    }
    return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void*, CUpointer_attribute, CUdeviceptr address) {
    FT_ENTER();
    MemoryInfo info{};
    return find_memory(address, &info) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
