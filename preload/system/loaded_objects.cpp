#include "system/loaded_objects.h"

#include "system/plain_text.h"

#include <dlfcn.h>
#include <elf.h>
#include <string.h>
#include <sys/auxv.h>

namespace fragtrace::preload {
namespace {

// Tables of the dynamic section. On x86-64 and aarch64, glibc relocates these pointers in place,
// except in the vdso: values below the load address are offsets.
struct SymbolTables {
    const ElfW(Sym) * symbols = nullptr;
    const char* strings = nullptr;
    const uint32_t* gnu_hash = nullptr;
    const ElfW(Half) * versions = nullptr;
    const uint32_t* hash = nullptr;
};

template <typename T>
const T* table_pointer(const link_map* map, ElfW(Addr) value) {
    return reinterpret_cast<const T*>(value < map->l_addr ? value + map->l_addr : value);
}

SymbolTables symbol_tables(const link_map* map) {
    SymbolTables tables;
    if (map->l_ld == nullptr) {
        return tables;
    }
    for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
        switch (entry->d_tag) {
            case DT_SYMTAB:
                tables.symbols = table_pointer<ElfW(Sym)>(map, entry->d_un.d_ptr);
                break;
            case DT_STRTAB:
                tables.strings = table_pointer<char>(map, entry->d_un.d_ptr);
                break;
            case DT_GNU_HASH:
                tables.gnu_hash = table_pointer<uint32_t>(map, entry->d_un.d_ptr);
                break;
            case DT_HASH:
                tables.hash = table_pointer<uint32_t>(map, entry->d_un.d_ptr);
                break;
            case DT_VERSYM:
                tables.versions = table_pointer<ElfW(Half)>(map, entry->d_un.d_ptr);
                break;
            default:
                break;
        }
    }
    return tables;
}

bool is_match(const SymbolTables& tables, uint32_t index, const char* name) {
    const ElfW(Sym)& symbol = tables.symbols[index];
    return symbol.st_shndx != SHN_UNDEF && is_same_text(tables.strings + symbol.st_name, name);
}

// A library may define several versions of a name. References without a version get the one that is
// not hidden.
bool is_hidden_version(const SymbolTables& tables, uint32_t index) {
    constexpr ElfW(Half) kHidden = 0x8000;
    return tables.versions != nullptr && (tables.versions[index] & kHidden) != 0;
}

const ElfW(Sym) * lookup_gnu_hash(const SymbolTables& tables, const char* name) {
    uint32_t hash = 5381;
    for (const char* at = name; *at != '\0'; ++at) {
        hash = hash * 33 + static_cast<unsigned char>(*at);
    }
    const uint32_t bucket_count = tables.gnu_hash[0];
    const uint32_t first_symbol = tables.gnu_hash[1];
    const uint32_t bloom_words = tables.gnu_hash[2];
    if (bucket_count == 0) {
        return nullptr;
    }
    const auto* bloom = reinterpret_cast<const ElfW(Addr)*>(tables.gnu_hash + 4);
    const auto* buckets = reinterpret_cast<const uint32_t*>(bloom + bloom_words);
    const uint32_t* chain = buckets + bucket_count;
    uint32_t index = buckets[hash % bucket_count];
    if (index < first_symbol) {
        return nullptr;
    }
    const ElfW(Sym)* hidden = nullptr;  // used if there is no other version
    while (true) {
        const uint32_t entry = chain[index - first_symbol];
        if ((entry | 1) == (hash | 1) && is_match(tables, index, name)) {
            if (!is_hidden_version(tables, index)) {
                return &tables.symbols[index];
            }
            hidden = hidden == nullptr ? &tables.symbols[index] : hidden;
        }
        if ((entry & 1) != 0) {
            return hidden;
        }
        ++index;
    }
}

const ElfW(Sym) * lookup_symbol(const link_map* map, const char* name) {
    const SymbolTables tables = symbol_tables(map);
    if (tables.symbols == nullptr || tables.strings == nullptr) {
        return nullptr;
    }
    if (tables.gnu_hash != nullptr) {
        return lookup_gnu_hash(tables, name);
    }
    if (tables.hash == nullptr) {
        return nullptr;
    }
    const ElfW(Sym)* hidden = nullptr;
    for (uint32_t index = 1; index < tables.hash[1]; ++index) {
        if (is_match(tables, index, name)) {
            if (!is_hidden_version(tables, index)) {
                return &tables.symbols[index];
            }
            hidden = hidden == nullptr ? &tables.symbols[index] : hidden;
        }
    }
    return hidden;
}

struct ObjectSearch {
    const link_map* map;
    AddressRange range;
    AddressRange unwind_table;
    AddressRange read_only;
    const void* code_address;
    bool code;
};

int visit_object(dl_phdr_info* info, size_t, void* data) {
    auto* search = static_cast<ObjectSearch*>(data);
    if (info->dlpi_addr != search->map->l_addr) {
        return 0;
    }
    bool has_dynamic = false;
    AddressRange range{UINTPTR_MAX, 0};
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr)& header = info->dlpi_phdr[i];
        const uintptr_t begin = info->dlpi_addr + header.p_vaddr;
        const uintptr_t end = begin + header.p_memsz;
        if (header.p_type == PT_DYNAMIC) {
            // Two objects may have load address 0; the dynamic section distinguishes them.
            has_dynamic = begin == reinterpret_cast<uintptr_t>(search->map->l_ld);
        } else if (header.p_type == PT_GNU_EH_FRAME) {
            search->unwind_table = {begin, end};
        } else if (header.p_type == PT_GNU_RELRO) {
            search->read_only = {begin, end};
        } else if (header.p_type == PT_LOAD) {
            range.begin = begin < range.begin ? begin : range.begin;
            range.end = end > range.end ? end : range.end;
            if ((header.p_flags & PF_X) != 0 &&
                AddressRange{begin, end}.contains(search->code_address)) {
                search->code = true;
            }
        }
    }
    if (!has_dynamic) {
        search->unwind_table = {};
        search->read_only = {};
        search->code = false;
        return 0;
    }
    search->range = range;
    return 1;
}

ObjectSearch search_object(const link_map* map, const void* code_address) {
    ObjectSearch search{map, {}, {}, {}, code_address, false};
    if (map != nullptr) {
        dl_iterate_phdr(visit_object, &search);
    }
    return search;
}

// The limits of this library; the linker defines both symbols, and they stay hidden.
extern "C" __attribute__((visibility("hidden"))) const char __ehdr_start[];
extern "C" __attribute__((visibility("hidden"))) const char _end[];

// The loader's list of objects, as debuggers find it; nullptr: not found.
__attribute__((section(".text.startup"))) const link_map* listed_objects() {
    const auto* header = reinterpret_cast<const ElfW(Phdr)*>(getauxval(AT_PHDR));
    const ElfW(Phdr)* const end = header + (header == nullptr ? 0 : getauxval(AT_PHNUM));
    const auto* own = header;
    while (own != end && own->p_type != PT_PHDR) {
        ++own;
    }
    while (header != end && header->p_type != PT_DYNAMIC) {
        ++header;
    }
    if (own == end || header == end) {
        return nullptr;
    }
    const ElfW(Addr) base = getauxval(AT_PHDR) - own->p_vaddr;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(base + header->p_vaddr);
    while (entry->d_tag != DT_NULL && entry->d_tag != DT_DEBUG) {
        ++entry;
    }
    const auto* list =
        entry->d_tag == DT_NULL ? nullptr : reinterpret_cast<const r_debug*>(entry->d_un.d_ptr);
    return list == nullptr ? nullptr : list->r_map;
}

// Placed next to other code that runs when the library is loaded: elsewhere it would cause an extra
// page fault.
//
// A preloaded library is near the beginning of the list. The loader's own answer takes 6,700
// instructions, because it looks at all symbols of this library. The list does not change
// meanwhile: this runs while the library is loaded, under the loader's lock. Another namespace
// (dlmopen) has another list, in which this library is not.
__attribute__((section(".text.startup"))) const link_map* find_our_object() {
    const link_map* map = listed_objects();
    while (map != nullptr && map->l_ld != _DYNAMIC) {
        map = map->l_next;
    }
    return map != nullptr ? map : object_at(__ehdr_start);
}

}  // namespace

const link_map* object_at(const void* address) {
    Dl_info info;
    link_map* map = nullptr;
    if (dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) {
        return nullptr;
    }
    return map;
}

AddressRange object_range(const link_map* map) {
    return search_object(map, nullptr).range;
}

AddressRange read_only_after_load(const link_map* map) {
    return search_object(map, nullptr).read_only;
}

bool is_ours(const void* address) {
    return address >= __ehdr_start && address < _end;
}

__attribute__((section(".text.startup"))) const link_map* our_object() {
    // Placed in data that the loader has already written, because every process comes here when it
    // starts.
    __attribute__((section(".data"))) static const link_map* ours = nullptr;
    const link_map* known = __atomic_load_n(&ours, __ATOMIC_RELAXED);
    if (known == nullptr) {
        known = find_our_object();
        __atomic_store_n(&ours, known, __ATOMIC_RELAXED);
    }
    return known;
}

void* defined_symbol(const link_map* map, const char* name, bool* indirect) {
    const ElfW(Sym)* symbol = lookup_symbol(map, name);
    if (symbol == nullptr) {
        return nullptr;
    }
    *indirect = ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC;
    return reinterpret_cast<void*>(map->l_addr + symbol->st_value);
}

size_t defined_symbol_bytes(const link_map* map, const char* name) {
    const ElfW(Sym)* symbol = lookup_symbol(map, name);
    return symbol == nullptr ? 0 : symbol->st_size;
}

namespace {

struct DefinitionSearch {
    const link_map* from;
    const char* prefix;
    const char* name;  // nullptr: any object with the prefix
    const link_map* object;
    void* symbol;
};

// Runs inside dl_iterate_phdr, whose lock prevents changes of the list.
int visit_list(dl_phdr_info*, size_t, void* data) {
    auto* search = static_cast<DefinitionSearch*>(data);
    for (const link_map* map = search->from; map != nullptr; map = map->l_next) {
        if (!begins_with(base_name(map), search->prefix)) {
            continue;
        }
        bool indirect = false;
        void* symbol =
            search->name == nullptr ? nullptr : defined_symbol(map, search->name, &indirect);
        if (search->name == nullptr || (symbol != nullptr && !indirect && !is_ours(symbol))) {
            search->object = map;
            search->symbol = symbol;
            break;
        }
    }
    return 1;
}

}  // namespace

void* find_definition(const link_map* from, const char* prefix, const char* name) {
    DefinitionSearch search{from, prefix, name, nullptr, nullptr};
    dl_iterate_phdr(visit_list, &search);
    return search.symbol;
}

void* next_definition_at_start(const char* name) {
    for (const link_map* map = our_object()->l_next; map != nullptr; map = map->l_next) {
        bool indirect = false;
        void* symbol = defined_symbol(map, name, &indirect);
        if (symbol != nullptr && !indirect) {
            return symbol;
        }
    }
    return nullptr;
}

const link_map* find_object(const char* prefix) {
    DefinitionSearch search{first_object(), prefix, nullptr, nullptr, nullptr};
    dl_iterate_phdr(visit_list, &search);
    return search.object;
}

const link_map* first_object() {
    const link_map* map = our_object();
    while (map != nullptr && map->l_prev != nullptr) {
        map = map->l_prev;
    }
    return map;
}

const char* base_name(const link_map* map) {
    const char* base = map->l_name;
    for (const char* at = base; *at != '\0'; ++at) {
        base = *at == '/' ? at + 1 : base;
        asm volatile("");
    }
    return base;
}

const void* function_start(const void* address) {
    const AddressRange table = search_object(object_at(address), nullptr).unwind_table;
    const auto* header = reinterpret_cast<const uint8_t*>(table.begin);
    // Version 1; frame pointer relative to its own address; 4-byte count; table relative to the
    // header.
    if (header == nullptr || header[0] != 1 || header[1] != 0x1b || header[2] != 0x03 ||
        header[3] != 0x3b) {
        return nullptr;
    }
    uint32_t count = 0;
    memcpy(&count, header + 8, sizeof count);
    const auto* entries = reinterpret_cast<const int32_t*>(header + 12);  // pairs (start, entry)
    const auto wanted = reinterpret_cast<intptr_t>(address) - reinterpret_cast<intptr_t>(header);
    uint32_t low = 0;
    uint32_t high = count;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (entries[static_cast<size_t>(middle) * 2] <= wanted) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == 0 ? nullptr : header + entries[static_cast<size_t>(low - 1) * 2];
}

bool is_code(const void* address) {
    return search_object(object_at(address), address).code;
}

}  // namespace fragtrace::preload
