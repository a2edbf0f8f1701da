// Reads a regular file in pieces, and identifies foreign files.
//
// Files are not mapped into memory. If a file shrinks while it is read, reads are short; no signal
// occurs.
#pragma once

#include "analyzer/support/result.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fragtrace::analyzer {

// An open file. It is movable and closes itself. Its size is the size at the time of opening.
class InputFile {
  public:
    // Errors (kInput): missing, a directory or another special file, no permission.
    static Result<InputFile> open(const std::string& path);

    InputFile(InputFile&& other) noexcept;
    InputFile& operator=(InputFile&& other) noexcept;
    InputFile(const InputFile&) = delete;
    InputFile& operator=(const InputFile&) = delete;
    ~InputFile();

    // From now on no result replaces this file. For files from look_at().
    void count_as_read() const;

    [[nodiscard]] std::uint64_t size() const { return size_; }

    // Bytes that the file takes on the disk. Holes take none.
    [[nodiscard]] std::uint64_t allocated_bytes() const { return allocated_bytes_; }

    [[nodiscard]] std::uint64_t inode() const { return identity_.inode; }

    [[nodiscard]] std::uint32_t owner() const { return owner_; }

    // Whether `path` now names this file directly, not through a symbolic link.
    [[nodiscard]] bool is_at(const std::string& path) const;
    // Opens the same file for appending. Returns -1 if `path` now names another file or the file is
    // not writable. The caller closes the descriptor.
    [[nodiscard]] int open_to_append(const std::string& path) const;
    // Removes the file. Refuses if `path` now names another file, or if other users may rename
    // files in its folder.
    bool remove(const std::string& path) const;

    // Returns the number of bytes read at `offset`. It is less than `size_bytes` at the end of the
    // file or after an error.
    std::size_t read_at(std::uint64_t offset, void* data, std::size_t size_bytes) const;

  private:
    friend Result<InputFile> look_at(const std::string& path);

    struct Identity {
        std::uint64_t device = 0;
        std::uint64_t inode = 0;

        bool operator==(const Identity&) const = default;
    };

    InputFile(int descriptor,
              std::uint64_t size,
              std::uint64_t allocated_bytes,
              Identity identity,
              std::uint32_t owner)
        : descriptor_(descriptor),
          size_(size),
          allocated_bytes_(allocated_bytes),
          identity_(identity),
          owner_(owner) {}

    int descriptor_ = -1;
    std::uint64_t size_ = 0;
    std::uint64_t allocated_bytes_ = 0;
    Identity identity_;
    std::uint32_t owner_ = 0;
};

// Whether the path names a folder. False if that cannot be found out.
bool is_folder(const std::string& path);

// Whether this process opened the file with InputFile::open(), or counted it as read. A result must
// not replace such a file.
bool was_read(std::uint64_t device, std::uint64_t inode);

// Guesses the type of a file that is not a trace from its first bytes; empty if unknown.
std::string foreign_file_hint(std::string_view first_bytes);

}  // namespace fragtrace::analyzer
