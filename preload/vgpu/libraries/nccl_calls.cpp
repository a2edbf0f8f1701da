// NCCL: collectives, sends and receives, and the operations that programs make for them.
#include "common/stub.h"
#include "libraries/kernel_launch.h"
#include "libraries/nccl_buffers.h"
#include "libraries/nccl_group.h"
#include "libraries/nccl_values.h"

#include <string.h>

using namespace fragtrace::vgpu;

namespace {

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
}  // namespace

const unsigned char* fragtrace::vgpu::factor_of(int operation) {
    const int index = operation - kReductions;
    const int count = __atomic_load_n(&g_factor_count, __ATOMIC_ACQUIRE);
    return index >= 0 && index < count && index < kMostFactors ? g_factors[index] : nullptr;
}

extern "C" {

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
        if (memcmp(g_factors[i], value, sizeof value) == 0) {
            *op = kReductions + i;
            return kSuccess;
        }
    }
    if (g_factor_count == kMostFactors) return kSystemError;
    memcpy(g_factors[g_factor_count], value, sizeof value);
    __atomic_store_n(&g_factor_count, g_factor_count + 1, __ATOMIC_RELEASE);
    *op = kReductions + g_factor_count - 1;
    return kSuccess;
}

FT_EXPORT int ncclRedOpDestroy(int, const Communicator*) {
    return kSuccess;
}

FT_EXPORT int ncclAllReduce(const void* from,
                            void* to,
                            size_t count,
                            int type,
                            int operation,
                            Communicator* on,
                            void* stream) {
    return run(on, {CallKind::kAllReduce, from, to, count, type, operation, 0, stream});
}

FT_EXPORT int ncclReduce(const void* from,
                         void* to,
                         size_t count,
                         int type,
                         int operation,
                         int root,
                         Communicator* on,
                         void* stream) {
    return run(on, {CallKind::kReduce, from, to, count, type, operation, root, stream});
}

FT_EXPORT int ncclReduceScatter(const void* from,
                                void* to,
                                size_t count,
                                int type,
                                int operation,
                                Communicator* on,
                                void* stream) {
    return run(on, {CallKind::kReduceScatter, from, to, count, type, operation, 0, stream});
}

FT_EXPORT int ncclBroadcast(
    const void* from, void* to, size_t count, int type, int root, Communicator* on, void* stream) {
    return run(on, {CallKind::kBroadcast, from, to, count, type, 0, root, stream});
}

FT_EXPORT int ncclBcast(
    void* buffer, size_t count, int type, int root, Communicator* on, void* stream) {
    return run(on, {CallKind::kBroadcast, buffer, buffer, count, type, 0, root, stream});
}

FT_EXPORT int ncclAllGather(
    const void* from, void* to, size_t count, int type, Communicator* on, void* stream) {
    return run(on, {CallKind::kAllGather, from, to, count, type, 0, 0, stream});
}

FT_EXPORT int ncclAlltoAll(
    const void* from, void* to, size_t count, int type, Communicator* on, void* stream) {
    return run(on, {CallKind::kAlltoAll, from, to, count, type, 0, 0, stream});
}

FT_EXPORT int ncclGather(
    const void* from, void* to, size_t count, int type, int root, Communicator* on, void* stream) {
    return run(on, {CallKind::kGather, from, to, count, type, 0, root, stream});
}

FT_EXPORT int ncclScatter(
    const void* from, void* to, size_t count, int type, int root, Communicator* on, void* stream) {
    return run(on, {CallKind::kScatter, from, to, count, type, 0, root, stream});
}

FT_EXPORT int ncclSend(
    const void* from, size_t count, int type, int peer, Communicator* on, void* stream) {
    return run(on, {CallKind::kSend, from, nullptr, count, type, 0, peer, stream});
}

FT_EXPORT int ncclRecv(void* to, size_t count, int type, int peer, Communicator* on, void* stream) {
    return run(on, {CallKind::kReceive, nullptr, to, count, type, 0, peer, stream});
}
}  // extern "C"
