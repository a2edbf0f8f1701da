// Page-locked and managed host memory. It is real memory at fixed addresses, so that two traces of
// a program agree. Also cuMemFree, which accepts device and managed addresses.
#include "driver/state.h"

#include <initializer_list>
#include <sys/mman.h>

namespace fragtrace::vgpu {
namespace {

constexpr uint64_t kHostPageBytes = 4096;

struct HostRange {
    uint64_t start;
    uint64_t size;
    uint64_t requested;
    unsigned flags;
    MemoryInfo::Type type;
    int device;
    Context* context;  // null for memory of a pool
    Pool* pool;        // null without a pool
};

SortedArray<HostRange> g_host;        // allocated here, page-locked
SortedArray<HostRange> g_managed;     // allocated here, managed
SortedArray<HostRange> g_registered;  // allocated by the program, registered later

CUresult map_host(
    SortedArray<HostRange>* ranges, uint64_t base, uint64_t bytes, HostRange range, void** out) {
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    if (bytes > kRegionBytes) return CUDA_ERROR_OUT_OF_MEMORY;
    range.size = round_up(bytes, kHostPageBytes);
    range.requested = bytes;
    range.start = ranges->first_fit(base, base + kRegionBytes, range.size, kHostPageBytes);
    if (range.start == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    void* got = mmap(reinterpret_cast<void*>(range.start),
                     range.size,
                     PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
                     -1,
                     0);
    if (got == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    if (ranges->insert(range) == nullptr) {
        munmap(got, range.size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = got;
    return CUDA_SUCCESS;
}

CUresult unmap_host(SortedArray<HostRange>* ranges, uint64_t address) {
    HostRange* range = ranges->find_start(address);
    if (range == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Pool* pool = range->pool;
    const int64_t size = int64_t(range->size);
    munmap(reinterpret_cast<void*>(range->start), range->size);
    ranges->erase(range);
    count_in(pool, -size, -size, -1);
    drop_if_over(pool);
    return CUDA_SUCCESS;
}

HostRange* find_range(uint64_t address) {
    for (SortedArray<HostRange>* ranges : {&g_host, &g_managed, &g_registered}) {
        HostRange* found = ranges->find(address);
        if (found != nullptr) return found;
    }
    return nullptr;
}

}  // namespace

bool find_host_memory(uint64_t address, MemoryInfo* info) {
    HostRange* range = find_range(address);
    if (range == nullptr) return false;
    *info = {
        range->type, range->start, range->requested, range->device, range->pool, range->context};
    return true;
}

// The pool releases freed memory at once. How the real driver caches host memory is not known.
CUresult allocate_host(uint64_t bytes, Pool* pool, void** out) {
    const bool managed = pool->properties.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED;
    FT_TRY(map_host(managed ? &g_managed : &g_host,
                    managed ? kManagedBase : kHostBase,
                    bytes,
                    {0,
                     0,
                     0,
                     managed ? unsigned{CU_MEM_ATTACH_GLOBAL} : 0U,
                     managed ? MemoryInfo::kManaged : MemoryInfo::kHost,
                     pool->device,
                     nullptr,
                     pool},
                    out));
    const int64_t size = int64_t(find_range(reinterpret_cast<uint64_t>(*out))->size);
    count_in(pool, size, size, 1);
    return CUDA_SUCCESS;
}

CUresult free_host_of(uint64_t address) {
    SortedArray<HostRange>* ranges = address < kHostBase ? &g_managed : &g_host;
    const HostRange* range = ranges->find_start(address);
    const bool mine = range != nullptr && (ranges == &g_managed || range->pool != nullptr);
    return mine ? unmap_host(ranges, address) : CUDA_ERROR_INVALID_VALUE;
}

void free_host_owned_by(const Context* context) {
    for (SortedArray<HostRange>* ranges : {&g_host, &g_managed, &g_registered}) {
        for (int i = ranges->count() - 1; i >= 0; --i) {
            if ((*ranges)[i].context != context) continue;
            if (ranges == &g_registered) {
                ranges->erase(&(*ranges)[i]);
            } else {
                unmap_host(ranges, (*ranges)[i].start);
            }
        }
    }
}

}  // namespace fragtrace::vgpu

using namespace fragtrace::vgpu;

CUresult cuMemFree_v2(CUdeviceptr address) {
    FT_ENTER();
    return free_memory(address);
}

CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned flags) {
    FT_ENTER();
    Context* context = nullptr;
    FT_TRY(require_context(&context));
    if (address == nullptr || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    void* mapped = nullptr;
    FT_TRY(map_host(&g_managed,
                    kManagedBase,
                    bytes,
                    {0, 0, 0, flags, MemoryInfo::kManaged, context->device, context, nullptr},
                    &mapped));
    *address = reinterpret_cast<CUdeviceptr>(mapped);
    return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned flags) {
    FT_ENTER();
    Context* context = nullptr;
    FT_TRY(require_context(&context));
    if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    constexpr unsigned kKnown =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if ((flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
    *pointer = nullptr;
    if (bytes == 0) return CUDA_SUCCESS;
    return map_host(&g_host,
                    kHostBase,
                    bytes,
                    {0, 0, 0, flags, MemoryInfo::kHost, context->device, context, nullptr},
                    pointer);
}

CUresult cuMemAllocHost_v2(void** pointer, size_t bytes) {
    return cuMemHostAlloc(pointer, bytes, 0);
}

CUresult cuMemFreeHost(void* pointer) {
    FT_ENTER();
    if (pointer == nullptr) return CUDA_SUCCESS;
    const HostRange* range = g_host.find_start(reinterpret_cast<uint64_t>(pointer));
    if (range == nullptr || range->pool != nullptr) return CUDA_ERROR_INVALID_VALUE;
    return unmap_host(&g_host, range->start);
}

CUresult cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned flags) {
    FT_ENTER();
    Context* context = nullptr;
    FT_TRY(require_context(&context));
    if (pointer == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    const uint64_t start = reinterpret_cast<uint64_t>(pointer);
    if (find_range(start) != nullptr) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    constexpr unsigned kKnown = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
    if ((flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
    const HostRange range{
        start, bytes, bytes, flags, MemoryInfo::kRegistered, context->device, context, nullptr};
    return g_registered.insert(range) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemHostUnregister(void* pointer) {
    FT_ENTER();
    if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    HostRange* range = g_registered.find_start(reinterpret_cast<uint64_t>(pointer));
    if (range == nullptr) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    g_registered.erase(range);
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* pointer, unsigned) {
    FT_ENTER();
    if (address == nullptr || find_range(reinterpret_cast<uint64_t>(pointer)) == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *address = reinterpret_cast<CUdeviceptr>(pointer);
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned* flags, void* pointer) {
    FT_ENTER();
    HostRange* range = find_range(reinterpret_cast<uint64_t>(pointer));
    if (flags == nullptr || range == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = range->flags;
    return CUDA_SUCCESS;
}

// Calls that advise where managed memory should live are checked, but have no effect.
namespace {

CUresult require_managed(CUdeviceptr address, size_t size) {
    const HostRange* range = g_managed.find(address);
    if (range == nullptr || size == 0 || size > range->size - (address - range->start)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemPrefetchAsync_v2(
    CUdeviceptr address, size_t size, CUmemLocation, unsigned flags, CUstream) {
    FT_ENTER();
    return flags == 0 ? require_managed(address, size) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAdvise_v2(CUdeviceptr address, size_t size, CUmem_advise, CUmemLocation) {
    FT_ENTER();
    return require_managed(address, size);
}
