// Symbols that an object does not export: of this program, of made-up files whose names lie at the
// borders of what is read at once, and of files that are no objects.
#include "system/local_symbols.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

using namespace fragtrace::preload;

namespace {

// Not inlined and not exported.
__attribute__((noinline)) int searched_function(int value) {
    return value + 1;
}

class TemporaryFile {
  public:
    explicit TemporaryFile(const std::string& content) {
        const int fd = mkstemp(path_.data());
        REQUIRE(fd >= 0);
        close(fd);
        std::ofstream(path_, std::ios::binary) << content;
        object_.l_name = path_.data();
        object_.l_addr = 0x1000;
    }

    ~TemporaryFile() { unlink(path_.c_str()); }

    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;

    const link_map* object() const { return &object_; }

  private:
    std::string path_ = "/tmp/fragtrace-symbols-XXXXXX";
    link_map object_{};
};

struct MadeSymbol {
    std::string name;
    std::size_t offset;  // in the table of names
    std::uint64_t value;
};

template <typename Part>
void append(std::string* file, const Part& part) {
    file->append(reinterpret_cast<const char*>(&part), sizeof part);
}

// An object with a table of names of this size, and some symbols.
std::string object_file(std::size_t names_bytes, const std::vector<MadeSymbol>& symbols) {
    std::string names(names_bytes, '\0');
    std::string table;
    for (const MadeSymbol& symbol : symbols) {
        names.replace(symbol.offset, symbol.name.size(), symbol.name);
        ElfW(Sym) entry{};
        entry.st_name = static_cast<std::uint32_t>(symbol.offset);
        entry.st_shndx = 1;
        entry.st_value = symbol.value;
        entry.st_size = 16;
        append(&table, entry);
    }
    ElfW(Ehdr) header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_shoff = sizeof header;
    header.e_shentsize = sizeof(ElfW(Shdr));
    header.e_shnum = 2;
    ElfW(Shdr) sections[2] = {};
    sections[0].sh_type = SHT_STRTAB;
    sections[0].sh_offset = sizeof header + sizeof sections;
    sections[0].sh_size = names.size();
    sections[1].sh_type = SHT_SYMTAB;
    sections[1].sh_offset = sections[0].sh_offset + names.size();
    sections[1].sh_size = table.size();
    sections[1].sh_link = 0;
    std::string file;
    append(&file, header);
    append(&file, sections);
    return file + names + table;
}

}  // namespace

TEST_CASE("symbols that a program does not export are found in its file") {
    Dl_info info{};
    REQUIRE(searched_function(1) == 2);
    REQUIRE(dladdr(reinterpret_cast<void*>(searched_function), &info) != 0);
    std::string path = "/proc/self/exe";
    link_map self{};
    self.l_name = path.data();
    self.l_addr = reinterpret_cast<ElfW(Addr)>(info.dli_fbase);
    LocalSymbol symbols[] = {{"_ZN12_GLOBAL__N_117searched_functionEi", 0, 0},
                             {"_ZN12_GLOBAL__N_117searched_functionEl", 0, 0}};
    CHECK(find_local_symbols(&self, "searched_function", symbols, 2) == nullptr);
    CHECK(symbols[0].address == reinterpret_cast<std::uintptr_t>(searched_function));
    CHECK(symbols[0].size_bytes > 0);
    CHECK(symbols[1].address == 0);
}

TEST_CASE("names at the borders of what is read at once are found") {
    constexpr std::size_t kBuffer = std::size_t{1} << 20;
    for (const std::size_t border : {kBuffer, kBuffer - 1024, 2 * (kBuffer - 1024)}) {
        for (std::size_t before = 0; before < 40; ++before) {
            const std::string name = "_ZN5PoolX8allocateEm";
            const TemporaryFile file(object_file(
                3 * kBuffer, {{name, border - before, 0x40}, {"_ZN5PoolX4freeEv", 1, 0x80}}));
            LocalSymbol symbols[] = {{name.c_str(), 0, 0}, {"_ZN5PoolX4freeEv", 0, 0}};
            REQUIRE(find_local_symbols(file.object(), "5PoolX", symbols, 2) == nullptr);
            REQUIRE(symbols[0].address == 0x1040);
            REQUIRE(symbols[1].address == 0x1080);
        }
    }
}

TEST_CASE("files that are no objects, or cut off, have no symbols and a reason") {
    LocalSymbol symbols[] = {{"_ZN5PoolX4freeEv", 0, 0}};
    const std::string whole = object_file(4096, {{"_ZN5PoolX4freeEv", 1, 0x80}});
    for (const std::size_t size : {std::size_t{0},
                                   std::size_t{10},
                                   std::size_t{100},
                                   whole.size() - 4000,
                                   whole.size() - 1}) {
        const TemporaryFile cut(whole.substr(0, size));
        CHECK(find_local_symbols(cut.object(), "5PoolX", symbols, 1) != nullptr);
        CHECK(symbols[0].address == 0);
    }
    const TemporaryFile text(std::string(100000, 'x'));
    CHECK(find_local_symbols(text.object(), "5PoolX", symbols, 1) != nullptr);
    link_map gone{};
    std::string path = "/nonexistent";
    gone.l_name = path.data();
    CHECK(std::string(find_local_symbols(&gone, "5PoolX", symbols, 1)) ==
          "its file cannot be opened");
}
