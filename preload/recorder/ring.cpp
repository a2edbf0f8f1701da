#include "recorder/ring.h"

#include <fragtrace/sizes.h>

#include "recorder/file_systems.h"
#include "system/folder_names.h"
#include "system/own_thread.h"

#include <fcntl.h>
#include <initializer_list>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

namespace fragtrace::preload {
namespace {

constexpr uint64_t kPage_bytes = 4096;
constexpr const char* kMemoryDirectory = "/dev/shm";
// An area grows by this step.
constexpr uint64_t kStep_bytes = 256u << 10;
// The first event waits at most this long for a file on other storage than memory.
constexpr uint64_t kPatience_ns = 1500 * kMillisecond_ns;
// The host needs memory too: an allocation for the ring may use at most 1/kPart of the available
// memory.
constexpr uint64_t kPart = 4;

// A store to a hole of a full disk would raise SIGBUS in the host.
bool allocate_blocks(int fd, uint64_t size_bytes) {
    for (;;) {
        const int error = posix_fallocate(fd, 0, static_cast<off_t>(size_bytes));
        if (error != EINTR) {
            return error == 0;
        }
    }
}

// Allocates the blocks under a part of a mapping. Fails if a store would raise SIGBUS, and before
// Linux 5.14.
bool populate(void* memory, uint64_t size_bytes) {
    constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, missing in older headers
    constexpr int kTries = 100;
    int result = -1;
    for (int i = 0; result != 0 && i < kTries; ++i) {
        result = madvise(memory, size_bytes, kPopulateWrite);
        if (result != 0 && errno != EINTR && errno != EAGAIN) {
            break;
        }
    }
    return result == 0;
}

uint64_t available_bytes(const struct statfs& place) {
    return place.f_bavail * static_cast<uint64_t>(place.f_bsize);
}

// Returns the size of this user's rings in a folder: those of running processes, and those of ended
// processes whose traces nobody has read. Rings of other users do not count: they could be made to
// switch off the safety of ours.
uint64_t bytes_of_rings(const char* directory) {
    uint64_t bytes = 0;
    const int folder = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    visit_names(directory, [&bytes, folder](const char* name) {
        struct stat file {};

        const size_t length = strlen(name);
        if (strncmp(name, "fragtrace-", 10) == 0 && length > 5 &&
            strcmp(name + length - 5, ".ring") == 0 &&
            fstatat(folder, name, &file, AT_SYMLINK_NOFOLLOW) == 0 && file.st_uid == getuid()) {
            bytes += static_cast<uint64_t>(file.st_blocks) * 512;
        }
        return true;
    });
    if (folder >= 0) {
        close(folder);
    }
    return bytes;
}

// A killed process leaves its ring until its trace is read. A job with many killed processes must
// not fill the host's memory or disk.
bool too_many_rings(const char* directory, uint64_t place_bytes) {
    constexpr uint64_t kMost_bytes = uint64_t{4} << 30;
    const uint64_t share_bytes = place_bytes / 8;
    return bytes_of_rings(directory) > (share_bytes < kMost_bytes ? share_bytes : kMost_bytes);
}

}  // namespace

bool Ring::create_file(const char* directory,
                       const uint64_t session[2],
                       bool memory_backed,
                       bool named) {
    struct statfs place {};

    if (directory[0] == '\0' || statfs(directory, &place) != 0 || takes_no_ring(place)) {
        return false;
    }
    // In containers, /dev/shm often has only 64 MiB.
    if (memory_backed && available_bytes(place) < node_room.offset * kPart) {
        return false;
    }
    if (too_many_rings(directory, place.f_blocks * uint64_t(place.f_bsize))) {
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
    // Only root can truncate this read-only file. Truncation of the mapping would raise SIGBUS in
    // the host.
    constexpr mode_t kReadOnly = 0400;
    int fd = named ? -1 : open(directory, O_RDWR | O_TMPFILE | O_CLOEXEC, kReadOnly);
    unnamed_ = fd >= 0;
    if (!unnamed_) {
        fd = open(path_, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kReadOnly);
    }
    if (fd < 0) {
        return false;
    }
    void* memory = MAP_FAILED;
    if (ftruncate(fd, static_cast<off_t>(size_bytes_)) == 0) {
        memory = mmap(nullptr, size_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (memory == MAP_FAILED ||
        (header = static_cast<RingHeader*>(memory), !take_blocks(fd, memory_backed))) {
        if (memory != MAP_FAILED) {
            unmap(memory, size_bytes_);
        }
        close(fd);
        remove_file();
        return false;
    }
    keep_open(fd);
    return true;
}

// In memory-backed storage, allocates the first step of each growing area. Otherwise allocates
// everything at once: on other storage an allocating call may wait, and an old kernel cannot
// populate a mapping.
bool Ring::take_blocks(int fd, bool memory_backed) {
    if (memory_backed && allocate_blocks(fd, facts_room.offset) && grow(&facts_room, 1) &&
        grow(&node_room, 1) && grow(&code_room, 1)) {
        return true;
    }

    struct statfs place {};

    const bool fits = fstatfs(fd, &place) == 0 && available_bytes(place) >= size_bytes_ * kPart;
    if (memory_backed && !fits) {
        return false;
    }
    fill_areas();
    return allocate_blocks(fd, size_bytes_);
}

void Ring::fill_areas() {
    for (GrowingArea* area : {&facts_room, &node_room, &code_room}) {
        area->ready_bytes = area->capacity_bytes;
    }
}

bool Ring::grow(GrowingArea* area, uint64_t end_bytes) {
    const KeepErrno keep_errno;
    const uint64_t now = clock_ns(CLOCK_MONOTONIC);
    if (end_bytes > area->capacity_bytes ||
        (load_relaxed(&area->refused_at_ns) != 0 &&
         now - load_relaxed(&area->refused_at_ns) < kSecond_ns)) {
        return false;
    }
    uint64_t ready = load_acquire(&area->ready_bytes);
    while (ready < end_bytes) {
        struct statfs place {};

        const uint64_t left = area->capacity_bytes - ready;
        const uint64_t step = left < kStep_bytes ? left : kStep_bytes;
        if (statfs(kMemoryDirectory, &place) != 0 || available_bytes(place) < step * kPart ||
            !populate(reinterpret_cast<char*>(header) + area->offset + ready, step)) {
            store_relaxed(&area->refused_at_ns, now);
            return false;
        }
        // Another thread may have grown the area already.
        if (__atomic_compare_exchange_n(&area->ready_bytes,
                                        &ready,
                                        ready + step,
                                        false,
                                        __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            ready += step;
        }
    }
    return true;
}

// Keeps the file open for name_file(), under a descriptor number that programs do not use.
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

// False if the host closed the descriptor; its number may then belong to a file of the host.
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

// Files outside memory are made by a thread of their own, because their storage may not answer.
// The thread and its creator share this; the later one of both releases it.
struct Ring::Making {
    enum State : uint32_t { kRuns, kDone, kGivenUp };

    uint32_t state;  // a futex
    bool made;
    bool named;
    uint64_t session[2];
    Ring ring;
    char folders[3][kPage_bytes];  // tried in this order; empty = none
};

void* Ring::make(void* argument) {
    begin_own_thread();
    auto* making = static_cast<Making*>(argument);
    for (const char* folder : making->folders) {
        making->made =
            making->made || making->ring.create_file(folder, making->session, false, making->named);
    }
    uint32_t state = Making::kRuns;
    if (__atomic_compare_exchange_n(
            &making->state, &state, Making::kDone, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        futex_wake_all(&making->state);
        return nullptr;
    }
    if (making->made) {
        making->ring.remove_file();
        unmap(making->ring.header, making->ring.size_bytes_);
    }
    unmap(making, sizeof *making);
    return nullptr;
}

bool Ring::create_in_time(const uint64_t session[2],
                          const char* directory,
                          const char* fallback_directory,
                          bool named) {
    auto* making = static_cast<Making*>(map_private(sizeof(Making)));
    if (making == nullptr) {
        return false;
    }
    const char* temporary = getenv("TMPDIR");
    if (directory[0] != '\0') {
        Text(making->folders[0], kPage_bytes).add(directory);
    } else {
        Text(making->folders[0], kPage_bytes).add(temporary == nullptr ? "" : temporary);
        Text(making->folders[1], kPage_bytes).add("/tmp");
        Text(making->folders[2], kPage_bytes)
            .add(fallback_directory[0] == '\0' ? "." : fallback_directory);
    }
    making->named = named;
    memcpy(making->session, session, sizeof making->session);
    making->ring = *this;
    pthread_t thread{};
    if (start_own_thread(make, making, &thread) != 0) {
        unmap(making, sizeof *making);
        return false;
    }
    const uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + kPatience_ns;
    uint64_t now_ns = 0;
    while (load_acquire(&making->state) == Making::kRuns &&
           (now_ns = clock_ns(CLOCK_MONOTONIC)) < until_ns) {
        futex_wait(&making->state, Making::kRuns, until_ns - now_ns);
    }
    uint32_t state = Making::kRuns;
    if (__atomic_compare_exchange_n(
            &making->state, &state, Making::kGivenUp, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        return false;
    }
    const bool made = making->made;
    if (made) {
        *this = making->ring;
    }
    unmap(making, sizeof *making);
    return made;
}

bool Ring::create(const uint64_t session[2],
                  uint32_t slot_count,
                  const char* directory,
                  const char* fallback_directory,
                  bool named) {
    unnamed_ = false;
    plan_areas(slot_count);
    const bool in_memory =
        directory[0] == '\0' && create_file(kMemoryDirectory, session, true, named);
    if (!in_memory && !create_in_time(session, directory, fallback_directory, named)) {
        path_[0] = '\0';
        header = static_cast<RingHeader*>(map_private(size_bytes_));
        if (header == nullptr) {
            return false;
        }
        fill_areas();
    }
    lay_out(session, slot_count);
    return true;
}

void Ring::plan_areas(uint32_t slot_count) {
    const uint64_t slots_end = round_up(sizeof(RingHeader), kPage_bytes) +
                               round_up(uint64_t{slot_count} * sizeof(EventRecord), kPage_bytes);
    facts_room = {.offset = slots_end,
                  .capacity_bytes = kFactsCapacity_bytes,
                  .ready_bytes = 0,
                  .refused_at_ns = 0};
    node_room = {.offset = slots_end + kFactsCapacity_bytes,
                 .capacity_bytes = kNodeCapacity * sizeof(StackNode),
                 .ready_bytes = 0,
                 .refused_at_ns = 0};
    code_room = {.offset = node_room.offset + node_room.capacity_bytes,
                 .capacity_bytes = kCodeCapacity_bytes,
                 .ready_bytes = 0,
                 .refused_at_ns = 0};
    size_bytes_ = code_room.offset + code_room.capacity_bytes;
}

void Ring::lay_out(const uint64_t session[2], uint32_t slot_count) {
    header->version = kFormatVersion;
    header->header_bytes = sizeof(RingHeader);
    header->session[0] = session[0];
    header->session[1] = session[1];
    header->slot_count = slot_count;
    header->slot_bytes = sizeof(EventRecord);
    header->slots_offset = round_up(sizeof(RingHeader), kPage_bytes);
    header->facts_offset = facts_room.offset;
    header->facts_capacity_bytes = kFactsCapacity_bytes;
    header->nodes_offset = node_room.offset;
    header->node_capacity = kNodeCapacity;
    header->code_offset = code_room.offset;
    header->code_capacity_bytes = kCodeCapacity_bytes;
    header->node_count = 1;  // the root
    header->nodes_written = 1;
    auto* base = reinterpret_cast<uint8_t*>(header);
    slots = reinterpret_cast<EventRecord*>(base + header->slots_offset);
    last_slot = slot_count - 1;
    nodes = reinterpret_cast<StackNode*>(base + header->nodes_offset);
    code = base + header->code_offset;
    facts = reinterpret_cast<char*>(base + header->facts_offset);
    // The magic is written last: a ring with its magic is complete.
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
