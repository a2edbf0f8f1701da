// The functions by which programs get CUDA functions at run time: dlsym (jump.S jumps here),
// cuGetProcAddress, cudaGetDriverEntryPoint. Each calls the real function with the caller's
// arguments. If the result is a function of the table, it is replaced by our wrapper. Error codes,
// status and missing functions stay unchanged.
#include "hooks/resolve.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

using namespace fragtrace;
using namespace fragtrace::preload;

namespace fragtrace::preload {
namespace {

// Returns the row for a request: same base, same kind of stream, greatest `since` that is not above
// `version`.
Hook hook_of_request(const char* symbol, int version, uint64_t flags) {
    const StreamKind stream =
        (flags & kPerThreadStreamFlag) != 0 ? kPerThreadStream : kLegacyStream;
    Hook found = Hook::kNone;
    for (size_t i = 0; i < static_cast<size_t>(Hook::kInterposedCount); ++i) {
        const auto hook = static_cast<Hook>(i);
        const HookInfo info = hook_info(hook);
        if (info.library != kDriverLibrary || strcmp(info.base, symbol) != 0 ||
            (info.stream != kAnyStream && info.stream != stream) || info.since > version) {
            continue;
        }
        if (found == Hook::kNone || info.since > hook_info(found).since) {
            found = hook;
        }
    }
    return found;
}

// Returns the row of that base whose exported symbol is `function`. A driver may use one address
// for several rows; then the requested row is preferred.
Hook hook_of_address(const char* symbol, const void* function, Hook requested) {
    const link_map* driver = object_at(function);
    Hook found = Hook::kNone;
    for (size_t i = 0; driver != nullptr && i < static_cast<size_t>(Hook::kInterposedCount); ++i) {
        const auto hook = static_cast<Hook>(i);
        const HookInfo info = hook_info(hook);
        bool indirect = false;
        if (info.library == kDriverLibrary && strcmp(info.base, symbol) == 0 &&
            defined_symbol(driver, info.name, &indirect) == function) {
            found = hook == requested || found == Hook::kNone ? hook : found;
        }
    }
    return found;
}

void replace_answer(const char* symbol, void** function, int version, uint64_t flags) {
    if (symbol == nullptr || function == nullptr || *function == nullptr) {
        return;
    }
    const int saved_errno = errno;
    void* replaced = replace_entry_point(*function, symbol, version, flags);
    if (replaced != *function) {
        *function = replaced;
    }
    errno = saved_errno;
}

struct LoaderAnswer {
    uintptr_t decided;  // 0: jump to the real function
    void* symbol;
};

// With RTLD_DEFAULT, or the handle of the whole program, our wrapper is found first. It may be
// returned only if a real function exists.
LoaderAnswer answer_global(Hook hook, const link_map* caller) {
    void* behind = resolve_in_scope(hook, caller);
    if (behind == nullptr) {
        return {1, nullptr};  // the failed look-up has set dlerror()
    }
    (void)dlerror();
    return {1, hook_info(hook).wrapper};
}

// Handles RTLD_NEXT. For an object before ours, the search would end at our wrapper, whether or not
// a real function exists. For an object after ours, the real dlsym gives the right answer. Only
// objects before ours are examined: they are never unloaded.
LoaderAnswer answer_next(Hook hook, const link_map* caller) {
    const link_map* ours = our_object();
    for (const link_map* map = ours == nullptr ? nullptr : ours->l_prev; map != nullptr;
         map = map->l_prev) {
        bool indirect = false;
        if (map == caller) {
            return answer_global(hook, nullptr);
        }
        if (defined_symbol(map, hook_info(hook).name, &indirect) != nullptr) {
            break;
        }
    }
    return {0, nullptr};
}

LoaderAnswer answer_handle(Hook hook, void* handle, const char* version, const link_map* caller) {
    const char* name = hook_info(hook).name;
    void* symbol =
        version == nullptr ? real_dlsym(handle, name) : real_dlvsym(handle, name, version);
    if (symbol == nullptr) {
        return {1, nullptr};
    }
    if (is_ours(symbol)) {
        return answer_global(hook, caller);
    }
    void* wrapper = remember_real(hook, symbol) ? hook_info(hook).wrapper : symbol;
    (void)dlerror();
    return {1, wrapper};
}

}  // namespace

void* replace_entry_point(void* function, const char* symbol, int version, uint64_t flags) {
    if (is_ours(function)) {
        return function;
    }
    const Hook requested = hook_of_request(symbol, version, flags);
    Hook hook = hook_of_address(symbol, function, requested);
    // Since CUDA 12, the header uses this name for another function with fewer parameters. Only the
    // address shows which function a driver means.
    const bool ambiguous = version >= 12000 && strcmp(symbol, "cuGraphInstantiate") == 0;
    if (hook == Hook::kNone && ambiguous) {
        hook = hook_of_address("cuGraphInstantiateWithFlags", function, Hook::kNone);
    }
    if (hook == Hook::kNone && version <= kNewestKnownVersion && !ambiguous) {
        hook = requested;
    }
    if (hook == Hook::kNone || !remember_real(hook, function)) {
        return function;
    }
    return hook_info(hook).wrapper;
}

}  // namespace fragtrace::preload

extern "C" {

// jump.S calls this for names that begin with "cu" or "nc".
__attribute__((visibility("hidden"), used)) LoaderAnswer fragtrace_dlsym(void* handle,
                                                                         const char* name,
                                                                         const char* version,
                                                                         const void* caller) {
    const Hook hook = find_hook(name);
    // A version can only match a versioned definition, which is a real one.
    if (hook == Hook::kNone ||
        (version != nullptr && (handle == RTLD_DEFAULT || handle == RTLD_NEXT))) {
        return {0, nullptr};
    }
    const int saved_errno = errno;
    LoaderAnswer answer{0, nullptr};
    if (handle == RTLD_NEXT) {
        answer = answer_next(hook, object_at(caller));
    } else if (handle == RTLD_DEFAULT) {
        answer = answer_global(hook, object_at(caller));
    } else {
        answer = answer_handle(hook, handle, version, object_at(caller));
    }
    errno = saved_errno;
    return answer;
}

FT_PUBLIC CUresult cuGetProcAddress(const char* symbol,
                                    void** function,
                                    int version,
                                    uint64_t flags) {
    auto* call = real<Hook::k_cuGetProcAddress>(__builtin_return_address(0));
    if (call == nullptr) {
        return kNotInitialized;
    }
    const CUresult result = call(symbol, function, version, flags);
    if (result == kSuccess) {
        replace_answer(symbol, function, version, flags);
    }
    return result;
}

FT_PUBLIC CUresult
cuGetProcAddress_v2(const char* symbol, void** function, int version, uint64_t flags, int* status) {
    auto* call = real<Hook::k_cuGetProcAddress_v2>(__builtin_return_address(0));
    if (call == nullptr) {
        return kNotInitialized;
    }
    const CUresult result = call(symbol, function, version, flags, status);
    if (result == kSuccess) {
        replace_answer(symbol, function, version, flags);
    }
    return result;
}

// Without a version parameter, the runtime uses its own version. `status` does not exist before
// CUDA 12; it is then only passed through.
#define FT_ENTRY_POINT(name)                                                          \
    FT_PUBLIC cudaError_t name(                                                       \
        const char* symbol, void** function, unsigned long long flags, int* status) { \
        const void* caller = __builtin_return_address(0);                             \
        auto* call = real<Hook::k_##name>(caller);                                    \
        if (call == nullptr) {                                                        \
            return kNotInitialized;                                                   \
        }                                                                             \
        const cudaError_t result = call(symbol, function, flags, status);             \
        int version = 0;                                                              \
        auto* runtime_version = real<Hook::k_cudaRuntimeGetVersion>(caller);          \
        if (result == kSuccess && runtime_version != nullptr &&                       \
            runtime_version(&version) == kSuccess) {                                  \
            replace_answer(symbol, function, version, flags);                         \
        }                                                                             \
        return result;                                                                \
    }
FT_ENTRY_POINT(cudaGetDriverEntryPoint)
FT_ENTRY_POINT(cudaGetDriverEntryPoint_ptsz)

#define FT_ENTRY_POINT_BY_VERSION(name)                                            \
    FT_PUBLIC cudaError_t name(const char* symbol,                                 \
                               void** function,                                    \
                               unsigned int version,                               \
                               unsigned long long flags,                           \
                               int* status) {                                      \
        auto* call = real<Hook::k_##name>(__builtin_return_address(0));            \
        if (call == nullptr) {                                                     \
            return kNotInitialized;                                                \
        }                                                                          \
        const cudaError_t result = call(symbol, function, version, flags, status); \
        if (result == kSuccess) {                                                  \
            replace_answer(symbol, function, static_cast<int>(version), flags);    \
        }                                                                          \
        return result;                                                             \
    }
FT_ENTRY_POINT_BY_VERSION(cudaGetDriverEntryPointByVersion)
FT_ENTRY_POINT_BY_VERSION(cudaGetDriverEntryPointByVersion_ptsz)

}  // extern "C"
