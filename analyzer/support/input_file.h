// Reading a regular file piece by piece, and saying what a foreign file looks like.
//
// Nothing is mapped: a file that shrinks while it is read gives short reads, not a signal.
#pragma once

#include "analyzer/support/result.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fragtrace::analyzer {

// An open file; movable, closes itself. The size is the one at the time of opening.
class InputFile {
  public:
    // Errors (kInput): missing, a directory or another special file, no permission.
    static Result<InputFile> open(const std::string& path);

    InputFile(InputFile&& other) noexcept;
    InputFile& operator=(InputFile&& other) noexcept;
    InputFile(const InputFile&) = delete;
    InputFile& operator=(const InputFile&) = delete;
    ~InputFile();

    [[nodiscard]] std::uint64_t size() const { return size_; }

    [[nodiscard]] std::uint64_t inode() const { return identity_.inode; }

    [[nodiscard]] std::uint32_t owner() const { return owner_; }

    // Is this the file that `path` names now, itself and not by a symbolic link?
    [[nodiscard]] bool is_at(const std::string& path) const;
    // The same file, opened to append to it; -1 where `path` names another one by now or it may
    // not be written. The caller closes it.
    [[nodiscard]] int open_to_append(const std::string& path) const;
    // Removes the file, unless its name stands for another one by now or other users may rename
    // files in its folder.
    bool remove(const std::string& path) const;

    // Bytes read at `offset`: fewer than asked at the end of the file or after an error.
    std::size_t read_at(std::uint64_t offset, void* data, std::size_t size_bytes) const;

  private:
    struct Identity {
        std::uint64_t device = 0;
        std::uint64_t inode = 0;

        bool operator==(const Identity&) const = default;
    };

    InputFile(int descriptor, std::uint64_t size, Identity identity, std::uint32_t owner)
        : descriptor_(descriptor), size_(size), identity_(identity), owner_(owner) {}

    int descriptor_ = -1;
    std::uint64_t size_ = 0;
    Identity identity_;
    std::uint32_t owner_ = 0;
};

// Has this process opened the file with InputFile::open()? Such a file is no place for a result.
bool was_read(std::uint64_t device, std::uint64_t inode);

// What a file that is no trace seems to be, from its first bytes; empty when unknown.
std::string foreign_file_hint(std::string_view first_bytes);

}  // namespace fragtrace::analyzer
