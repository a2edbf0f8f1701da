#include "ring.h"

#include "folder_names.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

namespace fragtrace::preload {
namespace {

constexpr uint64_t round_up(uint64_t value, uint64_t unit) {
    return (value + unit - 1) & ~(unit - 1);
}

constexpr uint64_t kPage_bytes = 4096;

// Storage where a store into a mapping can block on, or fail with, a remote machine, or for want of
// space although every block was allocated: on copy-on-write file systems a store takes a new one.
bool is_unsuitable(const struct statfs& place) {
    switch (static_cast<uint32_t>(place.f_type)) {
        case 0x6969:      // NFS
        case 0x0bd00bd0:  // Lustre
        case 0x47504653:  // GPFS
        case 0xff534d42:  // CIFS
        case 0xfe534d42:  // SMB2
        case 0x00c36400:  // Ceph
        case 0x65735546:  // FUSE: sshfs, cluster file systems
        case 0x01021997:  // 9p
        case 0x19830326:  // BeeGFS
        case 0xaad7aaea:  // PanFS
        case 0x20030528:  // OrangeFS
        case 0x5346414f:  // AFS
        case 0x73757245:  // Coda
        case 0x01161970:  // GFS2
        case 0x7461636f:  // OCFS2
        case 0x2fc12fc1:  // ZFS: copy on write
        case 0x9123683e:  // btrfs: likewise
            return true;
        default:
            return false;
    }
}

// Allocates every block now: a store into a hole of a full disk would raise SIGBUS in the host.
bool allocate_blocks(int fd, uint64_t size_bytes) {
    for (;;) {
        const int error = posix_fallocate(fd, 0, static_cast<off_t>(size_bytes));
        if (error != EINTR) {
            return error == 0;
        }
    }
}

// Rings of ours in a folder: of running processes, and of ended ones whose traces nobody has read.
uint64_t count_rings(const char* directory) {
    uint64_t count = 0;
    visit_names(directory, [&count](const char* name) {
        const size_t length = strlen(name);
        count += strncmp(name, "fragtrace-", 10) == 0 && length > 5 &&
                 strcmp(name + length - 5, ".ring") == 0;
        return true;
    });
    return count;
}

// Killed processes leave their rings until their traces are read. A job that makes many of them
// must not fill the host's memory or disk.
bool too_many_rings(const char* directory, uint64_t ring_bytes, uint64_t place_bytes) {
    constexpr uint64_t kMost_bytes = uint64_t{4} << 30;
    const uint64_t share_bytes = place_bytes / 8;
    return count_rings(directory) * ring_bytes >
           (share_bytes < kMost_bytes ? share_bytes : kMost_bytes);
}

}  // namespace

bool Ring::create_file(const char* directory,
                       const uint64_t session[2],
                       bool memory_backed,
                       bool named) {
    struct statfs place {};

    if (directory[0] == '\0' || statfs(directory, &place) != 0 || is_unsuitable(place)) {
        return false;
    }
    // Containers often have 64 MiB of /dev/shm, and the host wants it too: take a small part only.
    const uint64_t available_bytes = place.f_bavail * static_cast<uint64_t>(place.f_bsize);
    if (memory_backed && available_bytes < size_bytes_ * 4) {
        return false;
    }
    if (too_many_rings(directory, size_bytes_, place.f_blocks * uint64_t(place.f_bsize))) {
        return false;
    }
    Text path(path_, sizeof path_);
    if (directory[0] != '/') {
        char current[kPage_bytes];
        if (getcwd(current, sizeof current) == nullptr) {
            return false;
        }
        path.add(current).add("/");
    }
    path.add(directory).add("/fragtrace-").add_number(getuid()).add("-");
    path.add_number(static_cast<uint64_t>(getpid())).add("-").add_hex(session[0]).add(".ring");
    if (path.full()) {
        return false;
    }
    int fd = named ? -1 : open(directory, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    unnamed_ = fd >= 0;
    if (!unnamed_) {
        fd = open(path_, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    }
    if (fd < 0) {
        return false;
    }
    void* memory = MAP_FAILED;
    if (allocate_blocks(fd, size_bytes_)) {
        memory = mmap(nullptr, size_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (memory == MAP_FAILED) {
        close(fd);
        remove_file();
        return false;
    }
    header = static_cast<RingHeader*>(memory);
    keep_open(fd);
    return true;
}

// For name_file(), away from the numbers that programs use.
void Ring::keep_open(int fd) {
    struct stat file {};

    if (!unnamed_) {
        close(fd);
    } else if (fstat(fd, &file) == 0) {
        fd_ = fd;
        device_ = file.st_dev;
        inode_ = file.st_ino;
        move_out_of_the_way(&fd_);
    }
}

// Unless the host has closed it, and has a file of its own under that number.
bool Ring::is_open() const {
    struct stat file {};

    return fstat(fd_, &file) == 0 && file.st_dev == device_ && file.st_ino == inode_;
}

void Ring::name_file() {
    if (!unnamed_) {
        return;
    }
    char open_file[40];
    Text(open_file, sizeof open_file).add("/proc/self/fd/").add_number(static_cast<uint64_t>(fd_));
    const bool ours = is_open();
    if (!ours || linkat(AT_FDCWD, open_file, AT_FDCWD, path_, AT_SYMLINK_FOLLOW) != 0) {
        path_[0] = '\0';
    }
    if (ours) {
        close(fd_);
    }
    unnamed_ = false;
}

bool Ring::create(const uint64_t session[2],
                  uint32_t slot_count,
                  const char* directory,
                  const char* fallback_directory,
                  bool named) {
    unnamed_ = false;
    size_bytes_ = round_up(sizeof(RingHeader), kPage_bytes) +
                  round_up(uint64_t{slot_count} * sizeof(EventRecord), kPage_bytes) +
                  kNodeCapacity * sizeof(StackNode) + kCodeCapacity_bytes + kFactsCapacity_bytes;
    bool in_file = false;
    if (directory[0] != '\0') {
        in_file = create_file(directory, session, false, named);
    } else {
        const char* temporary = getenv("TMPDIR");
        in_file =
            create_file("/dev/shm", session, true, named) ||
            (temporary != nullptr && create_file(temporary, session, false, named)) ||
            create_file("/tmp", session, false, named) ||
            create_file(
                fallback_directory[0] == '\0' ? "." : fallback_directory, session, false, named);
    }
    if (!in_file) {
        path_[0] = '\0';
        header = static_cast<RingHeader*>(map_private(size_bytes_));
        if (header == nullptr) {
            return false;
        }
    }
    lay_out(session, slot_count);
    return true;
}

void Ring::lay_out(const uint64_t session[2], uint32_t slot_count) {
    header->version = kFormatVersion;
    header->header_bytes = sizeof(RingHeader);
    header->session[0] = session[0];
    header->session[1] = session[1];
    header->slot_count = slot_count;
    header->slot_bytes = sizeof(EventRecord);
    header->slots_offset = round_up(sizeof(RingHeader), kPage_bytes);
    header->nodes_offset =
        header->slots_offset + round_up(uint64_t{slot_count} * sizeof(EventRecord), kPage_bytes);
    header->node_capacity = kNodeCapacity;
    header->code_offset = header->nodes_offset + kNodeCapacity * sizeof(StackNode);
    header->code_capacity_bytes = kCodeCapacity_bytes;
    header->facts_offset = header->code_offset + kCodeCapacity_bytes;
    header->facts_capacity_bytes = kFactsCapacity_bytes;
    header->node_count = 1;  // the root
    header->nodes_written = 1;
    auto* base = reinterpret_cast<uint8_t*>(header);
    slots = reinterpret_cast<EventRecord*>(base + header->slots_offset);
    last_slot = slot_count - 1;
    nodes = reinterpret_cast<StackNode*>(base + header->nodes_offset);
    code = base + header->code_offset;
    facts = reinterpret_cast<char*>(base + header->facts_offset);
    // Last: a ring with its magic is whole.
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memcpy(header->magic, kRingMagic, sizeof header->magic);
}

void Ring::remove_file() {
    if (path_[0] != '\0' && !unnamed_) {
        unlink(path_);
    }
    close_unnamed();
    path_[0] = '\0';
}

void Ring::abandon() {
    unmap(header, size_bytes_);
    header = nullptr;
    close_unnamed();
    path_[0] = '\0';
}

void Ring::close_unnamed() {
    if (unnamed_ && is_open()) {
        close(fd_);
    }
    unnamed_ = false;
}

}  // namespace fragtrace::preload
