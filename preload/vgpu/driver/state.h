// Shared by all files of the virtual driver: CUDA's header with default visibility, the one lock,
// the devices, handles, and the address map. Every exported function takes the lock itself. The
// functions declared here require the lock unless their comment says otherwise.
#pragma once

#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#include <fragtrace/sizes.h>

#include "common/config.h"
#include "common/driver_interface.h"
#include "common/stub.h"
#include "driver/sorted_array.h"

#include <cstdint>

namespace fragtrace::vgpu {

using fragtrace::round_up;

constexpr uint64_t kPageBytes = 2 * kMiB;    // granularity of device memory
constexpr uint64_t kUnitBytes = 512;         // granularity of small allocations
constexpr uint64_t kSmallLimitBytes = kMiB;  // allocations up to this size share pages

// The address map is fixed, so that two runs of a program see the same addresses.
constexpr uint64_t kDeviceBase = 0x200000000000;  // linear memory, a stride per device
constexpr uint64_t kDeviceBytes = uint64_t{1} << 44;
constexpr uint64_t kDeviceStride = kDeviceBytes / kDevicesWithWideSpace;
constexpr uint64_t kNarrowDeviceStride = kDeviceBytes / kMaxDevices;
constexpr uint64_t kManagedBase = 0x300000000000;   // real host memory
constexpr uint64_t kHostBase = 0x340000000000;      // page-locked host memory, also real
constexpr uint64_t kStaticsBase = 0x380000000000;   // variables of modules
constexpr uint64_t kHandleBase = 0x3c0000000000;    // objects that handles refer to
constexpr uint64_t kReservedBase = 0x400000000000;  // cuMemAddressReserve
constexpr uint64_t kRegionBytes = uint64_t{1} << 42;
constexpr uint64_t kReservedBytes = uint64_t{1} << 44;
constexpr uint64_t kImportedBase = 0x500000000000;  // memory of other processes and interfaces
constexpr uint64_t kGraphBase = 0x540000000000;     // memory nodes of graphs
constexpr uint64_t kGraphRegionBytes = uint64_t{1} << 40;

class StateLock {
  public:
    StateLock();
    ~StateLock();
    StateLock(const StateLock&) = delete;
    StateLock& operator=(const StateLock&) = delete;
};

// Every object begins with its kind, so a wrong or stale handle is recognised and refused.
enum class Kind : uint32_t {
    kFree = 0,
    kContext = 0x66740001,
    kStream,
    kEvent,
    kModule,
    kFunction,
    kGraph,
    kGraphNode,
    kGraphExec,
    kPool,
    kPhysical,
    kArray,
    kMipmappedArray,
    kExternalMemory,
    kUserObject,
    kLink,
};

struct Object {
    Kind kind;
};

void* new_object(Kind kind, size_t bytes);  // zeroed; null without memory
void delete_object(void* object, size_t bytes);
bool is_object(const void* handle, Kind kind);  // safe for any value of `handle`

template <typename T>
T* make() {
    return static_cast<T*>(new_object(T::kKind, sizeof(T)));
}

template <typename T>
void destroy(T* object) {
    delete_object(object, sizeof(T));
}

// Returns the object of a handle, or null if the handle is not of that kind.
template <typename T, typename Handle>
T* as(Handle handle) {
    return is_object(reinterpret_cast<const void*>(handle), T::kKind) ? reinterpret_cast<T*>(handle)
                                                                      : nullptr;
}

struct Context {
    static constexpr Kind kKind = Kind::kContext;
    Object object;
    int device;
    unsigned flags;
    bool primary;
    uint64_t id;
    uint64_t code_bytes;  // size of its modules' code
    uint64_t peers;       // one bit per device whose memory this context may access
};

// A pool keeps freed memory until a synchronising call. That call releases what exceeds the
// threshold.
struct Pool {
    static constexpr Kind kKind = Kind::kPool;
    Object object;
    CUmemPoolProps properties;
    uint64_t id;
    int device;  // -1: host memory
    bool built_in;
    bool imported;   // from another process: it cannot allocate
    bool destroyed;  // deleted with its last allocation
    uint64_t peers;  // one bit per device with access
    uint64_t peers_can_write;
    uint64_t release_threshold;
    uint64_t reserved, reserved_high, used, used_high;
    int allocations;
    int reuse[3];
};

// A page of 2 MiB for small allocations, in units of 512 bytes.
struct Slab {
    static constexpr int kUnits = int(kPageBytes / kUnitBytes);
    uint16_t units_at[kUnits];  // units of the allocation that starts here, else 0
    uint32_t bytes_at[kUnits];  // requested size
    uint64_t taken[kUnits / 64];
    int units_free;
    int longest_run;  // upper bound for the longest run of free units
};

struct Region {
    uint64_t start;
    uint64_t size;       // multiple of the page size
    uint64_t requested;  // requested size
    Slab* slab;          // null without a slab
    Pool* pool;          // null without a pool
    Context* context;    // null for memory of a pool, which outlives contexts
    uint64_t export_id;  // set when the memory is first exported to another process
    bool idle;           // no allocations; the pool keeps the region
};

struct Device {
    uint64_t total_bytes;
    uint64_t used_bytes;  // contexts, pages, physical allocations of this process
    // Part of them that the parent had at fork. The child has copies of its records, but nothing on
    // the card.
    uint64_t inherited_bytes;
    int contexts;
    int primary_retains;
    unsigned primary_flags;
    Context* primary;
    SortedArray<Region> regions;
    uint64_t first_gap;  // no free page below this address
    int idle_regions;
    Pool* default_pool;
    Pool* current_pool;
    uint64_t graph_reserved, graph_reserved_high, graph_used, graph_used_high;
};

extern Device g_devices[kMaxDevices];
extern uint64_t g_next_id;  // ids of streams, graphs, pools, allocations...

bool initialised();
int device_count();
CUresult require_context(Context** context);  // the calling thread's current context
CUresult require_initialised();
bool valid_device(int device);

void watch_forks();  // before the first object and the first share of a card
uint64_t free_bytes(const Device& device);
bool take_bytes(Device& device, uint64_t bytes);
void give_bytes(Device& device, uint64_t bytes);

struct MemoryInfo {
    enum Type { kDevice, kManaged, kHost, kRegistered, kMapped } type;

    uint64_t start;
    uint64_t size;
    int device;
    Pool* pool;
    Context* context;
};

// device_memory.cpp
// Either `pool` or `context` owns the memory. The other one is null.
CUresult allocate_device(
    int device, uint64_t bytes, Pool* pool, Context* context, CUdeviceptr* address);
CUresult free_device(CUdeviceptr address);
void free_device_of(int device, const Context* context);  // null: frees all memory of the device
uint64_t export_id_of(CUdeviceptr address);
void release_idle(Pool* pool, uint64_t keep_bytes);
void synchronised();  // called by synchronising calls: pools release what exceeds their thresholds

// memory_pools.cpp
void count_in(Pool* pool, int64_t reserved, int64_t used, int allocations);
void drop_if_over(Pool* pool);  // deletes a destroyed pool without allocations
Pool* new_pool(const CUmemPoolProps& properties, bool built_in);
Pool* usable_pool(CUmemoryPool handle);  // null if it is not a pool or was destroyed

// host_memory.cpp
CUresult allocate_host(uint64_t bytes, Pool* pool, void** out);
CUresult free_host_of(uint64_t address);  // frees managed memory and memory of host pools
void free_host_owned_by(const Context* context);

// shared_memory.cpp: memory that another process or interface owns. It takes nothing from the card
// here.
CUresult map_imported(int device, uint64_t bytes, Pool* pool, uint64_t key, CUdeviceptr* address);
int visible_ordinal(int physical_index, int otherwise);
CUresult unmap_imported(CUdeviceptr address);
bool find_imported_memory(uint64_t address, MemoryInfo* info);

// graph_memory.cpp
CUresult free_graph_memory(CUdeviceptr address);
bool find_graph_memory(uint64_t address, MemoryInfo* info);

// arrays.cpp
void free_arrays_of(const Context* context);

// Frees any address that cuMemFree accepts.
CUresult free_memory(CUdeviceptr address);

bool find_memory(uint64_t address, MemoryInfo* info);         // all kinds of memory
bool find_device_memory(uint64_t address, MemoryInfo* info);  // device_memory.cpp
bool find_host_memory(uint64_t address, MemoryInfo* info);    // host_memory.cpp
bool find_mapped_memory(uint64_t address, MemoryInfo* info);  // virtual_memory.cpp
bool host_can_read(uint64_t address);                         // false for device addresses

// Synchronising calls call this, without the lock. All work is complete, so there is nothing to
// wait for. But a wait that takes no time starves the program's other threads: PyTorch's backward
// thread was still running when the interpreter ended, which aborts the process.
void wait_a_moment();

// contents.cpp: what is known of the device's contents
constexpr size_t kKnownBytes = size_t{1} << 20;  // the largest buffer whose contents are kept
void note_kernel();                              // nothing is known any more
void note_kernel_with(void** parameters, uint64_t threads);  // unknown: what it may have written
void note_host_write(uint64_t address, const void* bytes, size_t size);
void note_fill(uint64_t address, size_t size, uint32_t pattern, int pattern_bytes);
void note_unknown(uint64_t address, size_t size);
void copy_memory(uint64_t to, uint64_t from, size_t size);

// Unknown bytes are zero in `out`. kPending: `out` is incomplete, work must deliver a part first.
Known read_contents(uint64_t from, void* out, size_t size);

// The result of pending work. Where it is overwritten before it is delivered, the later write
// counts. A null result is unknown.
void note_pending(uint64_t address, size_t size, uint64_t work);
void note_delivered(uint64_t work, const void* result);
bool is_pending(uint64_t address, size_t size);

// pending_work.cpp: works of other libraries that wait for other processes. All other work is
// complete when it is issued.
struct WorkSet {
    uint64_t* works;
    int count;
};

void add(WorkSet* set, uint64_t work);  // drops complete works on the way
void add(WorkSet* set, const WorkSet& from);
void clear(WorkSet* set);
bool complete(WorkSet* set);  // drops complete works
uint64_t begin_work();
void end_work(uint64_t work);

// These are called without the lock.
void make_progress();  // lets the libraries end works whose peers have come
void wait_for(CUstream stream);
void wait_for_event(CUevent event);
void wait_for_contents(uint64_t address, size_t size);
void wait_for_device(int device);

// streams_events.cpp: returns true if the stream is capturing; the work is then a node of the graph
bool captured(CUstream stream, CUgraphNodeType type);

}  // namespace fragtrace::vgpu

#define FT_TRY(expression)                               \
    do {                                                 \
        const CUresult ft_result = (expression);         \
        if (ft_result != CUDA_SUCCESS) return ft_result; \
    } while (false)

// Nearly every exported function starts with this.
#define FT_ENTER()                        \
    ::fragtrace::vgpu::StateLock ft_lock; \
    FT_TRY(::fragtrace::vgpu::require_initialised())
