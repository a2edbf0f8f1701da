// NVTX's memory extension: a program's own allocator registers a heap and each block ("region") in
// it. Heaps are pools of the program (recorder/program_pools.h), regions are their blocks.
//
// The extension's header reaches this library as NVTX itself does (nvtx.cpp), and calls
// InitializeInjectionNvtxExtension. Permissions have no meaning here, and stay without a function.
#include "frameworks/nvtx_names.h"
#include "hooks/resolve.h"
#include "recorder/labels.h"
#include "recorder/program_pools.h"
#include "recorder/trace_facts.h"
#include "system/address_table.h"
#include "system/hash.h"
#include "system/plain_text.h"
#include "system/sys.h"

#include <string.h>

using namespace fragtrace;
using namespace fragtrace::preload;

namespace fragtrace::preload {
namespace {

// ---- the extension's binary interface, version 1.2 ---------------------------------------------

struct ModuleSegment {
    size_t id;
    size_t slot_count;
    intptr_t* slots;
};

struct ModuleInfo {
    uint16_t nvtx_version;
    uint16_t struct_bytes;
    uint16_t module;
    uint16_t compatibility;
    size_t segment_count;
    ModuleSegment* segments;
    intptr_t (*export_function)(uint32_t);
    const void* extension_info;
};

constexpr uint16_t kMemoryModule = 1;
constexpr uint16_t kMemoryCompatibility = 0x0102;
constexpr uint32_t kVirtualAddress = 1;  // a type of heaps and regions: memory with an address

struct Range {
    size_t size_bytes;
    const void* address;
};

struct HeapDescription {
    uint16_t compatibility;
    uint16_t struct_bytes;
    uint32_t reserved;
    uint32_t usage;
    uint32_t type;
    size_t range_bytes;
    const Range* range;
    uint32_t category;
    int32_t message_type;
    const void* message;
};

struct RegionsToRegister {
    uint16_t compatibility;
    uint16_t struct_bytes;
    uint32_t type;
    const void* heap;
    size_t count;
    size_t element_bytes;
    const char* elements;  // of type Range
    const void** handles;  // to fill in, or nullptr
};

struct RegionsToResize {
    uint16_t compatibility;
    uint16_t struct_bytes;
    uint32_t type;
    size_t count;
    size_t element_bytes;
    const char* elements;  // of type Range
};

// A region is named by its address or by the handle that we gave it, which is its address.
struct RegionsToUnregister {
    uint16_t compatibility;
    uint16_t struct_bytes;
    uint32_t reference_type;
    size_t count;
    size_t element_bytes;
    const char* elements;  // of type const void*
};

struct RegionName {
    uint32_t reference_type;
    int32_t name_type;
    const void* region;
    const void* name;
    uint32_t category;
    uint32_t reserved;
};

struct RegionsToName {
    uint16_t compatibility;
    uint16_t struct_bytes;
    uint32_t reserved;
    size_t count;
    size_t element_bytes;
    const char* elements;  // of type RegionName
    size_t reserved_too;
};

static_assert(sizeof(ModuleInfo) == 40 && sizeof(HeapDescription) == 48 &&
              sizeof(RegionsToRegister) == 48 && sizeof(RegionsToResize) == 32 &&
              sizeof(RegionsToUnregister) == 32 && sizeof(RegionName) == 32 &&
              sizeof(RegionsToName) == 40);

// Calls `function` with each element of a description that is complete.
template <typename Element, typename Description, typename Function>
void for_each(const Description* batch, Function function) {
    if (batch == nullptr || batch->struct_bytes < sizeof(Description) ||
        batch->elements == nullptr || batch->element_bytes < sizeof(Element)) {
        return;
    }
    for (size_t at = 0; at < batch->count; ++at) {
        Element element;
        memcpy(&element, batch->elements + at * batch->element_bytes, sizeof element);
        function(at, element);
    }
}

// ---- heaps -------------------------------------------------------------------------------------

// Heaps with the same name are parts of one allocator, and so one pool.
struct Heap {
    uint64_t address;
    uint64_t name_hash;
    uint32_t pool;
    bool live;
};

constexpr uint16_t kMostHeaps = 1024;  // that live at once

Heap g_heaps[kMostHeaps];
uint32_t g_heap_count;  // places that were ever used
Lock g_heaps_lock;
uint32_t g_watches_forks;

// In a forked child, the thread that owned the lock does not exist.
void watch_forks() {
    if (__atomic_exchange_n(&g_watches_forks, 1, __ATOMIC_RELAXED) == 0) {
        at_fork(nullptr, nullptr, [] { g_heaps_lock.reset(); });
    }
}

// A handle is the number of the heap's place, counted from 1.
const void* handle_of(uint16_t place) {
    return reinterpret_cast<const void*>(uintptr_t{place} + 1);
}

// For a heap that is not recorded. Not nullptr: a program may take that for an error.
const void* handle_of_no_heap() {
    return handle_of(kMostHeaps);
}

// By the standard, the address of a heap is also a handle. 0 = no heap, else the number.
uint16_t heap_number(const void* handle) {
    const auto value = reinterpret_cast<uintptr_t>(handle);
    const uint32_t count = load_acquire(&g_heap_count);
    if (value <= count) {
        const bool live = value != 0 && load_relaxed(&g_heaps[value - 1].live);
        return live ? static_cast<uint16_t>(value) : uint16_t{0};
    }
    for (uint32_t place = count; place-- > 0;) {
        if (load_relaxed(&g_heaps[place].live) && load_relaxed(&g_heaps[place].address) == value) {
            return static_cast<uint16_t>(place + 1);
        }
    }
    return 0;
}

uint32_t pool_of_heap(uint16_t number) {
    return load_relaxed(&g_heaps[number - 1].pool);
}

// The pool of a live heap with this name, 0 if there is none. Under the lock.
uint32_t pool_with_name(uint64_t name_hash) {
    for (uint32_t place = 0; place < g_heap_count; ++place) {
        if (g_heaps[place].live && g_heaps[place].name_hash == name_hash) {
            return g_heaps[place].pool;
        }
    }
    return 0;
}

const void* register_heap(const void* domain, const HeapDescription* description) {
    const SlowPath slow_path;
    if (description == nullptr || description->struct_bytes < sizeof(HeapDescription) ||
        description->type != kVirtualAddress) {
        return handle_of_no_heap();
    }
    watch_forks();
    const NvtxName name(domain, description->message_type, description->message);
    const uint64_t hash = hash_bytes(name.text(), strlen(name.text()));
    const bool has_range =
        description->range != nullptr && description->range_bytes >= sizeof(Range);
    if (!g_heaps_lock.lock_within(50 * kMillisecond_ns)) {
        count_up(&g_events_without_room);
        return handle_of_no_heap();
    }
    uint32_t place = 0;
    while (place < g_heap_count && g_heaps[place].live) {
        ++place;
    }
    const void* handle = handle_of_no_heap();
    if (place < kMostHeaps) {
        uint32_t pool = pool_with_name(hash);
        if (pool == 0) {
            pool = create_program_pool(*name.text() != '\0' ? name.text() : "NVTX heaps", "other");
        }
        Heap& heap = g_heaps[place];
        const void* address = has_range ? description->range->address : nullptr;
        store_relaxed(&heap.address, reinterpret_cast<uint64_t>(address));
        heap.name_hash = hash;
        store_relaxed(&heap.pool, pool);
        store_relaxed(&heap.live, true);
        if (place == g_heap_count) {
            store_release(&g_heap_count, place + 1);
        }
        handle = handle_of(static_cast<uint16_t>(place));
    } else {
        count_up(&g_events_without_room);
    }
    g_heaps_lock.unlock();
    return handle;
}

// ---- regions -----------------------------------------------------------------------------------

// The heaps that have a region at an address, 16 bits each, the latest one lowest: heaps may be
// nested. The functions that end a region do not name its heap.
AddressTable<uint64_t, 1024> g_regions;

void register_region(uint16_t heap, const Range& region) {
    const auto address = reinterpret_cast<uint64_t>(region.address);
    if (address == 0 || region.size_bytes == 0) {
        return;
    }
    uint64_t heaps = 0;
    (void)g_regions.take(address, &heaps);
    if (g_regions.insert(address, heaps << 16 | heap)) {
        record_program_block(
            pool_of_heap(heap), address, kUnknown64, region.size_bytes, kStreamUnknown);
    }
}

// Returns the heap of the region, 0 if there is no region.
uint16_t unregister_region(uint64_t address) {
    uint64_t heaps = 0;
    if (address == 0 || !g_regions.take(address, &heaps)) {
        return 0;
    }
    const auto heap = static_cast<uint16_t>(heaps);
    record_program_free(pool_of_heap(heap), address);
    if (heaps >> 16 != 0) {
        (void)g_regions.insert(address, heaps >> 16);
    }
    return heap;
}

void end_regions(uint16_t heap) {
    g_regions.change_all([heap](uint64_t address, uint64_t heaps) {
        uint64_t kept = 0;
        for (uint32_t shift = 64; shift != 0; shift -= 16) {
            const auto one = static_cast<uint16_t>(heaps >> (shift - 16));
            if (one == heap) {
                record_program_free(pool_of_heap(heap), address);
            } else if (one != 0) {
                kept = kept << 16 | one;
            }
        }
        return kept;
    });
}

void reset_heap(const void*, const void* handle) {
    const SlowPath slow_path;
    if (const uint16_t heap = heap_number(handle)) {
        end_regions(heap);
    }
}

void unregister_heap(const void*, const void* handle) {
    const SlowPath slow_path;
    const uint16_t heap = heap_number(handle);
    if (heap == 0) {
        return;
    }
    end_regions(heap);
    if (!g_heaps_lock.lock_within(50 * kMillisecond_ns)) {
        return;
    }
    Heap& ended = g_heaps[heap - 1];
    const bool was_live = ended.live;
    store_relaxed(&ended.live, false);
    if (was_live && pool_with_name(ended.name_hash) == 0) {
        destroy_program_pool(ended.pool);
    }
    g_heaps_lock.unlock();
}

void register_regions(const void*, const RegionsToRegister* batch) {
    const SlowPath slow_path;
    if (batch == nullptr || batch->type != kVirtualAddress) {
        return;
    }
    const uint16_t heap = heap_number(batch->heap);
    for_each<Range>(batch, [&](size_t at, const Range& region) {
        if (batch->handles != nullptr) {
            batch->handles[at] = region.address;
        }
        // Without a heap the region is a part of the whole process, not of an allocator.
        if (heap != 0) {
            register_region(heap, region);
        }
    });
}

void resize_regions(const void*, const RegionsToResize* batch) {
    const SlowPath slow_path;
    for_each<Range>(batch, [](size_t, const Range& region) {
        if (const uint16_t heap = unregister_region(reinterpret_cast<uint64_t>(region.address))) {
            register_region(heap, region);
        }
    });
}

void unregister_regions(const void*, const RegionsToUnregister* batch) {
    const SlowPath slow_path;
    for_each<uint64_t>(batch, [](size_t, uint64_t address) { (void)unregister_region(address); });
}

void name_regions(const void*, const RegionsToName* batch) {
    const SlowPath slow_path;
    for_each<RegionName>(batch, [](size_t, const RegionName& region) {
        const auto address = reinterpret_cast<uint64_t>(region.region);
        uint64_t heaps = 0;
        // What is no region of a heap may be a block of PyTorch.
        const uint32_t pool =
            g_regions.look_up(address, &heaps) ? pool_of_heap(static_cast<uint16_t>(heaps)) : 0;
        label_block(address, NvtxName(nullptr, region.name_type, region.name).text(), pool);
    });
}

template <typename Function>
intptr_t slot(Function* function) {
    return reinterpret_cast<intptr_t>(function);
}

}  // namespace
}  // namespace fragtrace::preload

// Returns 1 if the functions of this extension were attached.
extern "C" FT_PUBLIC int InitializeInjectionNvtxExtension(ModuleInfo* module) {
    const SlowPath slow_path;
    if (module == nullptr || module->struct_bytes < sizeof(ModuleInfo) ||
        module->module != kMemoryModule || module->segment_count == 0) {
        return 0;
    }
    if (module->compatibility != kMemoryCompatibility) {
        record_fact("nvtx.memory", "off: unknown version of NVTX's memory extension");
        return 0;
    }
    const intptr_t functions[] = {slot(register_heap),
                                  slot(unregister_heap),
                                  slot(reset_heap),
                                  slot(register_regions),
                                  slot(resize_regions),
                                  slot(unregister_regions),
                                  slot(name_regions)};
    const ModuleSegment& segment = module->segments[0];
    for (size_t at = 0; at < sizeof functions / sizeof functions[0] && at < segment.slot_count;
         ++at) {
        segment.slots[at] = functions[at];
    }
    return 1;
}
