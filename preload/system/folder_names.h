// Reads the names in a folder by system calls, because readdir() would allocate from the host's
// heap.
#pragma once

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace fragtrace::preload {

// Calls visit(name) for each name until it returns false. Visits at most about 200,000 names,
// because a folder may contain anything.
template <typename Visit>
void visit_names(const char* directory, Visit visit) {
    constexpr int kReads = 2048;  // about 100 names each
    alignas(8) char names[4096];  // small, because the host's thread may have a small stack
    const int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool goes_on = fd >= 0;
    for (int i = 0; goes_on && i < kReads; ++i) {
        const long size = syscall(SYS_getdents64, fd, names, sizeof names);
        goes_on = size > 0;
        for (long at = 0; goes_on && at < size;) {
            uint16_t entry_bytes = 0;  // struct linux_dirent64: inode, offset, length, type, name
            memcpy(&entry_bytes, names + at + 16, sizeof entry_bytes);
            goes_on = visit(static_cast<const char*>(names + at + 19));
            at += entry_bytes;
        }
    }
    if (fd >= 0) {
        close(fd);
    }
}

}  // namespace fragtrace::preload
