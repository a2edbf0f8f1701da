// Hooks of contexts: the memory that their creation needs, and their end, which frees all memory
// allocated in them. A device's primary context ends with its last release or with a reset; both
// are recorded as a reset of the device. A context that the program created has its own end event.
#include "hooks/cuda_facts.h"
#include "hooks/framework.h"
#include "hooks/hook_call.h"
#include "hooks/memory_delta.h"
#include "system/losses.h"

namespace fragtrace::preload {
namespace {

// Contexts that the program created: their devices, and the references that cuCtxAttach added.
struct Own {
    const void* context;  // nullptr = free
    uint16_t device;
    int32_t attached;
};

constexpr int kMaxOwn = 256;
Own g_own[kMaxOwn];

Own* find_own(const void* context) {
    for (Own& own : g_own) {
        if (context != nullptr && __atomic_load_n(&own.context, __ATOMIC_ACQUIRE) == context) {
            return &own;
        }
    }
    return nullptr;
}

void note_own(const void* context, uint16_t device) {
    for (Own& own : g_own) {
        const void* expected = nullptr;
        if (__atomic_load_n(&own.context, __ATOMIC_RELAXED) == nullptr &&
            __atomic_compare_exchange_n(
                &own.context, &expected, context, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            __atomic_store_n(&own.device, device, __ATOMIC_RELEASE);
            __atomic_store_n(&own.attached, 0, __ATOMIC_RELEASE);
            return;
        }
    }
    count_up(&g_entries_without_room);
}

// Returns false if the driver does not report it.
bool primary_is_active(int device, const void* caller, bool* is_active) {
    unsigned int flags = 0;
    int active = 0;
    auto* state = real<Hook::k_cuDevicePrimaryCtxGetState>(caller);
    if (state == nullptr || state(device, &flags, &active) != kSuccess) {
        return false;
    }
    *is_active = active != 0;
    return true;
}

void context_made(Call& call, MemoryDelta& delta, const void* context, uint16_t device) {
    const uint64_t bytes = delta.after();
    record_context_device(device, call.caller());
    if (bytes != kUnknown64) {
        record_context_fact(device, bytes, delta.source());
    }
    record_mig_fact(device, call.caller());
    call.record({.kind = EventKind::kContextCreate,
                 .device = device,
                 .address = number(context),
                 .size = bytes});
}

// Recorded also when nested: the runtime retains the primary context inside other calls.
template <Hook kHook>
int retain_primary(const void* caller, CUcontext* context, CUdevice device) {
    MemoryDelta delta(ordinal(device), caller);
    bool makes = false;
    return around<kHook, Nested::kRecorded>(
        caller,
        [&](Call&) {
            bool active = true;
            makes = primary_is_active(device, caller, &active) && !active;
            if (makes) {
                delta.before(true);
            }
            return uint64_t{0};
        },
        [&](Call& call, int result) {
            if (makes && result == kSuccess) {
                context_made(call, delta, *context, ordinal(device));
            }
            jax_prepare();
        },
        context,
        device);
}

template <Hook kHook>
int reset_primary(const void* caller, CUdevice device) {
    return ending<kHook>(
        caller,
        [&](Call& call) {
            return call.record({.kind = EventKind::kDeviceReset, .device = ordinal(device)});
        },
        device);
}

// Only the last release destroys the context; afterwards the driver reports whether it is still
// active.
template <Hook kHook>
int release_primary(const void* caller, CUdevice device) {
    return recorded<kHook>(
        caller,
        [&](Call& call, int result) {
            bool active = true;
            if (result == kSuccess && primary_is_active(device, caller, &active) && !active) {
                call.record({.kind = EventKind::kDeviceReset, .device = ordinal(device)});
            }
        },
        device);
}

template <Hook kHook>
int reset_device(const void* caller) {
    return ending<kHook>(caller, [&](Call& call) {
        return call.record({.kind = EventKind::kDeviceReset, .device = call.current_device()});
    });
}

template <Hook kHook, typename... Arguments>
int create_context(const void* caller,
                   CUdevice device,
                   CUcontext* context,
                   Arguments... arguments) {
    MemoryDelta delta(ordinal(device), caller);
    return around<kHook, Nested::kRecorded>(
        caller,
        [&](Call&) {
            delta.before(true);
            return uint64_t{0};
        },
        [&](Call& call, int result) {
            if (result == kSuccess) {
                note_own(*context, ordinal(device));
                context_made(call, delta, *context, ordinal(device));
            }
        },
        context,
        arguments...,
        device);
}

template <Hook kHook>
int create_plain(const void* caller, CUcontext* context, unsigned flags, CUdevice device) {
    return create_context<kHook>(caller, device, context, flags);
}

template <Hook kHook>
int create_with_affinity(const void* caller,
                         CUcontext* context,
                         void* affinities,
                         int affinity_count,
                         unsigned flags,
                         CUdevice device) {
    return create_context<kHook>(caller, device, context, affinities, affinity_count, flags);
}

template <Hook kHook>
int create_with_parameters(
    const void* caller, CUcontext* context, void* creation, unsigned flags, CUdevice device) {
    return create_context<kHook>(caller, device, context, creation, flags);
}

uint64_t context_ends(Call& call, const void* context) {
    Own* own = find_own(context);
    const uint16_t device = own != nullptr ? own->device : call.current_device();
    if (own != nullptr) {
        __atomic_store_n(&own->context, nullptr, __ATOMIC_RELEASE);
    }
    return call.record(
        {.kind = EventKind::kContextDestroy, .device = device, .address = number(context)});
}

template <Hook kHook>
int destroy_context(const void* caller, CUcontext context) {
    return ending<kHook>(
        caller, [&](Call& call) { return context_ends(call, context); }, context);
}

template <Hook kHook>
int attach_context(const void* caller, CUcontext* context, unsigned flags) {
    return recorded<kHook>(
        caller,
        [&](Call&, int result) {
            Own* own = result == kSuccess ? find_own(*context) : nullptr;
            if (own != nullptr) {
                __atomic_fetch_add(&own->attached, 1, __ATOMIC_ACQ_REL);
            }
        },
        context,
        flags);
}

template <Hook kHook>
int detach_context(const void* caller, CUcontext context) {
    return ending<kHook>(
        caller,
        [&](Call& call) {
            Own* own = find_own(context);
            if (own != nullptr && __atomic_fetch_sub(&own->attached, 1, __ATOMIC_ACQ_REL) > 0) {
                return uint64_t{0};
            }
            return context_ends(call, context);
        },
        context);
}

}  // namespace

FT_HOOK_2(cuDevicePrimaryCtxRetain, retain_primary)
FT_HOOK_1(cuDevicePrimaryCtxReset, reset_primary)
FT_HOOK_1(cuDevicePrimaryCtxReset_v2, reset_primary)
FT_HOOK_1(cuDevicePrimaryCtxRelease, release_primary)
FT_HOOK_1(cuDevicePrimaryCtxRelease_v2, release_primary)
FT_HOOK_3(cuCtxCreate, create_plain)
FT_HOOK_3(cuCtxCreate_v2, create_plain)
FT_HOOK_5(cuCtxCreate_v3, create_with_affinity)
FT_HOOK_4(cuCtxCreate_v4, create_with_parameters)
FT_HOOK_1(cuCtxDestroy, destroy_context)
FT_HOOK_1(cuCtxDestroy_v2, destroy_context)
FT_HOOK_2(cuCtxAttach, attach_context)
FT_HOOK_1(cuCtxDetach, detach_context)
FT_HOOK_2(cuCtxSetLimit, watched)
FT_HOOK_0(cudaDeviceReset, reset_device)

}  // namespace fragtrace::preload
