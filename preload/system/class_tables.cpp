#include "system/class_tables.h"

#include <elf.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace fragtrace::preload {
namespace {

constexpr size_t kMostSlots = 256;

// Calls `use(range, flags)` for each loaded segment of the object. The first one begins with the
// file's header.
template <typename Use>
void for_each_segment(const link_map* object, Use use) {
    const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(object_range(object).begin);
    if (header == nullptr || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
        return;
    }
    const auto* programs = reinterpret_cast<const ElfW(Phdr)*>(
        reinterpret_cast<const char*>(header) + header->e_phoff);
    for (uint32_t i = 0; i < header->e_phnum; ++i) {
        if (programs[i].p_type == PT_LOAD) {
            const uintptr_t begin = object->l_addr + programs[i].p_vaddr;
            use(AddressRange{begin, begin + programs[i].p_memsz}, programs[i].p_flags);
        }
    }
}

// The only text in constant memory that equals `name`; nullptr if there is none, or several.
const char* find_text(const link_map* object, const char* name) {
    const size_t bytes = strlen(name) + 1;
    const char* found = nullptr;
    bool several = false;
    for_each_segment(object, [&](const AddressRange& segment, uint32_t flags) {
        if ((flags & PF_R) == 0 || (flags & PF_W) != 0) {
            return;
        }
        const char* at = reinterpret_cast<const char*>(segment.begin);
        const char* const end = reinterpret_cast<const char*>(segment.end);
        while (const void* hit = memmem(at, static_cast<size_t>(end - at), name, bytes)) {
            const char* text = static_cast<const char*>(hit);
            if (reinterpret_cast<uintptr_t>(text) > segment.begin && text[-1] == '\0') {
                several = several || found != nullptr;
                found = text;
            }
            at = text + 1;
        }
    });
    return several ? nullptr : found;
}

bool is_code_of(const link_map* object, const void* address) {
    bool code = false;
    for_each_segment(object, [&](const AddressRange& segment, uint32_t flags) {
        code = code || ((flags & PF_X) != 0 && segment.contains(address));
    });
    return code;
}

struct Words {
    const void* const* begin;
    const void* const* end;
};

Words words_of(const AddressRange& range) {
    constexpr uintptr_t kWord = sizeof(void*);
    return {reinterpret_cast<const void* const*>((range.begin + kWord - 1) / kWord * kWord),
            reinterpret_cast<const void* const*>(range.end / kWord * kWord)};
}

}  // namespace

ClassTable find_class_table(const link_map* object, const char* mangled_name) {
    ClassTable found;
    const Words words = words_of(read_only_after_load(object));
    const char* const name = find_text(object, mangled_name);
    // Type information of a class with one base: its own table, its name, its base.
    for (const void* const* at = words.begin + 1; name != nullptr && at + 1 < words.end; ++at) {
        if (*at == name) {
            found.type_info = at - 1;
            found.base_type_info = at[1];
            break;
        }
    }
    // A table: the offset to the whole object (0), the type information, the functions.
    for (const void* const* at = words.begin + 1; found.type_info != nullptr && at + 1 < words.end;
         ++at) {
        if (*at != found.type_info || at[-1] != nullptr || !is_code_of(object, at[1])) {
            continue;
        }
        if (found.slots != nullptr) {
            return {};
        }
        found.slots = const_cast<void**>(at + 1);
        while (found.slots + found.count < words.end && found.count < kMostSlots &&
               is_code_of(object, found.slots[found.count])) {
            ++found.count;
        }
    }
    return found;
}

bool protect_table(void* const* slots,
                   size_t count,
                   const AddressRange& read_only,
                   int protection) {
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const uintptr_t begin = reinterpret_cast<uintptr_t>(slots) & ~(page - 1);
    const auto end = reinterpret_cast<uintptr_t>(slots + count);
    return !read_only.contains(slots) ||
           mprotect(reinterpret_cast<void*>(begin), end - begin, protection) == 0;
}

}  // namespace fragtrace::preload
