// Function names and source lines of one ELF file, looked up by address.
//
// The symbol table is read once, on the first look-up; DWARF only if the file (or a separate debug
// file found by its build id on this machine) has it. Nothing is fetched from anywhere. Not
// thread-safe.
#pragma once

#include "analyzer/model/timeline.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

class ElfSymbols {
  public:
    // Never fails: a file that cannot be read knows no symbols. The path comes from a trace, so
    // that only an absolute one of a regular file is opened, which root or this user owns.
    explicit ElfSymbols(const std::string& path);
    ~ElfSymbols();
    ElfSymbols(const ElfSymbols&) = delete;
    ElfSymbols& operator=(const ElfSymbols&) = delete;

    [[nodiscard]] bool readable() const;
    // Why a file that is there was not read; empty for others.
    [[nodiscard]] const std::string& refusal() const;
    // Hexadecimal; empty when the file has none.
    [[nodiscard]] const std::string& build_id() const;

    // The functions at an address of the file's own address space, inlined ones first; empty when
    // nothing is known. Names are demangled.
    std::vector<Frame> frames(std::uint64_t address);

  private:
    struct State;
    std::unique_ptr<State> state_;
};

// A name whose readable form could grow without end is shown without its template arguments.
std::string demangle(const char* name);

}  // namespace fragtrace::analyzer
