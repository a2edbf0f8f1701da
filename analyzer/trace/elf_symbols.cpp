#include "analyzer/trace/elf_symbols.h"

#include "analyzer/trace/demangle.h"

#include <algorithm>
#include <cstdlib>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace fragtrace::analyzer {
namespace {

struct Symbol {
    std::uint64_t begin;
    std::uint64_t size;
    const char* name;  // points into the mapped file
};

// Separate debug files are searched on this machine only. libdwfl's standard callback would also
// ask servers.
char* g_debug_path = nullptr;
const Dwfl_Callbacks kCallbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_build_id_find_debuginfo,
    .section_address = dwfl_offline_section_address,
    .debuginfo_path = &g_debug_path,
};

bool is_function(const GElf_Sym& symbol) {
    const auto type = GELF_ST_TYPE(symbol.st_info);
    return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol.st_shndx != SHN_UNDEF &&
           symbol.st_value != 0;
}

void read_table(Elf* elf, Elf_Scn* section, const GElf_Shdr& header, std::vector<Symbol>* out) {
    Elf_Data* data = elf_getdata(section, nullptr);
    if (data == nullptr || header.sh_entsize == 0) {
        return;
    }
    const auto count = static_cast<int>(header.sh_size / header.sh_entsize);
    for (int i = 0; i < count; ++i) {
        GElf_Sym symbol;
        if (gelf_getsym(data, i, &symbol) == nullptr || !is_function(symbol)) {
            continue;
        }
        const char* name = elf_strptr(elf, header.sh_link, symbol.st_name);
        if (name != nullptr && *name != '\0') {
            out->push_back({symbol.st_value, symbol.st_size, name});
        }
    }
}

const char* name_of(Dwarf_Die* die) {
    Dwarf_Attribute attribute;
    Dwarf_Attribute* found = dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute);
    if (found == nullptr) {
        found = dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute);
    }
    if (found == nullptr) {
        found = dwarf_attr_integrate(die, DW_AT_name, &attribute);
    }
    return found == nullptr ? nullptr : dwarf_formstring(found);
}

std::uint32_t number_of(Dwarf_Die* die, unsigned attribute_name) {
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    Dwarf_Attribute* found = dwarf_attr(die, attribute_name, &attribute);
    return found != nullptr && dwarf_formudata(found, &value) == 0
               ? static_cast<std::uint32_t>(value)
               : 0;
}

// Returns why the symbols of an open file must not be read; empty if they may be read.
std::string refusal_of(int descriptor) {
    constexpr off_t kMostBytes = off_t{16} << 30;
    struct stat status = {};
    if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
        return "not a regular file";
    }
    // Shared installations often belong to a third user, so other users may read files that only
    // their owner can write. Root reads only files of root.
    const bool foreign = status.st_uid != 0 && status.st_uid != geteuid();
    if (foreign && (geteuid() == 0 || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)) {
        return "a file of another user, which is not opened";
    }
    return status.st_size > kMostBytes ? "larger than any library" : "";
}

std::string source_file(Dwarf_Die* unit, std::uint32_t index) {
    Dwarf_Files* files = nullptr;
    std::size_t count = 0;
    if (dwarf_getsrcfiles(unit, &files, &count) != 0 || index >= count) {
        return {};
    }
    const char* name = dwarf_filesrc(files, index, nullptr, nullptr);
    return name == nullptr ? std::string() : name;
}

}  // namespace

struct ElfSymbols::State {
    std::string path;
    int descriptor = -1;
    Elf* elf = nullptr;
    std::string refusal;
    std::string build_id;
    std::vector<Symbol> symbols;
    bool symbols_read = false;
    Dwfl* dwfl = nullptr;
    Dwfl_Module* module = nullptr;
    GElf_Addr bias = 0;
    bool dwarf_tried = false;

    // The address ranges of each compilation unit. They are read only if the file's own table of
    // them (.debug_aranges, which clang does not write) has no entry for an address.
    struct UnitRange {
        Dwarf_Addr begin;
        Dwarf_Addr end;
        Dwarf_Die* unit;
    };

    std::vector<UnitRange> unit_ranges;
    bool unit_ranges_read = false;

    ~State() {
        if (dwfl != nullptr) {
            dwfl_end(dwfl);
        }
        elf_end(elf);
        if (descriptor >= 0) {
            close(descriptor);
        }
    }

    void read_symbols() {
        symbols_read = true;
        for (const GElf_Word type : {GElf_Word{SHT_SYMTAB}, GElf_Word{SHT_DYNSYM}}) {
            Elf_Scn* section = nullptr;
            while ((section = elf_nextscn(elf, section)) != nullptr) {
                GElf_Shdr header;
                if (gelf_getshdr(section, &header) != nullptr && header.sh_type == type) {
                    read_table(elf, section, header, &symbols);
                }
            }
            if (!symbols.empty()) {
                break;  // .symtab includes the entries of .dynsym
            }
        }
        std::sort(symbols.begin(), symbols.end(), [](const Symbol& a, const Symbol& b) {
            return a.begin < b.begin;
        });
    }

    [[nodiscard]] bool has_section(const char* name) const {
        std::size_t names = 0;
        Elf_Scn* section = nullptr;
        if (elf_getshdrstrndx(elf, &names) != 0) {
            return false;
        }
        while ((section = elf_nextscn(elf, section)) != nullptr) {
            GElf_Shdr header;
            const char* found = gelf_getshdr(section, &header) == nullptr
                                    ? nullptr
                                    : elf_strptr(elf, names, header.sh_name);
            if (found != nullptr && std::string_view(found) == name) {
                return true;
            }
        }
        return false;
    }

    void open_dwarf() {
        dwarf_tried = true;
        const bool separate =
            build_id.size() > 2 && access(fmt::format("/usr/lib/debug/.build-id/{}/{}.debug",
                                                      build_id.substr(0, 2),
                                                      build_id.substr(2))
                                              .c_str(),
                                          R_OK) == 0;
        if (!separate && !has_section(".debug_info") && !has_section(".zdebug_info")) {
            return;
        }
        dwfl = dwfl_begin(&kCallbacks);
        if (dwfl == nullptr) {
            return;
        }
        dwfl_report_begin(dwfl);
        module = dwfl_report_offline(dwfl, path.c_str(), path.c_str(), dup(descriptor));
        dwfl_report_end(dwfl, nullptr, nullptr);
        if (module != nullptr && dwfl_module_getelf(module, &bias) == nullptr) {
            module = nullptr;
        }
    }

    void read_unit_ranges() {
        constexpr std::size_t kMostRanges = 1 << 21;  // a list of ranges may serve many units
        unit_ranges_read = true;
        Dwarf_Addr die_bias = 0;
        Dwarf_Die* unit = nullptr;
        while ((unit = dwfl_module_nextcu(module, unit, &die_bias)) != nullptr) {
            Dwarf_Addr base = 0;
            Dwarf_Addr begin = 0;
            Dwarf_Addr end = 0;
            std::ptrdiff_t next = 0;
            while ((next = dwarf_ranges(unit, next, &base, &begin, &end)) > 0) {
                if (unit_ranges.size() == kMostRanges) {
                    return;
                }
                unit_ranges.push_back({begin + die_bias, end + die_bias, unit});
            }
        }
    }

    Dwarf_Die* unit_at(Dwarf_Addr here, Dwarf_Addr* die_bias) {
        if (Dwarf_Die* unit = dwfl_module_addrdie(module, here, die_bias); unit != nullptr) {
            return unit;
        }
        if (!unit_ranges_read) {
            read_unit_ranges();
            std::sort(unit_ranges.begin(), unit_ranges.end(), [](const auto& a, const auto& b) {
                return a.begin < b.begin;
            });
        }
        const auto after = std::upper_bound(
            unit_ranges.begin(), unit_ranges.end(), here, [](Dwarf_Addr value, const auto& range) {
                return value < range.begin;
            });
        if (after == unit_ranges.begin() || here >= std::prev(after)->end) {
            return nullptr;
        }
        dwfl_module_getdwarf(module, die_bias);
        return std::prev(after)->unit;
    }

    // Finds the innermost function, inlined function or block with this address below `parent`.
    // dwarf_getscopes() finds none in a namespace, where clang describes functions.
    static bool find_innermost(Dwarf_Die* parent, Dwarf_Addr here, int depth, Dwarf_Die* found) {
        constexpr int kMostDepth = 200;  // the file may be made up
        Dwarf_Die child;
        if (depth == kMostDepth || dwarf_child(parent, &child) != 0) {
            return false;
        }
        do {
            switch (dwarf_tag(&child)) {
                case DW_TAG_namespace:
                case DW_TAG_class_type:
                case DW_TAG_structure_type:
                case DW_TAG_union_type:
                    if (find_innermost(&child, here, depth + 1, found)) {
                        return true;
                    }
                    break;
                case DW_TAG_subprogram:
                case DW_TAG_inlined_subroutine:
                case DW_TAG_lexical_block:
                    if (dwarf_haspc(&child, here) == 1) {
                        *found = child;
                        find_innermost(&child, here, depth + 1, found);
                        return true;
                    }
                    break;
                default:
                    break;
            }
        } while (dwarf_siblingof(&child, &child) == 0);
        return false;
    }

    std::vector<Frame> from_dwarf(std::uint64_t address) {
        std::vector<Frame> result;
        const Dwarf_Addr here = address + bias;
        Dwarf_Addr die_bias = 0;
        Dwarf_Die* unit = unit_at(here, &die_bias);
        if (unit == nullptr) {
            return result;
        }
        std::string file;
        int line = 0;
        if (Dwarf_Line* found = dwarf_getsrc_die(unit, here - die_bias); found != nullptr) {
            const char* name = dwarf_linesrc(found, nullptr, nullptr);
            file = name == nullptr ? "" : name;
            dwarf_lineno(found, &line);
        }
        Dwarf_Die innermost;
        Dwarf_Die* chain = nullptr;
        const int chain_count = find_innermost(unit, here - die_bias, 0, &innermost)
                                    ? dwarf_getscopes_die(&innermost, &chain)
                                    : 0;
        for (int i = 0; i < chain_count; ++i) {
            const int tag = dwarf_tag(&chain[i]);
            if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) {
                continue;
            }
            const char* name = name_of(&chain[i]);
            result.push_back({Frame::Kind::kNative,
                              name == nullptr ? std::string("?") : demangle(name),
                              file,
                              static_cast<std::uint32_t>(line),
                              {}});
            if (tag == DW_TAG_subprogram) {
                break;
            }
            file = source_file(unit, number_of(&chain[i], DW_AT_call_file));
            line = static_cast<int>(number_of(&chain[i], DW_AT_call_line));
        }
        std::free(chain);
        return result;
    }

    [[nodiscard]] const Symbol* symbol_at(std::uint64_t address) const {
        auto after = std::upper_bound(
            symbols.begin(), symbols.end(), address, [](std::uint64_t value, const Symbol& symbol) {
                return value < symbol.begin;
            });
        // Several symbols may begin at the same address, and some have size 0.
        for (int tries = 0; after != symbols.begin() && tries < 8; ++tries) {
            --after;
            if (address - after->begin < after->size) {
                return &*after;
            }
        }
        return nullptr;
    }
};

ElfSymbols::ElfSymbols(const std::string& path) : state_(std::make_unique<State>()) {
    elf_version(EV_CURRENT);
    state_->path = path;
    if (!path.starts_with('/')) {
        return;
    }
    state_->descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (state_->descriptor < 0) {
        return;
    }
    state_->refusal = refusal_of(state_->descriptor);
    if (!state_->refusal.empty()) {
        return;
    }
    state_->elf = elf_begin(state_->descriptor, ELF_C_READ_MMAP, nullptr);
    const void* id = nullptr;
    const ssize_t size = state_->elf == nullptr ? 0 : dwelf_elf_gnu_build_id(state_->elf, &id);
    for (ssize_t i = 0; i < size; ++i) {
        state_->build_id += fmt::format("{:02x}", static_cast<const std::uint8_t*>(id)[i]);
    }
}

ElfSymbols::~ElfSymbols() = default;

const std::string& ElfSymbols::refusal() const {
    return state_->refusal;
}

bool ElfSymbols::readable() const {
    return state_->elf != nullptr && elf_kind(state_->elf) == ELF_K_ELF;
}

const std::string& ElfSymbols::build_id() const {
    return state_->build_id;
}

std::vector<Frame> ElfSymbols::frames(std::uint64_t address) {
    if (!readable()) {
        return {};
    }
    if (!state_->dwarf_tried) {
        state_->open_dwarf();
    }
    if (state_->module != nullptr) {
        std::vector<Frame> result = state_->from_dwarf(address);
        if (!result.empty()) {
            return result;
        }
    }
    if (!state_->symbols_read) {
        state_->read_symbols();
    }
    const Symbol* symbol = state_->symbol_at(address);
    if (symbol == nullptr) {
        return {};
    }
    return {{Frame::Kind::kNative, demangle(symbol->name), {}, 0, {}}};
}

}  // namespace fragtrace::analyzer
