// The sorted table is the one of the Linux Standard Base (.eh_frame_hdr).
#include "stacks/unwind_entries.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

namespace fragtrace::preload {

#if FT_HAVE_UNWIND_RULES
namespace {

int (*g_find_object)(void* address, dl_find_object* found);

// Finds the readable segment of the module that contains its unwind tables.
bool segment_of(const dl_find_object& module, const uint8_t* table, UnwindEntry* segment) {
    const auto* begin = static_cast<const uint8_t*>(module.dlfo_map_start);
    const auto* end = static_cast<const uint8_t*>(module.dlfo_map_end);
    const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(begin);
    if (static_cast<size_t>(end - begin) < sizeof *header ||
        memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_phentsize != sizeof(ElfW(Phdr)) ||
        header->e_phoff + header->e_phnum * sizeof(ElfW(Phdr)) > 4096) {
        return false;
    }
    const auto* segments = reinterpret_cast<const ElfW(Phdr)*>(begin + header->e_phoff);
    const uint64_t bias = module.dlfo_link_map->l_addr;
    for (int i = 0; i < header->e_phnum; ++i) {
        const auto* from = reinterpret_cast<const uint8_t*>(bias + segments[i].p_vaddr);
        const auto* to = from + segments[i].p_filesz;
        if (segments[i].p_type == PT_LOAD && (segments[i].p_flags & PF_R) != 0 && table >= from &&
            table < to && from >= begin && to <= end) {
            segment->begin = from;
            segment->end = to;
            return true;
        }
    }
    return false;
}

// Returns the entry of the function that may contain `address`, from the sorted table; nullptr if
// none.
const uint8_t* find_entry(const uint8_t* header, const UnwindEntry& segment, uint64_t address) {
    constexpr uint8_t kUsual[] = {1, 0x1b, 0x03, 0x3b};  // version and three encodings
    constexpr size_t kHead_bytes = 12;
    if (static_cast<size_t>(segment.end - header) < kHead_bytes ||
        memcmp(header, kUsual, sizeof kUsual) != 0) {
        return nullptr;
    }
    uint32_t count = 0;
    memcpy(&count, header + 8, sizeof count);

    struct Pair {
        int32_t function;
        int32_t entry;
    };  // relative to the header

    if (count == 0 || count > (static_cast<size_t>(segment.end - header) - kHead_bytes) / 8) {
        return nullptr;
    }
    const auto pair_at = [header](uint32_t i) {
        Pair pair;
        memcpy(&pair, header + kHead_bytes + i * sizeof pair, sizeof pair);
        return pair;
    };
    const auto wanted = static_cast<int64_t>(address - reinterpret_cast<uint64_t>(header));
    uint32_t begin = 0;
    uint32_t end = count;
    while (begin < end) {  // find the first function that starts after the address
        const uint32_t middle = begin + (end - begin) / 2;
        if (pair_at(middle).function <= wanted) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    const uint8_t* entry = begin == 0 ? nullptr : header + pair_at(begin - 1).entry;
    return entry != nullptr && entry >= segment.begin && entry < segment.end ? entry : nullptr;
}

}  // namespace

bool can_find_unwind_entries() {
    if (g_find_object == nullptr) {  // looked up at run time: the dynamic linker defines the
                                     // function
        g_find_object =
            reinterpret_cast<decltype(g_find_object)>(dlsym(RTLD_DEFAULT, "_dl_find_object"));
    }
    return g_find_object != nullptr;
}

bool find_unwind_entry(uint64_t address, UnwindEntry* entry) {
    dl_find_object module{};
    if (g_find_object(reinterpret_cast<void*>(address), &module) != 0 ||
        module.dlfo_eh_frame == nullptr) {
        return false;
    }
    const auto* header = static_cast<const uint8_t*>(module.dlfo_eh_frame);
    if (!segment_of(module, header, entry)) {
        return false;
    }
    entry->at = find_entry(header, *entry, address);
    return entry->at != nullptr;
}

#else

bool can_find_unwind_entries() {
    return false;
}

bool find_unwind_entry(uint64_t, UnwindEntry*) {
    return false;
}

#endif

}  // namespace fragtrace::preload
