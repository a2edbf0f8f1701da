// NCCL: the functions that programs call. Communicators find their ranks in shared memory
// (nccl_segment.h). Collectives wait for their peers and carry contents of up to 1 MiB
// (nccl_communicator.h). The file follows NCCL's documentation and does not include its header.
#include "common/config.h"
#include "common/stub.h"
#include "libraries/kernel_launch.h"
#include "libraries/nccl_buffers.h"
#include "libraries/nccl_communicator.h"
#include "libraries/nccl_values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

using namespace fragtrace::vgpu;

namespace {

constexpr int kVersion = 23000;
constexpr int kNoColour = -1;

// Passed by value with its real size of 128 bytes, so that the arguments after it are found.
struct UniqueId {
    char magic[16];
    char key[48];
    Process maker;  // real ids need it, too: its process serves the first connections
    char unused[48];
};

static_assert(sizeof(UniqueId) == 128);

constexpr char kIdMagic[16] = "fragtrace-nccl1";

bool is_valid(const UniqueId& id) {
    return memcmp(id.magic, kIdMagic, sizeof kIdMagic) == 0 &&
           strnlen(id.key, sizeof id.key) == kKeyBytes - 1;
}

int put(int* out, int value) {
    if (out == nullptr) return kInvalidArgument;
    *out = value;
    return kSuccess;
}

// A communicator that waits for its ranks: ncclCommInitRank*, ncclCommSplit and ncclCommShrink. In
// a group, ncclGroupEnd waits for all of them together.
struct Forming {
    Communicator** out;
    Communicator* made;    // null: the split is not agreed on yet
    Communicator* parent;  // only splits
    uint64_t agreement;
    int colour;
    Process maker;  // of the unique id; 0 without one
    Forming* next;
};

struct Group {
    int depth;
    Forming* forming;
    Work* first;  // calls of the group
    Work* last;
    int error;  // the first one of a call
};

__thread Group t_group;

// Joins the ranks of this rank's colour, in the order of their keys and ranks.
int agree(Forming* forming) {
    struct Agreed {
        uint64_t agreement;
        int64_t colour;
    } agreed{forming->agreement, forming->colour};

    Communicator* parent = forming->parent;
    const int my_key = post_of(parent->segment, parent->rank, forming->agreement).root;
    int ranks = 0;
    int rank = 0;
    for (int other = 0; other < parent->ranks; ++other) {
        const Post& post = post_of(parent->segment, other, forming->agreement);
        if (post.kind != int(Kind::kSplit)) {
            return fail(parent, kInvalidUsage, "a rank called a collective instead of CommSplit");
        }
        if (post.operation != forming->colour) continue;
        ++ranks;
        if (post.root < my_key || (post.root == my_key && other < parent->rank)) ++rank;
    }
    consumed_agreement(parent, forming->agreement);
    if (forming->colour == kNoColour) return kSuccess;
    char key[kKeyBytes];
    derive_key(key, parent->key, &agreed, sizeof agreed);
    int error = kSuccess;
    forming->made = new_communicator(key, ranks, rank, &error);
    return error;
}

struct FormingAll {
    Forming* first;
    int error;
};

// Takes a split one step further. Returns false until all ranks have named their colours.
bool agreed(Forming* forming, int* error) {
    const Communicator* parent = forming->parent;
    if (!is_communicator(parent)) {
        *error = kInvalidUsage;
        return false;
    }
    if (!all_posted(forming->parent, forming->agreement)) {
        if (parent->error != kSuccess) *error = parent->error;
        if (*error == kSuccess && parent->aborted) *error = kInvalidUsage;
        return false;
    }
    *error = agree(forming);
    forming->parent = nullptr;
    return *error == kSuccess;
}

// Returns false until all ranks have joined.
bool joined(const Forming& forming, int* error) {
    if (forming.made == nullptr || everyone_joined(forming.made->segment)) return true;
    const bool stale = forming.maker.id != 0 && !runs(forming.maker);
    if (!stale && !a_member_is_gone(forming.made)) return false;
    // The last rank may have joined meanwhile.
    if (everyone_joined(forming.made->segment)) return true;
    *error = kRemoteError;
    return false;
}

// Takes each communicator one step further. True when all are complete, or one has failed.
bool formed(void* data) {
    auto* all = static_cast<FormingAll*>(data);
    bool complete = true;
    for (Forming* at = all->first; at != nullptr && all->error == kSuccess; at = at->next) {
        const bool ready = at->parent == nullptr || agreed(at, &all->error);
        if (!ready || !joined(*at, &all->error)) complete = false;
    }
    return complete || all->error != kSuccess;
}

int form_all(Forming* first) {
    FormingAll all{first, kSuccess};
    {
        const CommunicatorLock lock;
        if (!wait_unlocked(formed, &all, nccl_limit_s())) {
            fprintf(stderr,
                    "fragtrace: virtual NCCL: not all ranks of a communicator came within %u s\n",
                    nccl_limit_s());
            all.error = kSystemError;
        }
    }
    while (first != nullptr) {
        Forming* forming = first;
        first = forming->next;
        Communicator* made = forming->made;
        if (all.error == kSuccess && made != nullptr && !allocate_first_buffers(made)) {
            all.error = kUnhandledCudaError;
        }
        *forming->out = all.error == kSuccess ? made : nullptr;
        if (all.error != kSuccess && made != nullptr) {
            free_buffers(made->device, made->buffers);
            const CommunicatorLock lock;
            delete_communicator(made);
        }
        free(forming);
    }
    return all.error;
}

int form(Forming forming) {
    auto* kept = static_cast<Forming*>(malloc(sizeof(Forming)));
    if (kept == nullptr) return kSystemError;
    *kept = forming;
    if (t_group.depth == 0) return form_all(kept);
    kept->next = t_group.forming;
    t_group.forming = kept;
    *forming.out = forming.made;
    return kSuccess;
}

int create(Communicator** out, int ranks, const UniqueId& id, int rank) {
    if (out == nullptr || ranks < 1 || ranks > kMostRanks || rank < 0 || rank >= ranks ||
        !is_valid(id)) {
        return kInvalidArgument;
    }
    int error = kSuccess;
    Communicator* made = nullptr;
    {
        const CommunicatorLock lock;
        made = new_communicator(id.key, ranks, rank, &error);
    }
    return made != nullptr ? form({out, made, nullptr, 0, 0, id.maker, nullptr}) : error;
}

// Waits until the calls of the communicator have ended, with the lock held.
int finalize(Communicator* communicator) {
    if (wait_until_ended(communicator, nccl_limit_s())) return kSuccess;
    fprintf(stderr,
            "fragtrace: virtual NCCL: the calls of a communicator did not end within %u s\n",
            nccl_limit_s());
    return kSystemError;
}

int end_communicator(Communicator* communicator, bool abort) {
    Buffer* buffers = nullptr;
    int device = 0;
    int error = kSuccess;
    {
        const CommunicatorLock lock;
        if (!abort) error = finalize(communicator);
        if (!is_communicator(communicator)) return kInvalidArgument;
        buffers = communicator->buffers;
        device = communicator->device;
        delete_communicator(communicator);
    }
    free_buffers(device, buffers);
    return error;
}

int checked(Communicator* on, const Call& call) {
    if (on == nullptr || bytes_of(call.type) == 0) return kInvalidArgument;
    {
        const CommunicatorLock lock;
        if (!is_communicator(on) || call.root < 0 || call.root >= on->ranks) {
            return kInvalidArgument;
        }
    }
    return allocate_connections(on, call) ? kSuccess : kUnhandledCudaError;
}

int run(Communicator* on, const Call& call) {
    int error = checked(on, call);
    Work* work = error == kSuccess ? new_work(on, call) : nullptr;
    if (error == kSuccess && work == nullptr) error = kSystemError;
    if (t_group.depth == 0) return work != nullptr ? issue(work) : error;
    if (work != nullptr) append(&t_group.first, &t_group.last, work);
    if (t_group.error == kSuccess) t_group.error = error;
    return error;
}

// Operations of ncclRedOpCreatePreMulSum. A number is not used again.
constexpr int kMostFactors = 4096;
unsigned char g_factors[kMostFactors][8];
int g_factor_count;

// A buffer that all ranks registered together.
struct Window {
    void* buffer;
};

}  // namespace

const unsigned char* fragtrace::vgpu::factor_of(int operation) {
    const int index = operation - kReductions;
    const int count = __atomic_load_n(&g_factor_count, __ATOMIC_ACQUIRE);
    return index >= 0 && index < count && index < kMostFactors ? g_factors[index] : nullptr;
}

extern "C" {

FT_EXPORT int ncclGetVersion(int* version) {
    return put(version, kVersion);
}

FT_EXPORT const char* ncclGetErrorString(int result) {
    switch (result) {
        case kSuccess:
            return "no error";
        case kUnhandledCudaError:
            return "unhandled cuda error";
        case kSystemError:
            return "unhandled system error";
        case kInvalidArgument:
            return "invalid argument";
        case kInvalidUsage:
            return "invalid usage";
        case kRemoteError:
            return "remote process exited or there was a network error";
        default:
            return "an error of the virtual NCCL";
    }
}

FT_EXPORT const char* ncclGetLastError(const Communicator* communicator) {
    const CommunicatorLock lock;
    return is_communicator(communicator) ? communicator->problem : "";
}

FT_EXPORT int ncclGetUniqueId(UniqueId* id) {
    if (id == nullptr) return kInvalidArgument;
    *id = {};
    memcpy(id->magic, kIdMagic, sizeof kIdMagic);
    id->maker = this_process();
    return new_key(id->key) ? kSuccess : kSystemError;
}

FT_EXPORT int ncclCommInitRank(Communicator** out, int ranks, UniqueId id, int rank) {
    return create(out, ranks, id, rank);
}

FT_EXPORT int ncclCommInitRankConfig(Communicator** out, int ranks, UniqueId id, int rank, void*) {
    return create(out, ranks, id, rank);
}

FT_EXPORT int ncclCommInitRankScalable(
    Communicator** out, int ranks, int rank, int count, const UniqueId* ids, void*) {
    return ids != nullptr && count > 0 ? create(out, ranks, ids[0], rank) : kInvalidArgument;
}

FT_EXPORT int ncclCommInitAll(Communicator** out, int ranks, const int* devices) {
    if (out == nullptr || ranks < 1 || ranks > kMostRanks) return kInvalidArgument;
    char key[kKeyBytes];
    if (!new_key(key)) return kSystemError;
    Forming* first = nullptr;
    int error = kSuccess;
    for (int rank = ranks - 1; rank >= 0 && error == kSuccess; --rank) {
        auto* forming = static_cast<Forming*>(calloc(1, sizeof(Forming)));
        if (forming == nullptr) {
            error = kSystemError;
            break;
        }
        const CommunicatorLock lock;
        *forming = {
            &out[rank], new_communicator(key, ranks, rank, &error), nullptr, 0, 0, {}, first};
        if (forming->made != nullptr)
            forming->made->device = devices != nullptr ? devices[rank] : rank;
        first = forming;
    }
    if (error == kSuccess) return form_all(first);
    while (first != nullptr) {
        Forming* forming = first;
        first = forming->next;
        const CommunicatorLock lock;
        if (forming->made != nullptr) delete_communicator(forming->made);
        free(forming);
    }
    return error;
}

FT_EXPORT int ncclCommSplit(Communicator* from, int colour, int key, Communicator** out, void*) {
    if (from == nullptr || out == nullptr || colour < kNoColour) return kInvalidArgument;
    *out = nullptr;
    uint64_t agreement = 0;
    {
        const CommunicatorLock lock;
        if (!is_communicator(from)) return kInvalidArgument;
        const int error = post_agreement(from, colour, key, &agreement);
        if (error != kSuccess) return error;
    }
    return form({out, nullptr, from, agreement, colour, {}, nullptr});
}

// Only the ranks that stay call this, so they do not exchange anything through the old
// communicator.
FT_EXPORT int ncclCommShrink(
    Communicator* from, const int* excluded, int count, Communicator** out, void*, int) {
    if (from == nullptr || out == nullptr || count < 0 || (count > 0 && excluded == nullptr)) {
        return kInvalidArgument;
    }
    *out = nullptr;

    struct Agreed {
        uint64_t number;
        unsigned char stays[kMostRanks];
    } agreed{};

    Communicator* made = nullptr;
    int error = kSuccess;
    {
        const CommunicatorLock lock;
        if (!is_communicator(from)) return kInvalidArgument;
        memset(agreed.stays, 1, size_t(from->ranks));
        for (int i = 0; i < count; ++i) {
            const int rank = excluded[i];
            if (rank < 0 || rank >= from->ranks || rank == from->rank) return kInvalidArgument;
            agreed.stays[rank] = 0;
        }
        int ranks = 0;
        int rank = 0;
        for (int i = 0; i < from->ranks; ++i) {
            if (i == from->rank) rank = ranks;
            ranks += agreed.stays[i];
        }
        agreed.number = uint64_t{1} << 63 | from->shrinks++;
        char key[kKeyBytes];
        derive_key(key, from->key, &agreed, sizeof agreed);
        made = new_communicator(key, ranks, rank, &error);
    }
    return made != nullptr ? form({out, made, nullptr, 0, 0, {}, nullptr}) : error;
}

FT_EXPORT int ncclCommFinalize(Communicator* communicator) {
    if (communicator == nullptr) return kSuccess;
    const CommunicatorLock lock;
    return is_communicator(communicator) ? finalize(communicator) : kInvalidArgument;
}

FT_EXPORT int ncclCommDestroy(Communicator* communicator) {
    return communicator != nullptr ? end_communicator(communicator, false) : kSuccess;
}

FT_EXPORT int ncclCommAbort(Communicator* communicator) {
    return communicator != nullptr ? end_communicator(communicator, true) : kSuccess;
}

// Ends all works of this rank. The communicator can then only be shrunk or destroyed.
FT_EXPORT int ncclCommRevoke(Communicator* communicator, int) {
    {
        const CommunicatorLock lock;
        if (!is_communicator(communicator)) return kInvalidArgument;
        communicator->aborted = true;
    }
    progress_all();
    return kSuccess;
}

FT_EXPORT int ncclCommSuspend(Communicator*, int) {
    return kSuccess;
}

FT_EXPORT int ncclCommResume(Communicator*) {
    return kSuccess;
}

FT_EXPORT int ncclCommMemStats(const Communicator* communicator, int, uint64_t* value) {
    const CommunicatorLock lock;
    if (!is_communicator(communicator) || value == nullptr) return kInvalidArgument;
    *value = bytes_of_buffers(*communicator);
    return kSuccess;
}

FT_EXPORT int ncclCommGetAsyncError(const Communicator* communicator, int* error) {
    progress_all();
    const CommunicatorLock lock;
    return is_communicator(communicator) ? put(error, communicator->error) : kInvalidArgument;
}

FT_EXPORT int ncclCommCount(const Communicator* from, int* count) {
    const CommunicatorLock lock;
    return is_communicator(from) ? put(count, from->ranks) : kInvalidArgument;
}

FT_EXPORT int ncclCommUserRank(const Communicator* from, int* rank) {
    const CommunicatorLock lock;
    return is_communicator(from) ? put(rank, from->rank) : kInvalidArgument;
}

FT_EXPORT int ncclCommCuDevice(const Communicator* from, int* device) {
    const CommunicatorLock lock;
    return is_communicator(from) ? put(device, from->device) : kInvalidArgument;
}

FT_EXPORT int ncclMemAlloc(void** out, size_t bytes) {
    if (out == nullptr || bytes == 0) return kInvalidArgument;
    *out = allocate_on_device(current_device(), bytes);
    return *out != nullptr ? kSuccess : kUnhandledCudaError;
}

FT_EXPORT int ncclMemFree(void* memory) {
    free_on_device(current_device(), memory);
    return kSuccess;
}

FT_EXPORT int ncclCommRegister(const Communicator* on, void* buffer, size_t, void** handle) {
    const CommunicatorLock lock;
    if (handle == nullptr || !is_communicator(on)) return kInvalidArgument;
    *handle = buffer;
    return kSuccess;
}

FT_EXPORT int ncclCommDeregister(const Communicator* on, void*) {
    const CommunicatorLock lock;
    return is_communicator(on) ? kSuccess : kInvalidArgument;
}

FT_EXPORT int ncclCommWindowRegister(
    const Communicator*, void* buffer, size_t, Window** window, int) {
    if (window == nullptr) return kInvalidArgument;
    *window = static_cast<Window*>(malloc(sizeof(Window)));
    if (*window == nullptr) return kSystemError;
    (*window)->buffer = buffer;
    return kSuccess;
}

FT_EXPORT int ncclCommWindowDeregister(const Communicator*, Window* window) {
    free(window);
    return kSuccess;
}

FT_EXPORT int ncclWinGetUserPtr(const Communicator*, const Window* window, void** out) {
    if (window == nullptr || out == nullptr) return kInvalidArgument;
    *out = window->buffer;
    return kSuccess;
}

FT_EXPORT int ncclRedOpCreatePreMulSum(
    int* op, const void* factor, int type, int on_host, const Communicator*) {
    if (op == nullptr || factor == nullptr || bytes_of(type) == 0) return kInvalidArgument;
    unsigned char value[8] = {};
    if (on_host != 0) {
        memcpy(value, factor, bytes_of(type));
    } else if (driver_interface() != nullptr) {
        driver_interface()->read(reinterpret_cast<uint64_t>(factor), value, bytes_of(type));
    }
    const CommunicatorLock lock;
    for (int i = 0; i < g_factor_count; ++i) {
        if (memcmp(g_factors[i], value, sizeof value) == 0) return put(op, kReductions + i);
    }
    if (g_factor_count == kMostFactors) return kSystemError;
    memcpy(g_factors[g_factor_count], value, sizeof value);
    __atomic_store_n(&g_factor_count, g_factor_count + 1, __ATOMIC_RELEASE);
    return put(op, kReductions + g_factor_count - 1);
}

FT_EXPORT int ncclRedOpDestroy(int, const Communicator*) {
    return kSuccess;
}

FT_EXPORT int ncclGroupStart(void) {
    ++t_group.depth;
    return kSuccess;
}

FT_EXPORT int ncclGroupEnd(void) {
    if (t_group.depth == 0) return kInvalidUsage;
    if (--t_group.depth > 0) return kSuccess;
    const Group group = t_group;
    t_group = {};
    int error = group.forming != nullptr ? form_all(group.forming) : kSuccess;
    if (error == kSuccess) error = group.error;
    if (error == kSuccess) return issue(group.first);
    free_works(group.first);
    return error;
}

FT_EXPORT int ncclAllReduce(const void* from,
                            void* to,
                            size_t count,
                            int type,
                            int operation,
                            Communicator* on,
                            void* stream) {
    return run(on, {Kind::kAllReduce, from, to, count, type, operation, 0, stream});
}

FT_EXPORT int ncclReduce(const void* from,
                         void* to,
                         size_t count,
                         int type,
                         int operation,
                         int root,
                         Communicator* on,
                         void* stream) {
    return run(on, {Kind::kReduce, from, to, count, type, operation, root, stream});
}

FT_EXPORT int ncclReduceScatter(const void* from,
                                void* to,
                                size_t count,
                                int type,
                                int operation,
                                Communicator* on,
                                void* stream) {
    return run(on, {Kind::kReduceScatter, from, to, count, type, operation, 0, stream});
}

FT_EXPORT int ncclBroadcast(
    const void* from, void* to, size_t count, int type, int root, Communicator* on, void* stream) {
    return run(on, {Kind::kBroadcast, from, to, count, type, 0, root, stream});
}

FT_EXPORT int ncclBcast(
    void* buffer, size_t count, int type, int root, Communicator* on, void* stream) {
    return run(on, {Kind::kBroadcast, buffer, buffer, count, type, 0, root, stream});
}

FT_EXPORT int ncclAllGather(
    const void* from, void* to, size_t count, int type, Communicator* on, void* stream) {
    return run(on, {Kind::kAllGather, from, to, count, type, 0, 0, stream});
}

FT_EXPORT int ncclAlltoAll(
    const void* from, void* to, size_t count, int type, Communicator* on, void* stream) {
    return run(on, {Kind::kAlltoAll, from, to, count, type, 0, 0, stream});
}

FT_EXPORT int ncclGather(
    const void* from, void* to, size_t count, int type, int root, Communicator* on, void* stream) {
    return run(on, {Kind::kGather, from, to, count, type, 0, root, stream});
}

FT_EXPORT int ncclScatter(
    const void* from, void* to, size_t count, int type, int root, Communicator* on, void* stream) {
    return run(on, {Kind::kScatter, from, to, count, type, 0, root, stream});
}

FT_EXPORT int ncclSend(
    const void* from, size_t count, int type, int peer, Communicator* on, void* stream) {
    return run(on, {Kind::kSend, from, nullptr, count, type, 0, peer, stream});
}

FT_EXPORT int ncclRecv(void* to, size_t count, int type, int peer, Communicator* on, void* stream) {
    return run(on, {Kind::kReceive, nullptr, to, count, type, 0, peer, stream});
}

// Functions that reach into a peer's memory, or that add ranks, are refused.
#define FT_REFUSED(name)       \
    FT_EXPORT int name(void) { \
        return kInvalidUsage;  \
    }
FT_REFUSED(ncclCommGetUniqueId)
FT_REFUSED(ncclCommGrow)
FT_REFUSED(ncclDevCommCreate)
FT_REFUSED(ncclDevCommDestroy)
FT_REFUSED(ncclGetLsaMultimemDevicePointer)
FT_REFUSED(ncclGetPeerDevicePointer)
FT_REFUSED(ncclGroupSimulateEnd)
FT_REFUSED(ncclPutSignal)
FT_REFUSED(ncclSignal)
FT_REFUSED(ncclWaitSignal)

}  // extern "C"
