// JAX's allocators (tsl::BFCAllocator): each is recorded as a pool of the program
// (recorder/program_pools.h).
//
// JAX's plug-in exports nothing of them, but keeps their symbols in its file. The virtual functions
// are replaced in the allocator's table. Slots are found by the functions that they contain, whose
// symbols have their parameters in the name: so no slot number is written by hand, and a release
// that changes a function is noticed.
//
// The wrappers run outside the allocator's mutex. tensorflow.cpp records the same class in
// TensorFlow, which exports it.
#include "frameworks/allocator_pools.h"
#include "hooks/framework.h"
#include "hooks/resolve.h"
#include "recorder/drain_thread.h"
#include "recorder/program_pools.h"
#include "recorder/recorder.h"
#include "recorder/session.h"
#include "recorder/trace_facts.h"
#include "system/class_tables.h"
#include "system/loaded_objects.h"
#include "system/local_symbols.h"
#include "system/plain_text.h"
#include "system/sys.h"
#include "system/thread_state.h"

#include <initializer_list>
#include <sys/mman.h>

namespace fragtrace::preload {
namespace {

// What is needed of a library that contains the allocator.
enum Symbol : uint8_t {
    kTable,
    kAllocate,
    kAllocateWithAttributes,
    kDeallocate,
    kAllocatedSize,
    kName,
    kStats,
    kDestroy,
    kDelete,
    kAllocateAtAnEnd,
    kSymbols,
};

// Arrays, not pointers: every process would have to relocate those.
constexpr char kSymbolNames[kSymbols][72] = {
    "_ZTVN3tsl12BFCAllocatorE",
    "_ZN3tsl12BFCAllocator11AllocateRawEmm",
    "_ZN3tsl12BFCAllocator11AllocateRawEmmRKNS_20AllocationAttributesE",
    "_ZN3tsl12BFCAllocator13DeallocateRawEPv",
    "_ZNK3tsl12BFCAllocator13AllocatedSizeEPKv",
    "_ZN3tsl12BFCAllocator4NameB5cxx11Ev",
    "_ZN3tsl12BFCAllocator8GetStatsEv",
    "_ZN3tsl12BFCAllocatorD1Ev",
    "_ZN3tsl12BFCAllocatorD0Ev",
    "_ZN3tsl12BFCAllocator19AllocateRawInternalEmmbmNS_13AllocationEndE",
};

// tsl::AllocationAttributes. A release with the function kAllocateAtAnEnd has the last member.
struct Attributes {
    bool retry_on_failure;
    bool allocation_will_be_logged;
    void* freed_by_function;
    uint8_t allocation_end;  // kUpperEnd, or 0: the lower one
};

constexpr uint8_t kUpperEnd = 1;

using Allocate = void*(void* self, size_t alignment, size_t bytes);
using AllocateWithAttributes = void*(void* self,
                                     size_t alignment,
                                     size_t bytes,
                                     const void* attributes);
using Deallocate = void(void* self, void* address);
using AllocatedSize = size_t(void* self, const void* address);
using Destroy = void(void* self);

// Objects that are returned in memory of the caller. Their destructors are never called: they keep
// at most a short text.
struct OpaqueText {
    const char* data;
    size_t size;
    uint64_t inside[2];
    ~OpaqueText();
};

// std::optional<tsl::AllocatorStats> begins with four counters and the optional limit.
struct OpaqueStats {
    int64_t counters[4];
    int64_t limit;
    bool has_limit;
    char rest[512];
    ~OpaqueStats();
};

using Name = OpaqueText(void* self);
using Stats = OpaqueStats(void* self);

constexpr size_t kTableHeadWords = 2;  // offset to top, type information

constexpr char kPrefix[] = "xla_cuda_plugin.so";  // of the file's name

const link_map* g_plugin;  // nullptr: not loaded yet
void* g_functions[kSymbols];
AllocatorPools g_pools;

template <typename Function>
Function* function_of(Symbol symbol) {
    return reinterpret_cast<Function*>(g_functions[symbol]);
}

// ---- pools -------------------------------------------------------------------------------------

// Memory for an object that a function returns. Its destructor is not called.
template <typename Object>
union Returned {
    template <typename Function>
    Returned(Function* function, void* self) : object(function(self)) {}

    ~Returned() {}

    Object object;
};

// The most bytes that the allocator may take; 0 = unknown.
uint64_t limit_of(void* allocator) {
    if (g_functions[kStats] == nullptr) {
        return 0;
    }
    const Returned<OpaqueStats> stats(function_of<Stats>(kStats), allocator);
    const OpaqueStats& known = stats.object;
    constexpr int64_t kMost = int64_t{1} << 50;
    const bool plausible = known.has_limit && known.limit > 0 && known.limit < kMost;
    return plausible ? static_cast<uint64_t>(known.limit) : 0;
}

uint32_t create_pool(void* allocator) {
    const Returned<OpaqueText> name(function_of<Name>(kName), allocator);
    char text[201];
    Text copy(text, sizeof text);
    copy.add(name.object.data, name.object.size < 200 ? name.object.size : 200);
    const uint32_t pool = create_program_pool(text, "bfc");
    if (const uint64_t limit = limit_of(allocator)) {
        set_program_pool_limit(pool, limit);
    }
    return pool;
}

// 0 = not recorded.
uint32_t pool_of(void* allocator) {
    return g_pools.find_or_create(allocator, [allocator] { return create_pool(allocator); });
}

// ---- wrappers ----------------------------------------------------------------------------------

void record_result(void* allocator, size_t bytes, uint8_t flags, void* address) {
    if (running_session() == nullptr) {
        return;
    }
    const uint32_t pool = pool_of(allocator);
    if (address != nullptr) {
        const size_t size = function_of<AllocatedSize>(kAllocatedSize)(allocator, address);
        record_program_block(
            pool, reinterpret_cast<uint64_t>(address), bytes, size, kStreamUnknown, flags);
    } else if (bytes != 0) {
        record_program_failure(pool, bytes, kStreamUnknown, flags);
    }
}

// One of the two functions calls the other.
template <typename Call>
void* recorded(void* self, size_t bytes, uint8_t flags, Call call) {
    const bool outer = !t_thread.inside_framework_pool;
    t_thread.inside_framework_pool = true;
    void* address = call();
    if (outer) {
        record_result(self, bytes, flags, address);
        t_thread.inside_framework_pool = false;
    }
    return address;
}

void* allocate(void* self, size_t alignment, size_t bytes) {
    return recorded(
        self, bytes, 0, [&] { return function_of<Allocate>(kAllocate)(self, alignment, bytes); });
}

void* allocate_with_attributes(void* self, size_t alignment, size_t bytes, const void* attributes) {
    const bool knows_ends = g_functions[kAllocateAtAnEnd] != nullptr;
    const bool upper =
        knows_ends && static_cast<const Attributes*>(attributes)->allocation_end == kUpperEnd;
    return recorded(self, bytes, upper ? kFlagUpperEnd : 0, [&] {
        return function_of<AllocateWithAttributes>(kAllocateWithAttributes)(
            self, alignment, bytes, attributes);
    });
}

void deallocate(void* self, void* address) {
    if (address != nullptr && running_session() != nullptr) {
        record_program_free(pool_of(self), reinterpret_cast<uint64_t>(address));
    }
    function_of<Deallocate>(kDeallocate)(self, address);
}

void destroy(void* self) {
    g_pools.end(self);
    function_of<Destroy>(kDestroy)(self);
}

void destroy_and_delete(void* self) {
    g_pools.end(self);
    function_of<Destroy>(kDelete)(self);
}

// ---- patching ----------------------------------------------------------------------------------

struct Table {
    void** slots = nullptr;
    size_t count = 0;

    // The only slot with this function, nullptr if there are none or several.
    [[nodiscard]] void** slot_of(const void* function) const {
        void** found = nullptr;
        for (size_t i = 0; i < count; ++i) {
            if (slots[i] == function && function != nullptr) {
                if (found != nullptr) {
                    return nullptr;
                }
                found = &slots[i];
            }
        }
        return found;
    }
};

Table table_at(const LocalSymbol& symbol) {
    const size_t words = symbol.size_bytes / sizeof(void*);
    if (symbol.address == 0 || words <= kTableHeadWords || words > 256) {
        return {};
    }
    return {reinterpret_cast<void**>(symbol.address) + kTableHeadWords, words - kTableHeadWords};
}

// Returns nullptr, or why the allocator is not recorded.
const char* replace_functions(const LocalSymbol* symbols) {
    const struct {
        Symbol symbol;
        void* wrapper;
    } wrappers[] = {{kAllocate, reinterpret_cast<void*>(allocate)},
                    {kAllocateWithAttributes, reinterpret_cast<void*>(allocate_with_attributes)},
                    {kDeallocate, reinterpret_cast<void*>(deallocate)},
                    {kDestroy, reinterpret_cast<void*>(destroy)},
                    {kDelete, reinterpret_cast<void*>(destroy_and_delete)}};

    const Table table = table_at(symbols[kTable]);
    if (table.count == 0) {
        return "the allocator's table was not found";
    }
    for (int i = 0; i < kSymbols; ++i) {
        g_functions[i] = reinterpret_cast<void*>(symbols[i].address);
    }
    for (const auto& one : wrappers) {
        if (table.slot_of(g_functions[one.symbol]) == nullptr) {
            return "the allocator has other functions than those that are known";
        }
    }
    if (g_functions[kAllocatedSize] == nullptr || g_functions[kName] == nullptr) {
        return "the allocator has other functions than those that are known";
    }
    const AddressRange read_only = read_only_after_load(g_plugin);
    if (!protect_table(table.slots, table.count, read_only, PROT_READ | PROT_WRITE)) {
        return "the allocator's table cannot be written";
    }
    for (const auto& one : wrappers) {
        store_release(table.slot_of(g_functions[one.symbol]), one.wrapper);
    }
    (void)protect_table(table.slots, table.count, read_only, PROT_READ);
    return nullptr;
}

// Runs on the drain thread: it reads the plug-in's file.
bool prepare() {
    LocalSymbol symbols[kSymbols];
    for (int i = 0; i < kSymbols; ++i) {
        symbols[i] = {kSymbolNames[i], 0, 0};
    }
    // All names contain the name of the class.
    const char* why = find_local_symbols(g_plugin, "3tsl12BFCAllocator", symbols, kSymbols);
    if (why == nullptr) {
        why = replace_functions(symbols);
    }
    char value[128];
    Text(value, sizeof value)
        .add(why == nullptr ? "recorded" : "off: ")
        .add(why == nullptr ? "" : why);
    if (Session* session = running_session()) {
        (void)add_session_fact(session, "jax.pool", value);  // record_fact() is not for the drain
    }
    return why == nullptr;
}

}  // namespace

void jax_prepare() {
    const SlowPath slow_path;
    Session* session = running_session();
    if (session == nullptr || load_acquire(&g_plugin) != nullptr) {
        return;
    }
    const link_map* found = find_object(kPrefix);
    const link_map* nobody = nullptr;
    if (found != nullptr &&
        __atomic_compare_exchange_n(
            &g_plugin, &nobody, found, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        (void)call_on_drain(session, prepare);
    }
}

}  // namespace fragtrace::preload
