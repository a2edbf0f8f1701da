#include "common/shared_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fragtrace::vgpu {
namespace {

constexpr int kMostTries = 100;

struct flock lock_of(int64_t byte, short type) {
    struct flock lock = {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = byte < 0 ? 0 : byte;
    lock.l_len = byte < 0 ? 0 : 1;  // 0: to the end of the file
    return lock;
}

bool is_of_this_user(const struct stat& file) {
    return S_ISREG(file.st_mode) && file.st_uid == geteuid();
}

bool has_magic(int descriptor) {
    uint64_t magic = 0;
    const ssize_t got = pread(descriptor, &magic, sizeof magic, 0);
    return got == 0 || (got == ssize_t(sizeof magic) &&
                        (magic == 0 || magic == kNcclMagic || magic == kCardsMagic));
}

}  // namespace

bool lock_byte(int descriptor, int64_t byte, short type, bool wait) {
    for (;;) {
        struct flock lock = lock_of(byte, type);
        if (fcntl(descriptor, wait ? F_OFD_SETLKW : F_OFD_SETLK, &lock) == 0) return true;
        if (errno != EINTR) return false;
    }
}

bool is_locked(int descriptor, int64_t byte) {
    struct flock lock = lock_of(byte, F_WRLCK);
    return fcntl(descriptor, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

int open_shared_file(const char* name, char* problem, size_t room) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", kSharedFolder, name);
    struct stat file = {};
    int error = EAGAIN;
    for (int i = 0; i < kMostTries; ++i) {
        const int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (descriptor < 0) {
            error = errno;
            break;
        }
        // On a system without such locks, nobody removes the file either.
        (void)lock_byte(descriptor, 0, F_RDLCK, true);
        if (fstat(descriptor, &file) == 0 && file.st_nlink != 0 && is_of_this_user(file)) {
            return descriptor;
        }
        // Somebody removed the file between its opening and the lock, or it is a stranger's.
        error = is_of_this_user(file) ? EAGAIN : EACCES;
        close(descriptor);
        if (error == EACCES) break;
    }
    snprintf(problem, room, "%s: %s", path, strerror(error));
    return -1;
}

bool is_shared_file(const char* name) {
    return strncmp(name, kNcclFiles, strlen(kNcclFiles)) == 0 ||
           strncmp(name, kCardsFiles, strlen(kCardsFiles)) == 0;
}

bool is_left_over(int folder, const char* name, bool remove) {
    struct stat file = {};
    if (!is_shared_file(name) || fstatat(folder, name, &file, AT_SYMLINK_NOFOLLOW) != 0 ||
        !is_of_this_user(file)) {
        return false;
    }
    const int descriptor = openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0) return false;
    bool left_over = has_magic(descriptor) && !is_locked(descriptor, -1);
    // While this process has the first byte for itself, nobody else opens or removes the file.
    if (left_over && remove) {
        left_over = lock_byte(descriptor, 0, F_WRLCK, false) && !is_locked(descriptor, -1) &&
                    fstat(descriptor, &file) == 0 && file.st_nlink != 0 &&
                    unlinkat(folder, name, 0) == 0;
    }
    close(descriptor);
    return left_over;
}

void remove_left_over_files() {
    DIR* folder = opendir(kSharedFolder);
    if (folder == nullptr) return;
    while (const dirent* entry = readdir(folder)) {
        (void)is_left_over(dirfd(folder), entry->d_name, true);
    }
    closedir(folder);
}

}  // namespace fragtrace::vgpu
