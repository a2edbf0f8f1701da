// Device attributes and properties. Values of a card come from cards.def. The others are
// architecture limits from the CUDA programming guide's table of technical specifications.
#include "driver/state.h"

#include <stdio.h>

namespace fragtrace::vgpu {
namespace {

int compute_capability() {
    return config().card.compute_major * 10 + config().card.compute_minor;
}

int threads_per_multiprocessor() {
    switch (compute_capability()) {
        case 75:
            return 1024;
        case 86:
        case 87:
        case 89:
        case 120:
        case 121:
            return 1536;
        default:
            return 2048;
    }
}

int shared_kib_per_multiprocessor() {
    switch (compute_capability()) {
        case 60:
            return 64;
        case 61:
            return 96;
        case 70:
            return 96;
        case 75:
            return 64;
        case 80:
        case 87:
            return 164;
        case 86:
        case 89:
        case 120:
        case 121:
            return 100;
        default:
            return 228;
    }
}

int blocks_per_multiprocessor() {
    switch (compute_capability()) {
        case 75:
        case 86:
            return 16;
        case 89:
        case 120:
            return 24;
        default:
            return 32;
    }
}

int shared_optin_bytes() {
    const int kib = shared_kib_per_multiprocessor();
    if (compute_capability() <= 61) return 48 << 10;
    return (compute_capability() < 80 ? kib : kib - 1) << 10;
}

}  // namespace

static int launch_limit(int attribute) {
    switch (attribute) {
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
            return 1024;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
            return 64;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
            return 2147483647;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
            return 65535;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
            return 48 << 10;
        case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
            return 64 << 10;
        case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
            return 32;
        case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
            return 2147483647;
        case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
        case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
            return 65536;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
            return threads_per_multiprocessor();
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
            return shared_kib_per_multiprocessor() << 10;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
            return shared_optin_bytes();
        case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
            return compute_capability() >= 80 ? 1024 : 0;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
            return blocks_per_multiprocessor();
        case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
        case CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT:
            return 512;
        case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT:
            return 32;
        default:
            return -1;
    }
}

static int card_value(int attribute, int device) {
    const Card& card = config().card;
    switch (attribute) {
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
            return card.multiprocessors;
        case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
            return card.clock_khz;
        case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
            return card.memory_clock_khz;
        case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
            return card.memory_bus_bits;
        case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
            return card.l2_cache_bytes;
        case CU_DEVICE_ATTRIBUTE_ECC_ENABLED:
            return card.ecc;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
            return card.compute_major;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
            return card.compute_minor;
        case CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE:
            return compute_capability() >= 80 ? card.l2_cache_bytes / 4 * 3 : 0;
        case CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE:
            return compute_capability() >= 80 ? 128 << 20 : 0;
        case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
        case CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED:
            return compute_capability() >= 90;
        case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
            return pci_bus_of(config().physical_index[device]);
        case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
            return 0;
        case CU_DEVICE_ATTRIBUTE_NUMA_ID:
            return -1;
        default:
            return -2;
    }
}

// Yes/no attributes that are true for every virtual card. Attributes that are not listed anywhere
// are 0.
static bool supported(int attribute) {
    switch (attribute) {
        case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
        case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
        case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
        case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
        case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
        case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
        case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
        case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
        case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS:
            return true;
        default:
            return false;
    }
}

}  // namespace fragtrace::vgpu

using namespace fragtrace::vgpu;

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
    FT_ENTER();
    if (value == nullptr || int(attribute) <= 0) return CUDA_ERROR_INVALID_VALUE;
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    const int limit = launch_limit(attribute);
    const int card = card_value(attribute, device);
    if (limit >= 0) {
        *value = limit;
    } else if (card > -2) {
        *value = card;
    } else if (attribute == CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT) {
        *value = 3;
    } else if (attribute == CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO) {
        *value = 2;
    } else {
        *value = supported(attribute) ? 1 : 0;
    }
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
    FT_ENTER();
    if (name == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    device_name(config(), name, length);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
    FT_ENTER();
    if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    *bytes = g_devices[device].total_bytes;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
    FT_ENTER();
    if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    device_uuid(config().physical_index[device], reinterpret_cast<unsigned char*>(uuid->bytes));
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
    FT_ENTER();
    if (text == nullptr || length < 13) return CUDA_ERROR_INVALID_VALUE;
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    snprintf(text, size_t(length), "0000:%02X:00.0", pci_bus_of(config().physical_index[device]));
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* text) {
    FT_ENTER();
    if (device == nullptr || text == nullptr) return CUDA_ERROR_INVALID_VALUE;
    unsigned domain = 0;
    unsigned bus = 0;
    if (sscanf(text, "%x:%x:", &domain, &bus) != 2) return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < device_count(); ++i) {
        if (unsigned(pci_bus_of(config().physical_index[i])) != bus) continue;
        *device = i;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
    FT_ENTER();
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (major != nullptr) *major = config().card.compute_major;
    if (minor != nullptr) *minor = config().card.compute_minor;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetExecAffinitySupport(int* answer, CUexecAffinityType, CUdevice device) {
    FT_ENTER();
    if (answer == nullptr || !valid_device(device)) return CUDA_ERROR_INVALID_VALUE;
    *answer = 0;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute, CUdevice from, CUdevice to) {
    FT_ENTER();
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!valid_device(from) || !valid_device(to) || from == to) return CUDA_ERROR_INVALID_DEVICE;
    *value = 1;
    return CUDA_SUCCESS;
}
