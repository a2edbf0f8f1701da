// Communicators of NCCL's stand-in: their ranks, and the work that waits for peers.
//
// A collective or send posts what this rank contributes and returns. The stream's work ends when
// all peers have posted theirs; the driver asks for that whenever the program queries or waits for
// a stream or an event. A rank that is far ahead of a peer has no room for the post. The work then
// posts later, and other works overtake it if they go to other peers. So a group ends, whatever it
// consists of. No call waits for a peer, except to form or end a communicator, or if a work of an
// earlier call or group has not posted yet. One lock guards everything here.
#pragma once

#include "libraries/nccl_segment.h"

#include <cstddef>
#include <cstdint>

namespace fragtrace::vgpu {

// ncclResult_t
constexpr int kSuccess = 0;
constexpr int kUnhandledCudaError = 1;
constexpr int kSystemError = 2;
constexpr int kInvalidArgument = 4;
constexpr int kInvalidUsage = 5;
constexpr int kRemoteError = 6;

enum class CallKind : int {
    kAllReduce,
    kReduce,
    kReduceScatter,
    kBroadcast,
    kAllGather,
    kAlltoAll,
    kGather,
    kScatter,
    kSend,
    kReceive,
    kSplit,  // colours and keys; no work of a stream
};

struct Call {
    CallKind kind;
    const void* from;
    void* to;
    size_t count;  // of one rank's part
    int type;
    int operation;
    int root;  // or the peer
    void* stream;
};

struct Work;
struct Sent;
struct Buffer;

// Contents for one peer, or of collectives, in this rank's data.
struct Ring {
    Sent* oldest;  // not read yet
    uint64_t end;  // where the next contents go
    uint64_t backed;
};

struct Communicator {
    int ranks;
    int rank;
    int device;
    bool aborted;
    int error;  // the first asynchronous error, or kSuccess
    char problem[256];
    char key[kKeyBytes];
    Segment segment;
    unsigned shrinks;                     // communicators made by ncclCommShrink
    Work* first;                          // pending, in the order of their calls
    Work* last;                           //
    unsigned unposted;                    // works among them that had no room to post yet
    Ring rings[kMostRanks + 1];           // for each peer, then for collectives
    uint64_t checked_ns;                  // when the peers' processes were last looked at
    Buffer* buffers;                      // device memory that NCCL would take (nccl_buffers.h)
    unsigned char connected[kMostRanks];  // connections to each rank that have buffers
    Communicator* next;
};

// The lock.
class CommunicatorLock {
  public:
    CommunicatorLock();
    ~CommunicatorLock();
    CommunicatorLock(const CommunicatorLock&) = delete;
    CommunicatorLock& operator=(const CommunicatorLock&) = delete;
};

// Waits until `ready` returns true. The lock is released meanwhile, and all works make progress.
// Returns false after `limit_s` seconds; 0: no limit.
bool wait_unlocked(bool (*ready)(void*), void* data, unsigned limit_s);

// The rest is called with the lock held.
Communicator* new_communicator(const char* key, int ranks, int rank, int* error);
void delete_communicator(Communicator* communicator);
bool is_communicator(const Communicator* communicator);
int fail(Communicator* communicator, int error, const char* problem);

bool is_here(const Communicator& on, int rank);  // false: it has ended or left

// The next three are called without the lock held.
Work* new_work(Communicator* on, const Call& call);  // null: no memory
// Issues the calls of a group, which all make progress together. Frees the works in the end.
int issue(Work* first);
void free_works(Work* first);

// Appends to the calls of a group.
void append(Work** first, Work** last, Work* work);

// Waits until all works have ended, or the communicator is gone. Returns false after the limit.
bool wait_until_ended(Communicator* communicator, unsigned limit_s);

// All ranks of a communicator exchange a colour and a key, to split it. The agreement is a
// collective without work on a stream. Waits while this rank is too far ahead of its peers, with
// the lock released. Gives the agreement's number.
int post_agreement(Communicator* communicator, int colour, int key, uint64_t* number);
// False also if a rank is gone, which is then the communicator's error.
bool all_posted(Communicator* communicator, uint64_t number);
void consumed_agreement(Communicator* communicator, uint64_t number);

bool a_member_is_gone(Communicator* communicator);

// The value by which ncclRedOpCreatePreMulSum multiplies, or null; without the lock.
const unsigned char* factor_of(int operation);

void progress_all();

}  // namespace fragtrace::vgpu
