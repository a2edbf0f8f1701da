// The pools of ggml's CUDA backend (llama.cpp and programs with ggml inside): each pool object is
// recorded as a pool of the program (recorder/program_pools.h).
//
// Two classes implement the interface ggml_cuda_pool. The legacy pool keeps whole buffers of
// cudaMalloc. The other pool is a stack in memory that it maps itself. Functions of both are
// replaced in the classes' tables of virtual functions. A table is found by its symbol or, where
// the library does not export it, by its run-time type information. It must have the slots of the
// known releases, and exported functions must have the known parameters. Otherwise nothing is
// recorded, and the fact "ggml.pool" has the reason.
//
// Only one thread at a time uses a pool, so no lock is needed. A request that fails ends the
// process inside of ggml: the failed request to the driver is all that can be recorded.
#include "frameworks/allocator_pools.h"
#include "hooks/framework.h"
#include "recorder/program_pools.h"
#include "recorder/recorder.h"
#include "recorder/session.h"
#include "system/class_tables.h"
#include "system/loaded_objects.h"
#include "system/sys.h"
#include "system/thread_state.h"

#include <string.h>
#include <sys/mman.h>

namespace fragtrace::preload {
namespace {

// All releases with these pools export it.
constexpr char kBackend[] = "ggml_backend_cuda_init";

enum Slot : uint8_t { kDestroy, kDelete, kAlloc, kFree, kSlots };

constexpr size_t kTableHeadWords = 2;  // offset to top, type information

// Arrays, not pointers: every process would have to relocate those.
struct PoolClass {
    char kind[16];
    char name[24];  // mangled
};

constexpr PoolClass kClasses[] = {{"ggml-legacy", "18ggml_cuda_pool_leg"},
                                  {"ggml-vmm", "18ggml_cuda_pool_vmm"}};

using Alloc = void*(void* self, size_t bytes, size_t* size_bytes);
using Free = void(void* self, void* address, size_t size_bytes);
using Destroy = void(void* self);

// A table with replaced functions. Several libraries of a process can contain ggml.
struct Table {
    void** slots;  // nullptr: the entry is free
    const PoolClass* pool_class;
    void* functions[kSlots];  // the real ones
};

constexpr size_t kMostTables = 16;

Table g_tables[kMostTables];
Lock g_tables_lock;  // for adding tables
uint32_t g_off;      // 1: a table had another shape
AllocatorPools g_pools;

// The table of an object whose function was called. It has an entry: only such tables have the
// functions below.
const Table& table_of(const void* self) {
    void* const* slots = *static_cast<void* const* const*>(self);
    size_t at = 0;
    while (at + 1 < kMostTables && load_acquire(&g_tables[at].slots) != slots) {
        ++at;
    }
    return g_tables[at];
}

template <typename Function>
Function* function_of(const Table& table, Slot slot) {
    return reinterpret_cast<Function*>(table.functions[slot]);
}

// ---- replacements ------------------------------------------------------------------------------

void* alloc(void* self, size_t bytes, size_t* size_bytes) {
    const Table& table = table_of(self);
    void* address = function_of<Alloc>(table, kAlloc)(self, bytes, size_bytes);
    if (address != nullptr && size_bytes != nullptr && running_session() != nullptr) {
        const uint32_t pool = g_pools.find_or_create(
            self, [&table] { return create_program_pool("ggml", table.pool_class->kind); });
        record_program_block(
            pool, reinterpret_cast<uint64_t>(address), bytes, *size_bytes, kStreamUnknown);
    }
    return address;
}

void free_block(void* self, void* address, size_t size_bytes) {
    // A block without bytes was not recorded.
    if (size_bytes != 0) {
        record_program_free(g_pools.find(self), reinterpret_cast<uint64_t>(address));
    }
    function_of<Free>(table_of(self), kFree)(self, address, size_bytes);
}

// The pool ends before its memory is freed.
void destroy(void* self) {
    g_pools.end(self);
    function_of<Destroy>(table_of(self), kDestroy)(self);
}

void destroy_and_delete(void* self) {
    g_pools.end(self);
    function_of<Destroy>(table_of(self), kDelete)(self);
}

// ---- patching ----------------------------------------------------------------------------------

void* symbol_of(const link_map* object,
                const char* before,
                const PoolClass& one,
                const char* behind) {
    char symbol[64];
    bool indirect = false;
    return defined_symbol(object,
                          Text(symbol, sizeof symbol).add(before).add(one.name).add(behind).c_str(),
                          &indirect);
}

ClassTable find_table(const link_map* object, const PoolClass& pool_class) {
    char symbol[64];
    Text(symbol, sizeof symbol).add("_ZTV").add(pool_class.name);
    const size_t words = defined_symbol_bytes(object, symbol) / sizeof(void*);
    if (words <= kTableHeadWords) {
        return find_class_table(object, pool_class.name);
    }
    ClassTable table;
    table.slots = static_cast<void**>(symbol_of(object, "_ZTV", pool_class, "")) + kTableHeadWords;
    table.count = words - kTableHeadWords;
    return table;
}

// A library that exports one of the functions exports all, and their names contain the parameters.
bool is_known(const link_map* object, const PoolClass& one, const ClassTable& table) {
    if (table.count != kSlots) {
        return false;
    }
    const void* destroy_symbol = symbol_of(object, "_ZN", one, "D0Ev");
    return destroy_symbol == nullptr ||
           (destroy_symbol == table.slots[kDelete] &&
            symbol_of(object, "_ZN", one, "5allocEmPm") == table.slots[kAlloc] &&
            symbol_of(object, "_ZN", one, "4freeEPvm") == table.slots[kFree]);
}

// Returns false if the table cannot be written, or if there is no room for another one.
bool replace(const link_map* object, const PoolClass& pool_class, void** slots) {
    Table* entry = nullptr;
    for (Table& one : g_tables) {
        // A library that was unloaded may come back to its place.
        if (entry == nullptr && (one.slots == nullptr || one.slots == slots)) {
            entry = &one;
        }
    }
    const AddressRange read_only = read_only_after_load(object);
    if (entry == nullptr || !protect_table(slots, kSlots, read_only, PROT_READ | PROT_WRITE)) {
        return false;
    }
    memcpy(entry->functions, slots, sizeof entry->functions);
    entry->pool_class = &pool_class;
    store_release(&entry->slots, slots);
    store_release(&slots[kDestroy], reinterpret_cast<void*>(destroy));
    store_release(&slots[kDelete], reinterpret_cast<void*>(destroy_and_delete));
    store_release(&slots[kAlloc], reinterpret_cast<void*>(alloc));
    store_release(&slots[kFree], reinterpret_cast<void*>(free_block));
    return protect_table(slots, kSlots, read_only, PROT_READ);
}

// Returns nullptr, or why the object's pools are not recorded.
const char* replace_functions(const link_map* object) {
    constexpr size_t kCount = sizeof kClasses / sizeof kClasses[0];
    ClassTable tables[kCount];
    for (size_t at = 0; at < kCount; ++at) {
        tables[at] = find_table(object, kClasses[at]);
        // A build can leave out the second class.
        if (tables[at].slots != nullptr ? !is_known(object, kClasses[at], tables[at]) : at == 0) {
            return tables[at].slots == nullptr
                       ? "the pool's table was not found"
                       : "the pool of this release has other functions than those that are known";
        }
    }
    for (size_t at = 0; at < kCount; ++at) {
        void** slots = tables[at].slots;
        if (slots != nullptr && !replace(object, kClasses[at], slots)) {
            return "the pool's table cannot be written";
        }
    }
    return nullptr;
}

// Whether functions of the object's tables are replaced already.
bool is_done(const link_map* object) {
    const AddressRange range = object_range(object);
    for (const Table& table : g_tables) {
        void** slots = load_acquire(&table.slots);
        if (slots != nullptr && range.contains(slots) &&
            slots[kAlloc] == reinterpret_cast<void*>(alloc)) {
            return true;
        }
    }
    return false;
}

}  // namespace

void ggml_note_object(const link_map* object) {
    bool indirect = false;
    if (load_relaxed(&g_off) != 0 || defined_symbol(object, kBackend, &indirect) == nullptr ||
        is_done(object)) {
        return;
    }
    constexpr uint64_t kWait_ns = 50 * kMillisecond_ns;
    if (!g_tables_lock.lock_within(kWait_ns)) {
        return;
    }
    if (load_relaxed(&g_off) == 0 && !is_done(object)) {
        char text[160];
        const char* why = replace_functions(object);
        __atomic_store_n(&g_off, why != nullptr ? 1u : 0u, __ATOMIC_RELAXED);
        record_fact(
            "ggml.pool",
            why == nullptr ? "recorded" : Text(text, sizeof text).add("off: ").add(why).c_str());
    }
    g_tables_lock.unlock();
}

}  // namespace fragtrace::preload
