// NCCL: communicators and what belongs to them; nccl_calls.cpp has the calls between their ranks.
// Communicators find their ranks in shared memory (nccl_segment.h). Collectives wait for their
// peers and carry contents of up to 1 MiB (nccl_communicator.h). The files follow NCCL's
// documentation and do not include its header.
#include "common/config.h"
#include "common/stub.h"
#include "libraries/kernel_launch.h"
#include "libraries/nccl_buffers.h"
#include "libraries/nccl_group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

using namespace fragtrace::vgpu;

namespace {

constexpr int kVersion = 23000;

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

// A buffer that all ranks registered together.
struct Window {
    void* buffer;
};

}  // namespace

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
