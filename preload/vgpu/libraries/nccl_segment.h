// The shared memory of one communicator. All its ranks map it, in one process or in several on this
// machine. Each part has one writer: a rank writes its member, its posts, its half of a pair and
// its data. Readers see a post when they see the counter that was raised after it. The file has
// room for the contents of all pairs of ranks, but takes memory only for what was sent.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fragtrace::vgpu {

constexpr int kMostRanks = 128;
constexpr uint64_t kPosts = 256;    // collectives that a rank can be ahead of its slowest peer
constexpr uint64_t kMessages = 32;  // messages to one peer that it has not asked for yet
// Of contents that one rank sends to one peer, or in collectives, and that are not read yet.
constexpr size_t kRingBytes = size_t{4} << 20;

// What a rank contributes to a collective, or sends in a message.
struct Post {
    uint64_t bytes;       // of one rank's part
    uint64_t data;        // offset of the contents in the sender's data
    uint32_t data_bytes;  // 0: unknown contents, which count as zeros
    int32_t complete;     // all contents are known
    int32_t kind;
    int32_t root;
    int32_t operation;
    int32_t type;
};

// Of a rank. Plain numbers, because they are read and written atomically. One number tells that the
// rank is there and whose it is. So a process that ends while it joins is seen as gone.
struct Member {
    uint64_t process;  // its id and start time; 0: has not joined
    uint64_t gone;
    uint64_t posted;    // collectives that this rank has posted...
    uint64_t consumed;  // ...and completed
};

// Messages from one rank to another.
struct Pair {
    uint64_t sent;      // by the sender
    uint64_t expected;  // receives that the receiver has issued...
    uint64_t received;  // ...and completed
    Post messages[kMessages];
};

struct SegmentHeader;

// One rank's view of a segment.
struct Segment {
    SegmentHeader* header;
    size_t bytes;
    int descriptor;
};

// The name of a segment: 32 hexadecimal digits and a zero.
constexpr int kKeyBytes = 33;
bool new_key(char key[kKeyBytes]);
// The key that all ranks derive alike from a communicator's key and what they agreed on.
void derive_key(char key[kKeyBytes], const char* from, const void* agreed, size_t bytes);

// A process and its start time, which tells it from a later process with the same id.
struct Process {
    int64_t id;
    uint64_t start;
};

Process this_process();
bool runs(const Process& process);  // false for one that ended but was not waited for yet

// Creates or opens the segment and registers the rank. `problem` gets one line if it fails.
bool join(Segment* segment, const char* key, int ranks, int rank, char* problem, size_t room);
bool everyone_joined(const Segment& segment);
void leave(Segment* segment, int rank);

inline uint64_t load(const uint64_t& counter) {
    return __atomic_load_n(&counter, __ATOMIC_ACQUIRE);
}

inline void store(uint64_t& counter, uint64_t value) {
    __atomic_store_n(&counter, value, __ATOMIC_RELEASE);
}

Member& member(const Segment& segment, int rank);
Post& post_of(const Segment& segment, int rank, uint64_t number);
Pair& pair_of(const Segment& segment, int from, int to);
// A rank's data: a ring of kRingBytes for each peer, and one for collectives.
unsigned char* data_of(const Segment& segment, int rank);
// Reserves memory for `bytes` of the rank's data from `start` on. `backed` is what earlier calls
// reserved there. Returns false if the file system has no room.
bool back_data(const Segment& segment, int rank, uint64_t start, uint64_t bytes, uint64_t* backed);

bool is_marked_gone(const Segment& segment, int rank);
// True for a rank that left, and for one whose process ended, which this marks then.
bool is_gone(const Segment& segment, int rank);

}  // namespace fragtrace::vgpu
