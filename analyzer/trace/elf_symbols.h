// Function names and source lines of one ELF file, looked up by address.
//
// The symbol table is read once, on the first look-up. DWARF is read only if the file, or a
// separate debug file on this machine with the same build id, has it. Nothing is downloaded. Not
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
    // Never fails: a file that cannot be read has no symbols. The path comes from a trace and is
    // untrusted, so only absolute paths of regular files are opened. The file must belong to root
    // or this user. Users other than root also open another user's file if only its owner can write
    // it.
    explicit ElfSymbols(const std::string& path);
    ~ElfSymbols();
    ElfSymbols(const ElfSymbols&) = delete;
    ElfSymbols& operator=(const ElfSymbols&) = delete;

    [[nodiscard]] bool readable() const;
    // Why an existing file was not read; empty otherwise.
    [[nodiscard]] const std::string& refusal() const;
    // Hexadecimal; empty if the file has none.
    [[nodiscard]] const std::string& build_id() const;

    // The functions at an address of the file's own address space, inlined ones first. Names are
    // demangled. Empty if no function is known there.
    std::vector<Frame> frames(std::uint64_t address);

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace fragtrace::analyzer
