// Hooks of the calls by which a process joins a communicator: NCCL knows the rank and the number of
// processes also if no launcher put them into the environment. No event is recorded.
#include "hooks/hook_call.h"
#include "hooks/resolve.h"
#include "recorder/job_place.h"
#include "recorder/trace_facts.h"

#include <dlfcn.h>

using namespace fragtrace;
using namespace fragtrace::preload;

namespace {

constexpr int kNcclSuccess = 0;
constexpr int kNcclSystemError = 2;
constexpr int kNcclInProgress = 7;

// The virtual GPU's NCCL is preloaded, so its counters stay where they are.
void watch_stand_in() {
    const void* counts = real_dlsym(RTLD_DEFAULT, "fragtrace_vgpu_nccl_zeros");
    if (counts != nullptr) {
        watch_zeros(static_cast<const uint64_t*>(counts));
    }
}

template <Hook kHook, typename... Arguments>
int join(const void* caller, int size, int rank, Arguments... arguments) {
    auto* function = real<kHook>(caller);
    if (function == nullptr) {
        return kNcclSystemError;
    }
    const int result = function(arguments...);
    if (result == kNcclSuccess || result == kNcclInProgress) {
        const SlowPath slow_path;
        note_communicator(size, rank);
        watch_stand_in();
    }
    return result;
}

}  // namespace

extern "C" {

FT_PUBLIC ncclResult_t ncclCommInitRank(void** communicator, int size, NcclUniqueId id, int rank) {
    return join<Hook::k_ncclCommInitRank>(
        __builtin_return_address(0), size, rank, communicator, size, id, rank);
}

FT_PUBLIC ncclResult_t ncclCommInitRankConfig(
    void** communicator, int size, NcclUniqueId id, int rank, void* configuration) {
    return join<Hook::k_ncclCommInitRankConfig>(
        __builtin_return_address(0), size, rank, communicator, size, id, rank, configuration);
}

FT_PUBLIC ncclResult_t ncclCommInitRankScalable(
    void** communicator, int size, int rank, int id_count, void* ids, void* configuration) {
    return join<Hook::k_ncclCommInitRankScalable>(__builtin_return_address(0),
                                                  size,
                                                  rank,
                                                  communicator,
                                                  size,
                                                  rank,
                                                  id_count,
                                                  ids,
                                                  configuration);
}

}  // extern "C"
