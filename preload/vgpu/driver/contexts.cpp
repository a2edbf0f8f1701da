// Initialisation, devices by ordinal, and contexts: primary contexts with their reference counts,
// and each thread's stack of current contexts.
#include "driver/card_shares.h"
#include "driver/state.h"

#include <stdio.h>
#include <unistd.h>

namespace fragtrace::vgpu {
namespace {

constexpr int kStackDepth = 64;
__thread Context* t_stack[kStackDepth];
__thread int t_depth;
bool g_initialised;

CUresult new_context(int device, unsigned flags, bool primary, Context** out) {
    Context* context = make<Context>();
    if (context == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    if (!take_bytes(g_devices[device], config().card.context_bytes)) {
        destroy(context);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    context->device = device;
    context->flags = flags;
    context->primary = primary;
    context->id = g_next_id++;
    ++g_devices[device].contexts;
    *out = context;
    return CUDA_SUCCESS;
}

// Frees what a context owns: linear, host and managed memory, arrays and code. Memory pools and the
// handles of virtual memory do not belong to a context.
void free_owned_by(Context* context) {
    free_device_of(context->device, context);
    free_host_owned_by(context);
    free_arrays_of(context);
    give_bytes(g_devices[context->device], round_up(context->code_bytes, kPageBytes));
    context->code_bytes = 0;
}

void drop_context(Context* context) {
    Device& device = g_devices[context->device];
    free_owned_by(context);
    if (--device.contexts == 0) free_device_of(context->device, nullptr);
    give_bytes(device, config().card.context_bytes);
    destroy(context);
}

Context* current() {
    Context* context = t_depth > 0 ? t_stack[t_depth - 1] : nullptr;
    return as<Context>(context);  // also null if another thread destroyed the context
}

void say(const char* line) {
    (void)!write(2, line, strlen(line));
}

}  // namespace

bool initialised() {
    return g_initialised;
}

int device_count() {
    return config().device_count;
}

bool valid_device(int device) {
    return device >= 0 && device < device_count();
}

CUresult require_initialised() {
    return g_initialised ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult require_context(Context** context) {
    *context = current();
    return *context != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

}  // namespace fragtrace::vgpu

using namespace fragtrace::vgpu;

CUresult cuInit(unsigned flags) {
    StateLock lock;
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    const Config& wanted = config();
    if (wanted.status == Config::kInvalid) {
        static bool said;
        if (!said) say(wanted.problem);
        said = true;
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (wanted.status == Config::kUnset || wanted.device_count == 0) return CUDA_ERROR_NO_DEVICE;
    if (g_initialised) return CUDA_SUCCESS;
    char problem[400] = "";
    const Sharing sharing = open_shares(problem, sizeof problem);
    if (problem[0] != '\0') {
        char line[512];
        snprintf(line,
                 sizeof line,
                 "fragtrace: virtual GPU: %s%s\n",
                 problem,
                 sharing == Sharing::kAlone ? "; this process counts its own memory only" : "");
        say(line);
    }
    if (sharing == Sharing::kRefused) return CUDA_ERROR_INVALID_DEVICE;
    watch_forks();
    for (int i = 0; i < wanted.device_count; ++i) {
        g_devices[i].total_bytes = wanted.card.total_bytes;
    }
    g_initialised = true;
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    FT_ENTER();
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!valid_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
    FT_ENTER();
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = device_count();
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice device) {
    FT_ENTER();
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    Device& on = g_devices[device];
    if (on.primary == nullptr) FT_TRY(new_context(device, on.primary_flags, true, &on.primary));
    ++on.primary_retains;
    *out = reinterpret_cast<CUcontext>(on.primary);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    FT_ENTER();
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    Device& on = g_devices[device];
    if (on.primary_retains == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--on.primary_retains == 0) {
        drop_context(on.primary);
        on.primary = nullptr;
    }
    return CUDA_SUCCESS;
}

// Frees everything that the context owns. Its handle stays valid, as on the real driver.
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
    FT_ENTER();
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (g_devices[device].primary != nullptr) free_owned_by(g_devices[device].primary);
    if (g_devices[device].contexts <= 1) free_device_of(device, nullptr);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
    FT_ENTER();
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (flags != nullptr) *flags = g_devices[device].primary_flags;
    if (active != nullptr) *active = g_devices[device].primary != nullptr ? 1 : 0;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
    FT_ENTER();
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    g_devices[device].primary_flags = flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v4(CUcontext* out, CUctxCreateParams*, unsigned flags, CUdevice device) {
    FT_ENTER();
    if (out == nullptr || (flags & ~unsigned{CU_CTX_FLAGS_MASK}) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (t_depth == kStackDepth) return CUDA_ERROR_OUT_OF_MEMORY;
    Context* context = nullptr;
    FT_TRY(new_context(device, flags, false, &context));
    t_stack[t_depth++] = context;
    *out = reinterpret_cast<CUcontext>(context);
    return CUDA_SUCCESS;
}

CUresult cuCtxDestroy_v2(CUcontext handle) {
    FT_ENTER();
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Context* context = as<Context>(handle);
    if (context == nullptr || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
    if (t_depth > 0 && t_stack[t_depth - 1] == context) --t_depth;
    drop_context(context);
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext handle) {
    FT_ENTER();
    Context* context = as<Context>(handle);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (t_depth == kStackDepth) return CUDA_ERROR_OUT_OF_MEMORY;
    t_stack[t_depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext* out) {
    FT_ENTER();
    if (t_depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
    --t_depth;
    if (out != nullptr) *out = reinterpret_cast<CUcontext>(t_stack[t_depth]);
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext handle) {
    FT_ENTER();
    if (handle == nullptr) {
        if (t_depth > 0) --t_depth;
        return CUDA_SUCCESS;
    }
    Context* context = as<Context>(handle);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (t_depth == 0) t_depth = 1;
    t_stack[t_depth - 1] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* out) {
    FT_ENTER();
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = reinterpret_cast<CUcontext>(current());
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
    FT_ENTER();
    Context* context = nullptr;
    FT_TRY(require_context(&context));
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = context->device;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned* flags) {
    FT_ENTER();
    Context* context = nullptr;
    FT_TRY(require_context(&context));
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = context->flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long* id) {
    FT_ENTER();
    Context* context = handle != nullptr ? as<Context>(handle) : current();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *id = context->id;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned* version) {
    FT_ENTER();
    if (handle != nullptr && as<Context>(handle) == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = 3020;
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void) {
    wait_a_moment();
    Context* context = nullptr;
    {
        FT_ENTER();
        FT_TRY(require_context(&context));
    }
    wait_for_device(context->device);
    FT_ENTER();
    synchronised();
    return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    FT_ENTER();
    Context* context = nullptr;
    FT_TRY(require_context(&context));
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = -5;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
    FT_ENTER();
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    switch (limit) {
        case CU_LIMIT_STACK_SIZE:
            *value = 1024;
            break;
        case CU_LIMIT_PRINTF_FIFO_SIZE:
            *value = 1 << 20;
            break;
        case CU_LIMIT_MALLOC_HEAP_SIZE:
            *value = 8 << 20;
            break;
        default:
            *value = 0;
            break;
    }
    return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit, size_t) {
    FT_ENTER();
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache* out) {
    FT_ENTER();
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = CU_FUNC_CACHE_PREFER_NONE;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache) {
    FT_ENTER();
    return CUDA_SUCCESS;
}

CUresult cuCtxResetPersistingL2Cache(void) {
    FT_ENTER();
    return CUDA_SUCCESS;
}

// Devices of one process can access each other, as on a board with NVLink.
CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
    FT_ENTER();
    if (!valid_device(device) || !valid_device(peer)) return CUDA_ERROR_INVALID_DEVICE;
    if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *can = device != peer ? 1 : 0;
    return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext handle, unsigned flags) {
    FT_ENTER();
    Context* context = nullptr;
    FT_TRY(require_context(&context));
    const Context* peer = as<Context>(handle);
    if (peer == nullptr || peer == context) return CUDA_ERROR_INVALID_CONTEXT;
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (peer->device == context->device) return CUDA_ERROR_INVALID_DEVICE;
    const uint64_t bit = uint64_t{1} << peer->device;
    if ((context->peers & bit) != 0) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    context->peers |= bit;
    return CUDA_SUCCESS;
}

CUresult cuCtxDisablePeerAccess(CUcontext handle) {
    FT_ENTER();
    Context* context = nullptr;
    FT_TRY(require_context(&context));
    const Context* peer = as<Context>(handle);
    if (peer == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    const uint64_t bit = uint64_t{1} << peer->device;
    if ((context->peers & bit) == 0) return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    context->peers &= ~bit;
    return CUDA_SUCCESS;
}
