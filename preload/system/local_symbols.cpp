#include "system/local_symbols.h"

#include "system/sys.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

namespace fragtrace::preload {
namespace {

constexpr size_t kMostSymbols = 32;
constexpr size_t kMostNameBytes = 512;
constexpr size_t kBufferBytes = size_t{1} << 20;

// Reads with pread(): a mapped file that shrinks would end the process.
class File {
  public:
    explicit File(const char* path) : fd_(open(path, O_RDONLY | O_CLOEXEC)) {
        if (fd_ >= 0) {
            move_out_of_the_way(&fd_);
        }
    }

    ~File() {
        if (fd_ >= 0) {
            close(fd_);
        }
    }

    File(const File&) = delete;
    File& operator=(const File&) = delete;

    [[nodiscard]] bool is_open() const { return fd_ >= 0; }

    // Returns whether all bytes were read.
    bool read(uint64_t at, void* to, size_t bytes) const {
        for (size_t done = 0; done < bytes;) {
            const ssize_t got = pread(
                fd_, static_cast<char*>(to) + done, bytes - done, static_cast<off_t>(at + done));
            if (got <= 0) {
                return false;
            }
            done += static_cast<size_t>(got);
        }
        return true;
    }

  private:
    int fd_;
};

struct Tables {
    uint64_t symbols_at = 0;
    uint64_t symbols_bytes = 0;
    uint64_t names_at = 0;
    uint64_t names_bytes = 0;
};

bool find_tables(const File& file, Tables* tables) {
    ElfW(Ehdr) header;
    if (!file.read(0, &header, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_shentsize != sizeof(ElfW(Shdr))) {
        return false;
    }
    for (uint32_t i = 0; i < header.e_shnum; ++i) {
        ElfW(Shdr) section;
        ElfW(Shdr) names;
        if (!file.read(header.e_shoff + uint64_t{i} * sizeof section, &section, sizeof section)) {
            return false;
        }
        if (section.sh_type == SHT_SYMTAB && section.sh_link < header.e_shnum &&
            file.read(
                header.e_shoff + uint64_t{section.sh_link} * sizeof names, &names, sizeof names)) {
            *tables = {section.sh_offset, section.sh_size, names.sh_offset, names.sh_size};
            return true;
        }
    }
    return false;
}

// Finds the offset of each name in the table of names; ~0 = not there.
bool find_names(const File& file,
                const Tables& tables,
                char* buffer,
                const char* part,
                const LocalSymbol* symbols,
                size_t count,
                uint64_t* offsets) {
    const size_t part_bytes = strlen(part);
    // Chunks overlap, so that each name is whole in one of them.
    constexpr size_t kStep = kBufferBytes - 2 * kMostNameBytes;
    for (uint64_t at = 0; at < tables.names_bytes; at += kStep) {
        const uint64_t left = tables.names_bytes - at;
        const size_t bytes = left < kBufferBytes ? left : kBufferBytes;
        if (!file.read(tables.names_at + at, buffer, bytes)) {
            return false;
        }
        const char* const end = buffer + bytes;
        const char* from = buffer;
        while (const void* hit = memmem(from, static_cast<size_t>(end - from), part, part_bytes)) {
            const char* begin = static_cast<const char*>(hit);
            from = begin + part_bytes;
            while (begin > buffer && begin[-1] != '\0') {
                --begin;
            }
            const size_t name_bytes = strnlen(begin, static_cast<size_t>(end - begin));
            for (size_t i = 0; i < count && begin + name_bytes < end; ++i) {
                if (strlen(symbols[i].name) == name_bytes &&
                    memcmp(symbols[i].name, begin, name_bytes) == 0) {
                    offsets[i] = at + static_cast<uint64_t>(begin - buffer);
                }
            }
        }
    }
    return true;
}

bool find_values(const File& file,
                 const Tables& tables,
                 char* buffer,
                 uintptr_t load_address,
                 LocalSymbol* symbols,
                 size_t count,
                 const uint64_t* offsets) {
    constexpr size_t kEach = kBufferBytes / sizeof(ElfW(Sym));
    const uint64_t total = tables.symbols_bytes / sizeof(ElfW(Sym));
    for (uint64_t first = 0; first < total; first += kEach) {
        const size_t here = total - first < kEach ? total - first : kEach;
        if (!file.read(
                tables.symbols_at + first * sizeof(ElfW(Sym)), buffer, here * sizeof(ElfW(Sym)))) {
            return false;
        }
        for (size_t at = 0; at < here; ++at) {
            ElfW(Sym) symbol;
            memcpy(&symbol, buffer + at * sizeof symbol, sizeof symbol);
            for (size_t i = 0; i < count; ++i) {
                if (symbol.st_name == offsets[i] && symbol.st_shndx != SHN_UNDEF) {
                    symbols[i].address = load_address + symbol.st_value;
                    symbols[i].size_bytes = symbol.st_size;
                }
            }
        }
    }
    return true;
}

}  // namespace

const char* find_local_symbols(const link_map* object,
                               const char* part,
                               LocalSymbol* symbols,
                               size_t count) {
    const File file(object->l_name);
    Tables tables;
    if (!file.is_open()) {
        return "its file cannot be opened";
    }
    if (!find_tables(file, &tables)) {
        return "its file has no symbol table";
    }
    auto* buffer = static_cast<char*>(map_private(kBufferBytes));
    if (buffer == nullptr || count > kMostSymbols) {
        return "no memory";
    }
    uint64_t offsets[kMostSymbols];
    memset(offsets, 0xff, sizeof offsets);
    const bool read = find_names(file, tables, buffer, part, symbols, count, offsets) &&
                      find_values(file, tables, buffer, object->l_addr, symbols, count, offsets);
    unmap(buffer, kBufferBytes);
    return read ? nullptr : "its file cannot be read";
}

}  // namespace fragtrace::preload
