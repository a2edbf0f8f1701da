#include "system/modules.h"

#include "system/sys.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

namespace fragtrace::preload {
namespace {

struct BuildId {
    const uint8_t* data;
    size_t size_bytes;
};

BuildId build_id_of(const dl_phdr_info& module) {
    for (int i = 0; i < module.dlpi_phnum; ++i) {
        const ElfW(Phdr)& segment = module.dlpi_phdr[i];
        if (segment.p_type != PT_NOTE) {
            continue;
        }
        const auto* note = reinterpret_cast<const uint8_t*>(module.dlpi_addr + segment.p_vaddr);
        size_t left = segment.p_memsz;
        while (left >= sizeof(ElfW(Nhdr))) {
            ElfW(Nhdr) header;
            memcpy(&header, note, sizeof header);
            const size_t name = (size_t{header.n_namesz} + 3) & ~size_t{3};
            const size_t data = (size_t{header.n_descsz} + 3) & ~size_t{3};
            if (left - sizeof header < name || left - sizeof header - name < data) {
                break;
            }
            if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 &&
                memcmp(note + sizeof header, "GNU", 4) == 0) {
                return {note + sizeof header + name, header.n_descsz};
            }
            note += sizeof header + name + data;
            left -= sizeof header + name + data;
        }
    }
    return {nullptr, 0};
}

struct EncodeState {
    ByteWriter* out;
    uint32_t count;
    bool first;
};

int encode_one(dl_phdr_info* module, size_t /*size*/, void* argument) {
    auto* state = static_cast<EncodeState*>(argument);
    char path[4096];
    Text text(path, sizeof path);
    if (state->first) {  // the program: the loader's name for it is empty
        const ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
        path[size > 0 ? size : 0] = '\0';
        state->first = false;
    } else {
        const char* name = module->dlpi_name;
        if (name[0] != '/' && strchr(name, '/') != nullptr &&
            getcwd(path, sizeof path) != nullptr) {
            const size_t size = strlen(path);
            Text(path + size, sizeof path - size).add("/").add(name);
        } else {
            text.add(name);
        }
    }
    const BuildId id = build_id_of(*module);
    for (int i = 0; i < module->dlpi_phnum; ++i) {
        const ElfW(Phdr)& segment = module->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) {
            continue;
        }
        const uint64_t begin = module->dlpi_addr + segment.p_vaddr;
        const ModuleRecord record{begin,
                                  begin + segment.p_memsz,
                                  module->dlpi_addr,
                                  path,
                                  strlen(path),
                                  id.data,
                                  id.size_bytes};
        if (!encode_module(record, state->out)) {
            return 1;
        }
        ++state->count;
    }
    return 0;
}

int read_version(dl_phdr_info* module, size_t /*size*/, void* argument) {
    *static_cast<ModuleVersion*>(argument) = {module->dlpi_adds, module->dlpi_subs};
    return 1;
}

struct OwnState {
    TextRange range;
    bool program;
};

int find_own(dl_phdr_info* module, size_t /*size*/, void* argument) {
    auto* state = static_cast<OwnState*>(argument);
    const auto here = reinterpret_cast<uint64_t>(&find_own);
    for (int i = 0; i < module->dlpi_phnum; ++i) {
        const ElfW(Phdr)& segment = module->dlpi_phdr[i];
        const uint64_t begin = module->dlpi_addr + segment.p_vaddr;
        if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 && here >= begin &&
            here < begin + segment.p_memsz) {
            if (!state->program) {
                state->range = {begin, begin + segment.p_memsz};
            }
            return 1;
        }
    }
    state->program = false;
    return 0;
}

}  // namespace

ModuleVersion module_version() {
    ModuleVersion version{};
    dl_iterate_phdr(read_version, &version);
    return version;
}

uint32_t encode_modules(ByteWriter* out) {
    EncodeState state{out, 0, true};
    dl_iterate_phdr(encode_one, &state);
    return state.count;
}

TextRange own_text() {
    OwnState state{{0, 0}, true};
    dl_iterate_phdr(find_own, &state);
    return state.range;
}

}  // namespace fragtrace::preload
