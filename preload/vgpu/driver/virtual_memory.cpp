// Virtual memory management: reserved addresses, physical allocations that count against the card,
// and mappings between them. Physical memory counts from cuMemCreate until its last handle is
// released and its last mapping is removed, in either order.
#include "driver/virtual_memory.h"

namespace fragtrace::vgpu {
namespace {

struct Range {
    uint64_t start;
    uint64_t size;
};

struct Mapping {
    uint64_t start;
    uint64_t size;
    Physical* physical;
    int access;  // the CUmemAccess_flags set last
};

SortedArray<Range> g_reserved;
SortedArray<Mapping> g_mappings;

// Returns the index of the first mapping if consecutive mappings cover exactly [start, start+size),
// or -1.
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
    physical->id = g_next_id++;
    physical->size = size;
    physical->properties = *properties;
    physical->device = device;
    physical->handles = 1;
    *handle = reinterpret_cast<CUmemGenericAllocationHandle>(physical);
    return CUDA_SUCCESS;
}

}  // namespace

void drop_if_unused(Physical* physical) {
    if (physical->handles > 0 || physical->mappings > 0) return;
    if (physical->multicast) unbind_all(physical);
    if (physical->device >= 0) give_bytes(g_devices[physical->device], physical->size);
    destroy(physical);
}

Physical* live_handle(CUmemGenericAllocationHandle handle) {
    Physical* physical = as<Physical>(handle);
    return physical != nullptr && physical->handles > 0 ? physical : nullptr;
}

Physical* mapped_at(CUdeviceptr address, uint64_t* offset) {
    const Mapping* mapping = g_mappings.find(address);
    if (mapping == nullptr) return nullptr;
    *offset = address - mapping->start;
    return mapping->physical;
}

bool find_mapped_memory(uint64_t address, MemoryInfo* info) {
    Mapping* mapping = g_mappings.find(address);
    if (mapping == nullptr) return false;
    *info = {MemoryInfo::kMapped,
             mapping->start,
             mapping->size,
             mapping->physical->device,
             nullptr,
             nullptr};
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

CUresult cuMemAddressReserve(CUdeviceptr* address,
                             size_t size,
                             size_t alignment,
                             CUdeviceptr hint,
                             unsigned long long flags) {
    FT_ENTER();
    const bool power_of_two = (alignment & (alignment - 1)) == 0;
    if (address == nullptr || size == 0 || !is_paged(size) || !power_of_two || flags != 0 ||
        !is_paged(hint)) {
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
    Physical* physical = live_handle(handle);
    if (physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
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
    Physical* physical = live_handle(handle);
    Range* range = g_reserved.find(address);
    const bool sized = size != 0 && is_paged(size) && is_paged(address) && offset == 0;
    if (physical == nullptr || range == nullptr || flags != 0 || !sized || size > physical->size ||
        address - range->start + size > range->size) {
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
    const Physical* physical = live_handle(handle);
    if (properties == nullptr || physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *properties = physical->properties;
    return CUDA_SUCCESS;
}
