// NCCL: communicators that know their rank and size, and collectives that return at once. AllGather
// copies this rank's data into the place of every rank. This is correct if all ranks send the same
// data, as when they compare the shapes of a model before training. Reductions and receives leave
// the receive buffer unchanged. NCCL's own device buffers are not modelled. The file follows NCCL's
// documentation and does not include its header.
#include "common/stub.h"
#include "libraries/kernel_launch.h"

#include <stdlib.h>
#include <string.h>

using fragtrace::vgpu::copy_on_device;
using fragtrace::vgpu::launch_empty_kernel;

namespace {

constexpr int kSuccess = 0;
constexpr int kSystemError = 2;
constexpr int kInvalidArgument = 4;
constexpr int kInvalidUsage = 5;
constexpr int kVersion = 23000;

struct Communicator {
    int ranks;
    int rank;
};

// Passed by value with its real size of 128 bytes, so that the arguments after it are found.
struct UniqueId {
    char bytes[128];
};

int create(Communicator** out, int ranks, int rank) {
    if (out == nullptr || ranks < 1 || rank < 0 || rank >= ranks) return kInvalidArgument;
    *out = static_cast<Communicator*>(malloc(sizeof(Communicator)));
    if (*out == nullptr) return kSystemError;
    **out = {ranks, rank};
    return kSuccess;
}

int run(const void* communicator, void* stream) {
    if (communicator == nullptr) return kInvalidArgument;
    launch_empty_kernel(stream);
    return kSuccess;
}

size_t bytes_of(size_t count, int type) {
    // int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16, two types of 8 bits
    constexpr size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return type >= 0 && type < 12 ? count * kBytes[type] : 0;
}

// PyTorch issues an all-gather into separate tensors as one group with a broadcast per rank. The
// other ranks' buffers receive this rank's data.
struct Group {
    static constexpr int kMost = 1024;
    int depth;
    int count;
    void* waiting[kMost];  // buffers that another rank would fill
    const void* own;
    size_t bytes;
    void* stream;
};

__thread Group* t_group;

void finish_group(Group* group) {
    for (int i = 0; i < group->count && group->own != nullptr; ++i) {
        copy_on_device(group->waiting[i], group->own, group->bytes, group->stream);
    }
    free(group);
    t_group = nullptr;
}

void broadcast_in_group(Group* group, const void* own, void* to, size_t bytes, void* stream) {
    if (own != nullptr) {
        group->own = own;
        group->bytes = bytes;
        group->stream = stream;
    } else if (group->count < Group::kMost) {
        group->waiting[group->count++] = to;
    }
}

int put(int* out, int value) {
    if (out == nullptr) return kInvalidArgument;
    *out = value;
    return kSuccess;
}

}  // namespace

extern "C" {

FT_EXPORT int ncclGetVersion(int* version) {
    return put(version, kVersion);
}

FT_EXPORT const char* ncclGetErrorString(int result) {
    return result == kSuccess ? "no error" : "an error of the virtual NCCL";
}

FT_EXPORT const char* ncclGetLastError(const Communicator*) {
    return "";
}

FT_EXPORT int ncclGetUniqueId(UniqueId* id) {
    if (id == nullptr) return kInvalidArgument;
    memset(id->bytes, 0, sizeof id->bytes);
    memcpy(id->bytes, "fragtrace", 9);
    return kSuccess;
}

FT_EXPORT int ncclCommGetUniqueId(const Communicator*, UniqueId* id) {
    return ncclGetUniqueId(id);
}

FT_EXPORT int ncclCommInitRank(Communicator** out, int ranks, UniqueId, int rank) {
    return create(out, ranks, rank);
}

FT_EXPORT int ncclCommInitRankConfig(Communicator** out, int ranks, UniqueId, int rank, void*) {
    return create(out, ranks, rank);
}

FT_EXPORT int ncclCommInitRankScalable(
    Communicator** out, int ranks, int rank, int, UniqueId*, void*) {
    return create(out, ranks, rank);
}

FT_EXPORT int ncclCommInitAll(Communicator** out, int ranks, const int*) {
    if (out == nullptr) return kInvalidArgument;
    for (int rank = 0; rank < ranks; ++rank) {
        if (const int error = create(&out[rank], ranks, rank)) return error;
    }
    return kSuccess;
}

// The other ranks' colours are not known here. The new communicator keeps the rank and size of the
// old one, which is correct if all ranks stay together.
FT_EXPORT int ncclCommSplit(const Communicator* from, int color, int, Communicator** out, void*) {
    constexpr int kNoColor = -1;
    if (from == nullptr || out == nullptr) return kInvalidArgument;
    *out = nullptr;
    return color == kNoColor ? kSuccess : create(out, from->ranks, from->rank);
}

FT_EXPORT int ncclCommFinalize(Communicator*) {
    return kSuccess;
}

FT_EXPORT int ncclCommDestroy(Communicator* communicator) {
    free(communicator);
    return kSuccess;
}

FT_EXPORT int ncclCommAbort(Communicator* communicator) {
    return ncclCommDestroy(communicator);
}

FT_EXPORT int ncclCommGetAsyncError(const Communicator*, int* error) {
    return put(error, kSuccess);
}

FT_EXPORT int ncclCommCount(const Communicator* from, int* count) {
    return from != nullptr ? put(count, from->ranks) : kInvalidArgument;
}

FT_EXPORT int ncclCommUserRank(const Communicator* from, int* rank) {
    return from != nullptr ? put(rank, from->rank) : kInvalidArgument;
}

FT_EXPORT int ncclCommRegister(const Communicator*, void* buffer, size_t, void** handle) {
    if (handle == nullptr) return kInvalidArgument;
    *handle = buffer;
    return kSuccess;
}

FT_EXPORT int ncclCommDeregister(const Communicator*, void*) {
    return kSuccess;
}

FT_EXPORT int ncclRedOpCreatePreMulSum(int* op, void*, int, int, const Communicator*) {
    constexpr int kFirstOwnOperation = 5;
    return put(op, kFirstOwnOperation);
}

FT_EXPORT int ncclRedOpDestroy(int, const Communicator*) {
    return kSuccess;
}

FT_EXPORT int ncclGroupStart(void) {
    if (t_group == nullptr) t_group = static_cast<Group*>(calloc(1, sizeof(Group)));
    if (t_group == nullptr) return kSystemError;
    ++t_group->depth;
    return kSuccess;
}

FT_EXPORT int ncclGroupEnd(void) {
    if (t_group == nullptr) return kInvalidUsage;
    if (--t_group->depth == 0) finish_group(t_group);
    return kSuccess;
}

FT_EXPORT int ncclAllReduce(
    const void*, void*, size_t, int, int, const Communicator* on, void* stream) {
    return run(on, stream);
}

FT_EXPORT int ncclReduce(
    const void*, void*, size_t, int, int, int, const Communicator* on, void* stream) {
    return run(on, stream);
}

FT_EXPORT int ncclReduceScatter(
    const void*, void*, size_t, int, int, const Communicator* on, void* stream) {
    return run(on, stream);
}

FT_EXPORT int ncclBroadcast(const void* from,
                            void* to,
                            size_t count,
                            int type,
                            int root,
                            const Communicator* on,
                            void* stream) {
    if (on == nullptr) return kInvalidArgument;
    const size_t bytes = bytes_of(count, type);
    const bool own = root == on->rank;
    if (own) copy_on_device(to, from, bytes, stream);
    if (t_group != nullptr) broadcast_in_group(t_group, own ? from : nullptr, to, bytes, stream);
    return kSuccess;
}

FT_EXPORT int ncclBcast(void*, size_t, int, int, const Communicator* on, void*) {
    return on != nullptr ? kSuccess : kInvalidArgument;
}

FT_EXPORT int ncclAllGather(
    const void* from, void* to, size_t count, int type, const Communicator* on, void* stream) {
    if (on == nullptr) return kInvalidArgument;
    const size_t bytes = bytes_of(count, type);
    for (int rank = 0; rank < on->ranks; ++rank) {
        copy_on_device(static_cast<char*>(to) + size_t(rank) * bytes, from, bytes, stream);
    }
    return kSuccess;
}

FT_EXPORT int ncclAlltoAll(const void*, void*, size_t, int, const Communicator* on, void* stream) {
    return run(on, stream);
}

FT_EXPORT int ncclGather(
    const void*, void*, size_t, int, int, const Communicator* on, void* stream) {
    return run(on, stream);
}

FT_EXPORT int ncclScatter(
    const void*, void*, size_t, int, int, const Communicator* on, void* stream) {
    return run(on, stream);
}

FT_EXPORT int ncclSend(const void*, size_t, int, int, const Communicator* on, void* stream) {
    return run(on, stream);
}

FT_EXPORT int ncclRecv(void*, size_t, int, int, const Communicator* on, void* stream) {
    return run(on, stream);
}

// Functions that need the other ranks, or memory of NCCL's own, are refused.
#define FT_REFUSED(name)       \
    FT_EXPORT int name(void) { \
        return kInvalidUsage;  \
    }
FT_REFUSED(ncclCommCuDevice)
FT_REFUSED(ncclCommGrow)
FT_REFUSED(ncclCommShrink)
FT_REFUSED(ncclCommRevoke)
FT_REFUSED(ncclCommSuspend)
FT_REFUSED(ncclCommResume)
FT_REFUSED(ncclCommMemStats)
FT_REFUSED(ncclCommWindowRegister)
FT_REFUSED(ncclCommWindowDeregister)
FT_REFUSED(ncclDevCommCreate)
FT_REFUSED(ncclDevCommDestroy)
FT_REFUSED(ncclGetLsaMultimemDevicePointer)
FT_REFUSED(ncclGetPeerDevicePointer)
FT_REFUSED(ncclGroupSimulateEnd)
FT_REFUSED(ncclMemAlloc)
FT_REFUSED(ncclMemFree)
FT_REFUSED(ncclPutSignal)
FT_REFUSED(ncclSignal)
FT_REFUSED(ncclWaitSignal)
FT_REFUSED(ncclWinGetUserPtr)

}  // extern "C"
