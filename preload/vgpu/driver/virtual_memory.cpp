// Virtual memory management: reserved addresses, physical allocations that count against the card,
// and mappings between them. Physical bytes are held from cuMemCreate until the last handle is
// released and the last mapping is gone, in either order.
#include "driver/state.h"

#include <sys/mman.h>
#include <unistd.h>

namespace fragtrace::vgpu {
namespace {

struct Physical {
    static constexpr Kind kKind = Kind::kPhysical;
    Object object;
    uint64_t size;
    CUmemAllocationProp properties;
    int device;  // -1: host memory, which takes nothing from a card
    int handles;
    int mappings;
};

struct Range {
    uint64_t start;
    uint64_t size;
};

struct Mapping {
    uint64_t start;
    uint64_t size;
    Physical* physical;
    int access;  // CUmemAccess_flags as set last
};

SortedArray<Range> g_reserved;
SortedArray<Mapping> g_mappings;

void drop_if_unused(Physical* physical) {
    if (physical->handles > 0 || physical->mappings > 0) return;
    if (physical->device >= 0) give_bytes(g_devices[physical->device], physical->size);
    destroy(physical);
}

bool is_paged(uint64_t value) {
    return value % kPageBytes == 0;
}

// Index of the first of the mappings that cover [start, start+size) exactly, or -1.
int mappings_of(uint64_t start, uint64_t size) {
    Mapping* first = g_mappings.find_start(start);
    if (first == nullptr || size == 0) return -1;
    uint64_t covered = 0;
    for (Mapping* at = first; at != g_mappings.end() && covered < size; ++at) {
        if (at->start != start + covered) return -1;
        covered += at->size;
    }
    return covered == size ? int(first - g_mappings.begin()) : -1;
}

CUresult new_physical(CUmemGenericAllocationHandle* handle,
                      uint64_t size,
                      const CUmemAllocationProp* properties) {
    int device = -1;
    if (properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
        device = properties->location.id;
        if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    }
    Physical* physical = make<Physical>();
    if (physical == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    if (device >= 0 && !take_bytes(g_devices[device], size)) {
        destroy(physical);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    physical->size = size;
    physical->properties = *properties;
    physical->device = device;
    physical->handles = 1;
    *handle = reinterpret_cast<CUmemGenericAllocationHandle>(physical);
    return CUDA_SUCCESS;
}

}  // namespace

bool find_mapped_memory(uint64_t address, MemoryInfo* info) {
    Mapping* mapping = g_mappings.find(address);
    if (mapping == nullptr) return false;
    *info = {
        MemoryInfo::kMapped, mapping->start, mapping->size, mapping->physical->device, nullptr};
    return true;
}

}  // namespace fragtrace::vgpu

using namespace fragtrace::vgpu;

CUresult cuMemGetAllocationGranularity(size_t* granularity,
                                       const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags) {
    FT_ENTER();
    if (granularity == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *granularity = kPageBytes;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(
    CUdeviceptr* address, size_t size, size_t alignment, CUdeviceptr hint, unsigned long long) {
    FT_ENTER();
    const bool power_of_two = (alignment & (alignment - 1)) == 0;
    if (address == nullptr || size == 0 || !is_paged(size) || !power_of_two) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const uint64_t step = alignment > kPageBytes ? alignment : kPageBytes;
    const uint64_t limit = kReservedBase + kReservedBytes;
    uint64_t start = 0;
    if (hint >= kReservedBase && hint < limit && hint % step == 0 && size <= limit - hint) {
        start = g_reserved.first_fit(hint, hint + size, size, step);
    }
    if (start == 0) start = g_reserved.first_fit(kReservedBase, limit, size, step);
    if (start == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    if (g_reserved.insert({start, size}) == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    *address = start;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t size) {
    FT_ENTER();
    Range* range = g_reserved.find_start(address);
    if (range == nullptr || range->size != size) return CUDA_ERROR_INVALID_VALUE;
    const int next = g_mappings.upper_bound(address + size - 1);
    if (next > 0 && g_mappings[next - 1].start + g_mappings[next - 1].size > address) {
        return CUDA_ERROR_INVALID_VALUE;  // still mapped
    }
    g_reserved.erase(range);
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle,
                     size_t size,
                     const CUmemAllocationProp* properties,
                     unsigned long long flags) {
    FT_ENTER();
    if (handle == nullptr || properties == nullptr || flags != 0 || size == 0 || !is_paged(size)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return new_physical(handle, size, properties);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    FT_ENTER();
    Physical* physical = as<Physical>(handle);
    if (physical == nullptr || physical->handles == 0) return CUDA_ERROR_INVALID_VALUE;
    --physical->handles;
    drop_if_unused(physical);
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address,
                  size_t size,
                  size_t offset,
                  CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
    FT_ENTER();
    Physical* physical = as<Physical>(handle);
    Range* range = g_reserved.find(address);
    const bool sized = size != 0 && is_paged(size) && is_paged(address) && offset == 0;
    if (physical == nullptr || physical->handles == 0 || range == nullptr || flags != 0 || !sized ||
        size > physical->size || address - range->start + size > range->size) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const int next = g_mappings.upper_bound(address + size - 1);
    if (next > 0 && g_mappings[next - 1].start + g_mappings[next - 1].size > address) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (g_mappings.insert({address, size, physical, 0}) == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    ++physical->mappings;
    return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
    FT_ENTER();
    const int first = mappings_of(address, size);
    if (first < 0) return CUDA_ERROR_INVALID_VALUE;
    for (uint64_t covered = 0; covered < size;) {
        Mapping* mapping = &g_mappings[first];
        covered += mapping->size;
        Physical* physical = mapping->physical;
        g_mappings.erase(mapping);
        --physical->mappings;
        drop_if_unused(physical);
    }
    return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr address,
                        size_t size,
                        const CUmemAccessDesc* descriptions,
                        size_t count) {
    FT_ENTER();
    const int first = mappings_of(address, size);
    if (first < 0 || descriptions == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    for (int i = first; i < g_mappings.count() && g_mappings[i].start < address + size; ++i) {
        g_mappings[i].access = int(descriptions[0].flags);
    }
    return CUDA_SUCCESS;
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation*, CUdeviceptr address) {
    FT_ENTER();
    Mapping* mapping = g_mappings.find(address);
    if (flags == nullptr || mapping == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = static_cast<unsigned long long>(mapping->access);
    return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
    FT_ENTER();
    Mapping* mapping = g_mappings.find(reinterpret_cast<uint64_t>(address));
    if (handle == nullptr || mapping == nullptr) return CUDA_ERROR_INVALID_VALUE;
    ++mapping->physical->handles;
    *handle = reinterpret_cast<CUmemGenericAllocationHandle>(mapping->physical);
    return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                CUmemGenericAllocationHandle handle) {
    FT_ENTER();
    Physical* physical = as<Physical>(handle);
    if (properties == nullptr || physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *properties = physical->properties;
    return CUDA_SUCCESS;
}

// The descriptor carries size and properties: another process can map the memory, and it counts
// there as host memory does, not against the card twice.
CUresult cuMemExportToShareableHandle(void* out,
                                      CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type,
                                      unsigned long long flags) {
    FT_ENTER();
    Physical* physical = as<Physical>(handle);
    if (out == nullptr || physical == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    const int descriptor = memfd_create("fragtrace-virtual-gpu", MFD_CLOEXEC);
    if (descriptor < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    const Physical copy = *physical;
    if (pwrite(descriptor, &copy, sizeof copy, 0) != ssize_t(sizeof copy)) {
        close(descriptor);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    *static_cast<int*>(out) = descriptor;
    return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle,
                                        void* descriptor,
                                        CUmemAllocationHandleType type) {
    FT_ENTER();
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    Physical copy{};
    const int fd = int(reinterpret_cast<intptr_t>(descriptor));
    if (pread(fd, &copy, sizeof copy, 0) != ssize_t(sizeof copy) ||
        copy.object.kind != Kind::kPhysical) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Physical* physical = make<Physical>();
    if (physical == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    physical->size = copy.size;
    physical->properties = copy.properties;
    physical->device = -1;
    physical->handles = 1;
    *handle = reinterpret_cast<CUmemGenericAllocationHandle>(physical);
    return CUDA_SUCCESS;
}
