// A segment is a file in /dev/shm. It has a name only until all ranks have opened it, so nothing is
// left when the job ends, however it ends. If a job dies earlier, the next communicator or
// `fragtrace clean` removes the file.
#include "libraries/nccl_segment.h"

#include <fragtrace/sizes.h>

#include "common/shared_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fragtrace::vgpu {

struct SegmentHeader {
    uint64_t magic;
    int32_t ranks;
    int32_t joined;
};

namespace {

size_t members_at() {
    return round_up(sizeof(SegmentHeader), 64);
}

size_t posts_at(int ranks) {
    return members_at() + round_up(sizeof(Member), 64) * size_t(ranks);
}

size_t pairs_at(int ranks) {
    return posts_at(ranks) + sizeof(Post) * kPosts * size_t(ranks);
}

size_t data_at(int ranks) {
    return round_up(pairs_at(ranks) + sizeof(Pair) * size_t(ranks) * size_t(ranks), 4096);
}

size_t data_bytes(int ranks) {  // of one rank
    return kRingBytes * size_t(ranks + 1);
}

char* at(const Segment& segment, size_t offset) {
    return reinterpret_cast<char*>(segment.header) + offset;
}

// State and start time of a process from /proc/PID/stat. Returns false if there is none.
bool read_process(int process, char* state, uint64_t* start) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return false;
    char text[1024];
    const ssize_t got = read(descriptor, text, sizeof text - 1);
    close(descriptor);
    if (got <= 0) return false;
    text[got] = '\0';
    const char* field = strrchr(text, ')');  // the end of the name, which may contain anything
    if (field == nullptr || field[1] == '\0') return false;
    *state = field[2];
    constexpr int kFieldsToStart = 20;  // from field 2 to field 22
    for (int i = 0; i < kFieldsToStart && field != nullptr; ++i) {
        field = strchr(field + 1, ' ');
    }
    if (field == nullptr) return false;
    *start = strtoull(field, nullptr, 10);
    return true;
}

// A process in one number: Linux gives ids below 2^22, and its clock counts 2^40 ticks in
// centuries.
constexpr int kStartBits = 40;
constexpr uint64_t kStartMask = (uint64_t{1} << kStartBits) - 1;

uint64_t number_of(const Process& process) {
    return uint64_t(process.id) << kStartBits | (process.start & kStartMask);
}

Process process_of(uint64_t number) {
    return {int64_t(number >> kStartBits), number & kStartMask};
}

}  // namespace

Process this_process() {
    char state = '\0';
    Process self{getpid(), 0};
    read_process(int(self.id), &state, &self.start);
    return self;
}

bool runs(const Process& process) {
    char state = '\0';
    uint64_t start = 0;
    if (!read_process(int(process.id), &state, &start)) return false;
    return state != 'Z' && state != 'X' && start == process.start;
}

bool new_key(char key[kKeyBytes]) {
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != ssize_t(sizeof bytes)) return false;
    for (size_t i = 0; i < sizeof bytes; ++i) {
        snprintf(key + 2 * i, 3, "%02x", bytes[i]);
    }
    return true;
}

void derive_key(char key[kKeyBytes], const char* from, const void* agreed, size_t bytes) {
    // FNV-1a, twice with different starts
    uint64_t hashes[2] = {0xcbf29ce484222325, 0x9ae16a3b2f90404f};
    for (uint64_t& hash : hashes) {
        for (const char* at = from; *at != '\0'; ++at) {
            hash = (hash ^ static_cast<unsigned char>(*at)) * 0x100000001b3;
        }
        for (size_t i = 0; i < bytes; ++i) {
            hash = (hash ^ static_cast<const unsigned char*>(agreed)[i]) * 0x100000001b3;
        }
    }
    snprintf(key,
             kKeyBytes,
             "%016llx%016llx",
             static_cast<unsigned long long>(hashes[0]),
             static_cast<unsigned long long>(hashes[1]));
}

bool join(Segment* segment, const char* key, int ranks, int rank, char* problem, size_t room) {
    remove_left_over_files();
    char name[64];
    char path[128];
    snprintf(name, sizeof name, "%s%s", kNcclFiles, key);
    snprintf(path, sizeof path, "%s/%s", kSharedFolder, name);
    const size_t header_bytes = data_at(ranks);
    const size_t bytes = header_bytes + data_bytes(ranks) * size_t(ranks);
    const int descriptor = open_shared_file(name, problem, room);
    if (descriptor < 0) return false;
    // Every rank does the same, so nobody waits for the one that creates the file. posix_fallocate
    // reserves memory: a full file system is an error here and no SIGBUS later.
    int error = posix_fallocate(descriptor, 0, off_t(header_bytes));
    if (error == 0 && ftruncate(descriptor, off_t(bytes)) != 0) error = errno;
    if (error != 0) {
        snprintf(problem,
                 room,
                 "%s: %s; a communicator of %d ranks needs %zu bytes there",
                 path,
                 strerror(error),
                 ranks,
                 header_bytes);
        close(descriptor);
        return false;
    }
    void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (mapped == MAP_FAILED) {
        snprintf(problem, room, "%s cannot be mapped: %s", path, strerror(errno));
        close(descriptor);
        return false;
    }
    madvise(mapped, bytes, MADV_DONTDUMP);  // a core file would have all of the rings
    *segment = {static_cast<SegmentHeader*>(mapped), bytes, descriptor};
    SegmentHeader* header = segment->header;
    int32_t nobody = 0;
    const bool same =
        __atomic_compare_exchange_n(
            &header->ranks, &nobody, ranks, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
        nobody == ranks;
    uint64_t absent = 0;
    const uint64_t self = number_of(this_process());
    if (!same || !__atomic_compare_exchange_n(&member(*segment, rank).process,
                                              &absent,
                                              self,
                                              false,
                                              __ATOMIC_ACQ_REL,
                                              __ATOMIC_ACQUIRE)) {
        snprintf(problem,
                 room,
                 "rank %d of %d: %s",
                 rank,
                 ranks,
                 same ? "this rank exists already" : "another rank gives another number of ranks");
        munmap(mapped, bytes);
        close(descriptor);
        return false;
    }
    __atomic_store_n(&header->magic, kNcclMagic, __ATOMIC_RELEASE);
    if (__atomic_add_fetch(&header->joined, 1, __ATOMIC_ACQ_REL) == ranks) unlink(path);
    return true;
}

bool everyone_joined(const Segment& segment) {
    const SegmentHeader* header = segment.header;
    return __atomic_load_n(&header->joined, __ATOMIC_ACQUIRE) == header->ranks;
}

void leave(Segment* segment, int rank) {
    store(member(*segment, rank).gone, 1);
    munmap(static_cast<void*>(segment->header), segment->bytes);
    close(segment->descriptor);
    *segment = {nullptr, 0, -1};
}

Member& member(const Segment& segment, int rank) {
    return *reinterpret_cast<Member*>(
        at(segment, members_at() + round_up(sizeof(Member), 64) * size_t(rank)));
}

Post& post_of(const Segment& segment, int rank, uint64_t number) {
    auto* posts = reinterpret_cast<Post*>(at(segment, posts_at(segment.header->ranks)));
    return posts[size_t(rank) * kPosts + number % kPosts];
}

Pair& pair_of(const Segment& segment, int from, int to) {
    const int ranks = segment.header->ranks;
    auto* pairs = reinterpret_cast<Pair*>(at(segment, pairs_at(ranks)));
    return pairs[size_t(from) * size_t(ranks) + size_t(to)];
}

unsigned char* data_of(const Segment& segment, int rank) {
    const int ranks = segment.header->ranks;
    return reinterpret_cast<unsigned char*>(
        at(segment, data_at(ranks) + data_bytes(ranks) * size_t(rank)));
}

bool back_data(const Segment& segment, int rank, uint64_t start, uint64_t bytes, uint64_t* backed) {
    constexpr uint64_t kStep = 64 * kKiB;
    if (bytes <= *backed) return true;
    const uint64_t wanted = round_up(bytes, kStep);
    const int ranks = segment.header->ranks;
    const size_t offset = data_at(ranks) + data_bytes(ranks) * size_t(rank) + start;
    if (posix_fallocate(segment.descriptor, off_t(offset), off_t(wanted)) != 0) return false;
    *backed = wanted;
    return true;
}

bool is_marked_gone(const Segment& segment, int rank) {
    return load(member(segment, rank).gone) != 0;
}

bool is_gone(const Segment& segment, int rank) {
    if (is_marked_gone(segment, rank)) return true;
    const Process process = process_of(load(member(segment, rank).process));
    if (process.id == 0 || process.id == getpid() || runs(process)) return false;
    store(member(segment, rank).gone, 1);
    return true;
}

}  // namespace fragtrace::vgpu
