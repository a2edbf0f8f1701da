// Memory that another process owns: cuIpc*, and the export and import of physical allocations and
// pools. The handle, or the file that a descriptor refers to, contains all the data. Each process
// counts the memory of its own card only. Opened or imported memory takes nothing, so memory is
// counted once, in the process that allocated it. Contents are not shared.
#include "driver/virtual_memory.h"

#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

namespace fragtrace::vgpu {
namespace {

constexpr uint64_t kIpcMagic = 0x63706975706776;  // "vgpuipc"

// The 64 bytes of a CUipcMemHandle or CUmemPoolPtrExportData.
struct Ticket {
    uint64_t magic;
    uint64_t process;
    uint64_t id;      // id of the allocation or the pool
    uint64_t offset;  // exported address, relative to its 2 MiB page
    uint64_t start;
    uint64_t size;
    int physical_device;
    Kind kind;
    uint64_t unused;
};

static_assert(sizeof(Ticket) == sizeof(CUipcMemHandle));
static_assert(sizeof(Ticket) == sizeof(CUmemPoolPtrExportData));

// Contents of the file that an exported descriptor refers to.
struct Description {
    uint64_t magic;
    uint64_t process;
    uint64_t object;  // its address in the exporting process
    uint64_t id;
    Kind kind;
    bool multicast;
    int physical_device;
    uint64_t size;
    CUmemAllocationProp properties;
    CUmemPoolProps pool;
};

struct Imported {
    uint64_t start;
    uint64_t size;
    uint64_t requested;
    int device;
    Pool* pool;
    uint64_t key;  // identifies the ticket it was opened with; 0: cuMemFree frees it
    int opens;
};

SortedArray<Imported> g_imported;

uint64_t this_process() {
    return uint64_t(getpid());
}

int physical_device(int device) {
    return device >= 0 ? config().physical_index[device] : -1;
}

uint64_t key_of(const Ticket& ticket) {
    return (ticket.process << 32 ^ ticket.id << 12 ^ ticket.offset) | uint64_t{1} << 63;
}

CUresult share(const Description& description, void* out) {
    const int descriptor = memfd_create("fragtrace-virtual-gpu", MFD_CLOEXEC);
    if (descriptor < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    if (pwrite(descriptor, &description, sizeof description, 0) != ssize_t(sizeof description)) {
        close(descriptor);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    *static_cast<int*>(out) = descriptor;
    return CUDA_SUCCESS;
}

CUresult read_shared(void* handle, Kind kind, Description* description) {
    const int descriptor = int(reinterpret_cast<intptr_t>(handle));
    const ssize_t got = pread(descriptor, description, sizeof *description, 0);
    const bool good = got == ssize_t(sizeof *description) && description->magic == kIpcMagic &&
                      description->kind == kind;
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool is_descriptor(CUmemAllocationHandleType type) {
    return type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
}

bool allows_descriptors(CUmemAllocationHandleType types) {
    return (unsigned(types) & unsigned{CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR}) != 0;
}

}  // namespace

int visible_ordinal(int physical_index, int otherwise) {
    for (int i = 0; i < device_count(); ++i) {
        if (config().physical_index[i] == physical_index) return i;
    }
    return otherwise;
}

CUresult map_imported(int device, uint64_t bytes, Pool* pool, uint64_t key, CUdeviceptr* address) {
    const uint64_t size = round_up(bytes, kPageBytes);
    const uint64_t start = g_imported.first_fit(kImportedBase, kGraphBase, size, kPageBytes);
    if (start == 0 || g_imported.insert({start, size, bytes, device, pool, key, 1}) == nullptr) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (pool != nullptr) ++pool->allocations;
    *address = start;
    return CUDA_SUCCESS;
}

CUresult unmap_imported(CUdeviceptr address) {
    Imported* imported = g_imported.find_start(address);
    if (imported == nullptr || imported->key != 0) return CUDA_ERROR_INVALID_VALUE;
    Pool* pool = imported->pool;
    g_imported.erase(imported);
    count_in(pool, 0, 0, -1);
    drop_if_over(pool);
    return CUDA_SUCCESS;
}

bool find_imported_memory(uint64_t address, MemoryInfo* info) {
    const Imported* imported = g_imported.find(address);
    if (imported == nullptr || address - imported->start >= imported->requested) return false;
    *info = {MemoryInfo::kDevice,
             imported->start,
             imported->requested,
             imported->device,
             imported->pool,
             nullptr};
    return true;
}

}  // namespace fragtrace::vgpu

using namespace fragtrace::vgpu;

CUresult cuIpcGetMemHandle(CUipcMemHandle* out, CUdeviceptr address) {
    FT_ENTER();
    Context* context = nullptr;
    FT_TRY(require_context(&context));
    MemoryInfo info{};
    // Only linear memory of this process: no pool memory, no mappings, no imports.
    if (out == nullptr || !find_device_memory(address, &info) || info.context == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const Ticket ticket{kIpcMagic,
                        this_process(),
                        export_id_of(address),
                        info.start % kPageBytes,
                        info.start,
                        info.size,
                        physical_device(info.device),
                        Kind::kContext,
                        0};
    memcpy(static_cast<void*>(out), &ticket, sizeof ticket);
    return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
    FT_ENTER();
    Context* context = nullptr;
    FT_TRY(require_context(&context));
    Ticket ticket{};
    memcpy(&ticket, static_cast<const void*>(&handle), sizeof ticket);
    if (address == nullptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS ||
        ticket.magic != kIpcMagic || ticket.kind != Kind::kContext) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (ticket.process == this_process()) return CUDA_ERROR_INVALID_CONTEXT;
    for (Imported& imported : g_imported) {
        if (imported.key != key_of(ticket)) continue;
        ++imported.opens;
        *address = imported.start;
        return CUDA_SUCCESS;
    }
    const int device = visible_ordinal(ticket.physical_device, context->device);
    return map_imported(device, ticket.size, nullptr, key_of(ticket), address);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
    FT_ENTER();
    Imported* imported = g_imported.find_start(address);
    if (imported == nullptr || imported->key == 0) return CUDA_ERROR_INVALID_VALUE;
    if (--imported->opens == 0) g_imported.erase(imported);
    return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void* out,
                                      CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type,
                                      unsigned long long flags) {
    FT_ENTER();
    const Physical* physical = live_handle(handle);
    if (out == nullptr || physical == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (!is_descriptor(type)) return CUDA_ERROR_NOT_SUPPORTED;
    if (!allows_descriptors(physical->properties.requestedHandleTypes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return share({kIpcMagic,
                  this_process(),
                  handle,
                  physical->id,
                  Kind::kPhysical,
                  physical->multicast,
                  physical_device(physical->device),
                  physical->size,
                  physical->properties,
                  {}},
                 out);
}

// An import in the exporting process adds a handle to the same memory.
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle,
                                        void* descriptor,
                                        CUmemAllocationHandleType type) {
    FT_ENTER();
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!is_descriptor(type)) return CUDA_ERROR_INVALID_VALUE;
    Description description{};
    FT_TRY(read_shared(descriptor, Kind::kPhysical, &description));
    Physical* mine = as<Physical>(description.object);
    if (description.process == this_process() && mine != nullptr && mine->id == description.id) {
        ++mine->handles;
        *handle = reinterpret_cast<CUmemGenericAllocationHandle>(mine);
        return CUDA_SUCCESS;
    }
    Physical* physical = make<Physical>();
    if (physical == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    physical->id = g_next_id++;
    physical->size = description.size;
    physical->properties = description.properties;
    if (physical->properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
        physical->properties.location.id = visible_ordinal(description.physical_device, 0);
    }
    physical->device = -1;
    physical->handles = 1;
    physical->multicast = description.multicast;
    *handle = reinterpret_cast<CUmemGenericAllocationHandle>(physical);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolExportToShareableHandle(void* out,
                                          CUmemoryPool handle,
                                          CUmemAllocationHandleType type,
                                          unsigned long long flags) {
    FT_ENTER();
    const Pool* pool = usable_pool(handle);
    if (out == nullptr || pool == nullptr || flags != 0 || !is_descriptor(type) ||
        !allows_descriptors(pool->properties.handleTypes) || pool->imported) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return share({kIpcMagic,
                  this_process(),
                  0,
                  pool->id,
                  Kind::kPool,
                  false,
                  physical_device(pool->device),
                  0,
                  {},
                  pool->properties},
                 out);
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool* out,
                                            void* descriptor,
                                            CUmemAllocationHandleType type,
                                            unsigned long long flags) {
    FT_ENTER();
    if (out == nullptr || flags != 0 || !is_descriptor(type)) return CUDA_ERROR_INVALID_VALUE;
    Description description{};
    FT_TRY(read_shared(descriptor, Kind::kPool, &description));
    if (description.pool.location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
        description.pool.location.id = visible_ordinal(description.physical_device, 0);
    }
    Pool* pool = new_pool(description.pool, false);
    if (pool == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    pool->imported = true;
    pool->id = description.id;  // the exporter's id, to which its exported pointers refer
    *out = reinterpret_cast<CUmemoryPool>(pool);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData* out, CUdeviceptr address) {
    FT_ENTER();
    MemoryInfo info{};
    if (out == nullptr || !find_memory(address, &info) || info.pool == nullptr ||
        info.pool->imported || !allows_descriptors(info.pool->properties.handleTypes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const Ticket ticket{kIpcMagic,
                        this_process(),
                        info.pool->id,
                        0,
                        info.start,
                        info.size,
                        physical_device(info.device),
                        Kind::kPool,
                        0};
    memcpy(static_cast<void*>(out), &ticket, sizeof ticket);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolImportPointer(CUdeviceptr* address,
                                CUmemoryPool handle,
                                CUmemPoolPtrExportData* data) {
    FT_ENTER();
    Pool* pool = usable_pool(handle);
    if (address == nullptr || data == nullptr || pool == nullptr || !pool->imported) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Ticket ticket{};
    memcpy(&ticket, static_cast<const void*>(data), sizeof ticket);
    if (ticket.magic != kIpcMagic || ticket.kind != Kind::kPool || ticket.id != pool->id) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return map_imported(pool->device, ticket.size, pool, 0, address);
}
