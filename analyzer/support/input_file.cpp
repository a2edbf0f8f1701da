#include "analyzer/support/input_file.h"

#include <fragtrace/format.h>

#include "analyzer/support/in_program.h"
#include "analyzer/support/look_at.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <mutex>
#include <set>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kBlockBytes = 512;  // of st_blocks

Error cannot_open(const std::string& path, int code) {
    if (code == ENOENT || code == ENOTDIR) {
        return {ErrorCode::kInput, fmt::format("{}: no such file. Check the path.", path)};
    }
    return {ErrorCode::kInput,
            fmt::format("{}: cannot be read: {}. Check its permissions.",
                        path,
                        std::generic_category().message(code))};
}

Error special_file(const std::string& path, const struct stat& status) {
    return {ErrorCode::kInput,
            S_ISDIR(status.st_mode)
                ? fmt::format("{}: is a folder. Name a file in it.", path)
                : fmt::format("{}: is not a regular file. Name one that is.", path)};
}

// The files that this process opened, so that no result replaces them. Thread-safe.
class FilesRead {
  public:
    void add(std::uint64_t device, std::uint64_t inode) {
        const std::lock_guard lock(mutex_);
        files_.emplace(device, inode);
    }

    bool contains(std::uint64_t device, std::uint64_t inode) {
        const std::lock_guard lock(mutex_);
        return files_.contains({device, inode});
    }

    void clear() {
        const std::lock_guard lock(mutex_);
        files_.clear();
    }

  private:
    std::mutex mutex_;
    std::set<std::pair<std::uint64_t, std::uint64_t>> files_;
};

FilesRead& files_read() {
    static FilesRead files;
    return files;
}

// In a sticky folder, such as /dev/shm, users can rename and remove only their own files.
bool only_we_rename_in(const struct stat& folder) {
    const bool ours = folder.st_uid == geteuid() || folder.st_uid == 0;
    return ours && ((folder.st_mode & (S_IWGRP | S_IWOTH)) == 0 || (folder.st_mode & S_ISVTX) != 0);
}

}  // namespace

Result<InputFile> look_at(const std::string& path) {
    struct stat status = {};
    // Opening a device can already do something, and traces name files.
    if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
        return special_file(path, status);
    }
    // O_NONBLOCK prevents a FIFO without a writer from blocking the tool.
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
        return cannot_open(path, errno);
    }
    if (fstat(descriptor, &status) != 0) {
        const int code = errno;
        ::close(descriptor);
        return cannot_open(path, code);
    }
    InputFile file(descriptor,
                   static_cast<std::uint64_t>(status.st_size),
                   static_cast<std::uint64_t>(status.st_blocks) * kBlockBytes,
                   {status.st_dev, status.st_ino},
                   status.st_uid);
    if (!S_ISREG(status.st_mode)) {
        return special_file(path, status);
    }
    return file;
}

Result<InputFile> InputFile::open(const std::string& path) {
    Result<InputFile> file = look_at(path);
    if (file.ok()) {
        file->count_as_read();
    }
    return file;
}

void InputFile::count_as_read() const {
    files_read().add(identity_.device, identity_.inode);
}

void forget_files_read() {
    files_read().clear();
}

bool is_folder(const std::string& path) {
    struct stat status = {};
    return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool was_read(std::uint64_t device, std::uint64_t inode) {
    return files_read().contains(device, inode);
}

InputFile::InputFile(InputFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      allocated_bytes_(other.allocated_bytes_),
      identity_(other.identity_),
      owner_(other.owner_) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(size_, other.size_);
    std::swap(allocated_bytes_, other.allocated_bytes_);
    std::swap(identity_, other.identity_);
    std::swap(owner_, other.owner_);
    return *this;
}

InputFile::~InputFile() {
    if (descriptor_ >= 0) {
        ::close(descriptor_);
    }
}

bool InputFile::is_at(const std::string& path) const {
    struct stat status = {};
    return lstat(path.c_str(), &status) == 0 && identity_ == Identity{status.st_dev, status.st_ino};
}

int InputFile::open_to_append(const std::string& path) const {
    const int descriptor =
        ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat status = {};
    if (descriptor >= 0 &&
        (fstat(descriptor, &status) != 0 || identity_ != Identity{status.st_dev, status.st_ino})) {
        ::close(descriptor);
        return -1;
    }
    return descriptor;
}

bool InputFile::remove(const std::string& path) const {
    const std::size_t slash = path.rfind('/');
    const std::string name = path.substr(slash + 1);  // npos + 1 is 0
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    const int held = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat about_folder = {};
    struct stat status = {};
    bool removed = false;
    if (held >= 0 && fstat(held, &about_folder) == 0 && only_we_rename_in(about_folder) &&
        fstatat(held, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        identity_ == Identity{status.st_dev, status.st_ino}) {
        removed = unlinkat(held, name.c_str(), 0) == 0;
    }
    if (held >= 0) {
        ::close(held);
    }
    return removed;
}

std::size_t InputFile::read_at(std::uint64_t offset, void* data, std::size_t size_bytes) const {
    std::size_t done = 0;
    while (done < size_bytes) {
        const ssize_t count = pread(descriptor_,
                                    static_cast<char*>(data) + done,
                                    size_bytes - done,
                                    static_cast<off_t>(offset + done));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            break;
        }
        done += static_cast<std::size_t>(count);
    }
    return done;
}

std::string foreign_file_hint(std::string_view first_bytes) {
    const auto begins = [first_bytes](std::string_view magic) {
        return first_bytes.substr(0, magic.size()) == magic;
    };
    if (begins({kRingMagic, sizeof kRingMagic})) {
        return "the ring of a trace; name the .ftrace file that belongs to it instead";
    }
    if (begins("FTRACE")) {
        return "a trace that was altered in transfer (line ends converted); copy it in binary mode";
    }
    if (first_bytes.size() >= 2 && first_bytes[0] == '\x80' && first_bytes[1] >= 2 &&
        first_bytes[1] <= 5) {
        return "a Python pickle; PyTorch's memory snapshots are read one at a time, by "
               "`fraganalyze FILE`, `fraganalyze replay FILE` and `fraganalyze whatif FILE`";
    }
    if (begins("\x1f\x8b")) {
        return "gzip data; decompress it first";
    }
    if (begins("\x28\xb5\x2f\xfd")) {
        return "zstd data; decompress it first";
    }
    if (begins("PK\x03\x04")) {
        return "a zip archive";
    }
    if (begins("\x7f"
               "ELF")) {
        return "a program or shared library";
    }
    if (begins("SQLite format 3")) {
        return "an SQLite database";
    }
    const std::size_t text = first_bytes.find_first_not_of(" \t\r\n");
    if (text != std::string_view::npos && (first_bytes[text] == '{' || first_bytes[text] == '[')) {
        return "JSON";
    }
    if (text != std::string_view::npos && first_bytes[text] == '<') {
        return "HTML or XML";
    }
    return {};
}

}  // namespace fragtrace::analyzer
