// The files of a trace: their names, and how one replaces another.
#include "recorder/trace_file.h"
#include "system/folder_names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fragtrace::preload {
namespace {

constexpr uint32_t kMaxSuffix = 9999;
constexpr char kTemporary[] = ".tmp";
constexpr size_t kLongestEnd = 64;  // of a name, after the process id

// Returns whether a recording in parts has files with this name, or is about to have them. Its
// first parts may be removed already, and in containers process ids are soon reused. Names that
// continue with a number belong to other recordings.
bool leaves_files(const char* base) {
    static char directory[4096];  // static because the stack may be small; only one session starts
                                  // at a time
    const char* slash = strrchr(base, '/');
    Text(directory, sizeof directory).add(base, static_cast<size_t>(slash + 1 - base));
    const char* name = slash + 1;
    const size_t length = strlen(name);
    bool found = false;
    visit_names(directory, [&](const char* other) {
        found = strncmp(other, name, length) == 0 && other[length] == '.' &&
                (other[length + 1] < '0' || other[length + 1] > '9');
        return !found;
    });
    return found;
}

}  // namespace

bool rename_to_new(const char* from, const char* to) {
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) {
        return true;
    }
    if (errno != EINVAL && errno != ENOSYS) {
        return false;
    }
    if (access(to, F_OK) == 0) {  // this file system cannot check and rename in one step
        errno = EEXIST;
        return false;
    }
    return rename(from, to) == 0;
}

bool TraceFile::open_new(const char* directory, const char* name, bool in_parts) {
    Text base(base_, sizeof base_);
    if (directory[0] != '/') {  // the host may change its directory
        base.add(getcwd(path_, sizeof path_) != nullptr ? path_ : ".").add("/");
    }
    if (directory[0] != '\0') {
        base.add(directory).add("/");
    }
    path_[0] = '\0';
    in_parts_ = in_parts;
    const bool unnamed = open_file(base_, O_TMPFILE);
    base.add(name).add(".").add_number(static_cast<uint64_t>(getpid()));
    base_bytes_ = base.size();
    if (base_bytes_ + kLongestEnd > sizeof base_) {
        if (unnamed) {
            close(fd_);
            fd_ = -1;
        }
        errno = ENAMETOOLONG;
        return false;
    }
    return unnamed || take_name(nullptr);
}

// Uses the first free name: for the file `unnamed`, or for a new file if `unnamed` is nullptr.
bool TraceFile::take_name(const char* unnamed) {
    for (uint32_t suffix = 1; suffix <= kMaxSuffix; ++suffix) {
        base_[base_bytes_] = '\0';
        if (suffix > 1) {
            Text end(base_ + base_bytes_, sizeof base_ - base_bytes_);
            end.add(".").add_number(suffix);
        }
        Text whole(path_, sizeof path_);
        name_of("", &whole);
        if (in_parts_) {
            if (leaves_files(base_)) {
                continue;
            }
            whole = Text(path_, sizeof path_);
            name_of("part1", &whole);
        }
        if (unnamed == nullptr
                ? open_path()
                : linkat(AT_FDCWD, unnamed, AT_FDCWD, path_, AT_SYMLINK_FOLLOW) == 0) {
            return true;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    path_[0] = '\0';
    return false;
}

// Gives the file its name once it has a header: a process that is killed earlier leaves nothing.
// Returns false if that is impossible (no /proc, no links).
bool TraceFile::name_file() {
    char unnamed[40];
    Text(unnamed, sizeof unnamed).add("/proc/self/fd/").add_number(static_cast<uint64_t>(fd_));
    if (!take_name(unnamed)) {
        return false;
    }
    // The file is opened again by its name. Otherwise /proc would keep showing a file without a
    // name to anybody who watches the process.
    const int before = fd_;
    fd_ = -1;
    if (is_open()) {
        close(before);
    } else {
        fd_ = before;
    }
    return true;
}

void TraceFile::name_of(const char* what, Text* path) const {
    path->add(base_).add(what[0] == '\0' ? "" : ".").add(what).add(".ftrace");
}

// Creates a new file at path_.
bool TraceFile::open_path() {
    return open_file(path_, O_CREAT | O_EXCL | O_NOFOLLOW);
}

bool TraceFile::open_file(const char* path, int flags) {
    fd_ = open(path, O_WRONLY | O_CLOEXEC | flags, 0600);
    if (fd_ < 0) {
        return false;
    }

    struct stat file {};

    if (fstat(fd_, &file) != 0) {
        const int error = errno;
        close(fd_);
        fd_ = -1;
        if ((flags & O_EXCL) != 0) {
            unlink(path);
        }
        errno = error;
        return false;
    }
    device_ = file.st_dev;
    inode_ = file.st_ino;
    move_out_of_the_way(&fd_);
    return true;
}

bool TraceFile::begin_part(uint32_t part) {
    before_.fd = fd_;
    before_.device = device_;
    before_.inode = inode_;
    before_.end = end_;
    memcpy(before_.path, path_, sizeof path_);
    char what[24];
    Text(what, sizeof what).add("part").add_number(part);
    Text path(path_, sizeof path_);
    name_of(what, &path);
    path.add(kTemporary);
    unlink(path_);  // left by a failed attempt
    end_ = 0;
    entry_count_ = 0;
    has_index_ = false;
    if (path.full()) {
        return refuse(ENAMETOOLONG);
    }
    return open_path() || refuse(errno);
}

bool TraceFile::keep_part() {
    char named[sizeof path_];
    memcpy(named, path_, sizeof path_);
    named[strlen(named) - strlen(kTemporary)] = '\0';
    if (!rename_to_new(path_, named)) {
        last_error_ = errno;
        return false;
    }
    memcpy(path_, named, sizeof path_);
    close_before();
    return true;
}

// Closes the previous part, unless the host closed it and the number belongs to a file of the host.
void TraceFile::close_before() {
    struct stat file {};

    if (before_.fd >= 0 && fstat(before_.fd, &file) == 0 && file.st_dev == before_.device &&
        file.st_ino == before_.inode) {
        close(before_.fd);
    }
}

bool TraceFile::rename_to(const char* path) {
    if (!rename_to_new(path_, path)) {
        last_error_ = errno;
        return false;
    }
    Text(path_, sizeof path_).add(path);
    return true;
}

bool TraceFile::become_part(const TraceHeader& header) {
    char name[sizeof path_];
    Text path(name, sizeof name);
    name_of("part1", &path);
    if (path.full()) {
        return refuse(ENAMETOOLONG);
    }
    if (!is_open() || !rename_to(name)) {
        return false;
    }
    in_parts_ = true;
    return write_at(0, reinterpret_cast<const uint8_t*>(&header), sizeof header);
}

void TraceFile::drop_part() {
    if (fd_ >= 0) {
        close(fd_);
        unlink(path_);
    }
    fd_ = before_.fd;
    device_ = before_.device;
    inode_ = before_.inode;
    end_ = before_.end;
    memcpy(path_, before_.path, sizeof path_);
    // The index entries of this part are no longer in memory, and the next chunk may cut off the
    // index at its end.
    entry_count_ = kMaxEntries;
    has_index_ = true;
}

void TraceFile::adopt(int fd, const char* path, uint64_t end) {
    struct stat file {};

    if (fd_ >= 0 && is_open()) {
        close(fd_);
    }
    fd_ = fd;
    if (fstat(fd, &file) == 0) {
        device_ = file.st_dev;
        inode_ = file.st_ino;
    }
    Text(path_, sizeof path_).add(path);
    end_ = end;
    entry_count_ = kMaxEntries;  // no index: readers scan
    has_index_ = false;
}

}  // namespace fragtrace::preload
