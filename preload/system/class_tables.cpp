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

// The object's constant memory.
struct ConstantSegments {
    AddressRange ranges[8];
    size_t count = 0;

    [[nodiscard]] bool have_text_at(const void* place, const char* text, size_t bytes) const {
        for (size_t at = 0; at < count; ++at) {
            if (ranges[at].contains(place)) {
                return bytes <= ranges[at].end - reinterpret_cast<uintptr_t>(place) &&
                       memcmp(place, text, bytes) == 0;
            }
        }
        return false;
    }
};

ConstantSegments constant_segments(const link_map* object) {
    ConstantSegments found;
    for_each_segment(object, [&found](const AddressRange& segment, uint32_t flags) {
        constexpr size_t kMost = sizeof found.ranges / sizeof found.ranges[0];
        if ((flags & PF_R) != 0 && (flags & PF_W) == 0 && found.count < kMost) {
            found.ranges[found.count++] = segment;
        }
    });
    return found;
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
    const ConstantSegments constants = constant_segments(object);
    const size_t name_bytes = strlen(mangled_name) + 1;
    // Type information of a class with one base: its own table, its name, its base. The name is
    // found by its address: a search for its text would read the whole object.
    for (const void* const* at = words.begin + 1; at + 1 < words.end; ++at) {
        if (constants.have_text_at(*at, mangled_name, name_bytes)) {
            if (found.type_info != nullptr) {
                return {};
            }
            found.type_info = at - 1;
            found.base_type_info = at[1];
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
