#include "hooks/resolve.h"

#include "hooks/framework.h"
#include "hooks/known_callers.h"
#include "system/plain_text.h"
#include "system/sys.h"

#include <dlfcn.h>
#include <errno.h>
#include <initializer_list>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// fragtrace_find_loader sets these; jump.S reads them.
extern "C" {
__attribute__((visibility("hidden"))) void* fragtrace_real_loader[2];
__attribute__((visibility("hidden"))) void fragtrace_find_loader();
}

namespace fragtrace::preload {
namespace {

constexpr size_t kHookCount = static_cast<size_t>(Hook::kCount);

// Cached for a function that is only called, if its library is loaded but does not have it.
char g_missing;

// Addresses seen through dlsym and cuGetProcAddress, one per hook.
void* g_seen[kHookCount];

// ---- preload order ------------------------------------------------------------------------------

constexpr size_t kPreloadList_bytes = 8192;
// Most processes need these two only in the constructor. Constants, and variables that are zero
// initially, would be in further pages of memory.
__attribute__((section(".data"))) char g_preload_variable[] = "LD_PRELOAD=";
char g_short_preload_list[256] = " ";
char g_long_preload_list[kPreloadList_bytes];

// Programs remove or change LD_PRELOAD for their children. The value at the process's start says
// which objects are interposers.
__attribute__((constructor)) void keep_preload_list() {
    for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
        if (!begins_with(*at, g_preload_variable)) {
            continue;
        }
        const char* list = *at + sizeof g_preload_variable - 1;
        const size_t length = text_length(list);
        char* kept =
            length < sizeof g_short_preload_list ? g_short_preload_list : g_long_preload_list;
        for (size_t i = 0; length < kPreloadList_bytes && i <= length; ++i) {
            kept[i] = list[i];
            asm volatile("");
        }
        return;
    }
}

// Falls back to the environment before our constructor has run, and if the list did not fit.
const char* preload_list() {
    if (g_long_preload_list[0] != '\0') {
        return g_long_preload_list;
    }
    return g_short_preload_list[0] != ' ' ? g_short_preload_list : getenv("LD_PRELOAD");
}

// True if LD_PRELOAD named the object.
bool is_preload(const link_map* map) {
    const char* list = preload_list();
    const char* name = base_name(map);
    const size_t length = text_length(name);
    if (list == nullptr || length == 0) {
        return false;
    }
    for (const char* at = list; *at != '\0';) {
        size_t entry = 0;
        while (at[entry] != '\0' && at[entry] != ':' && at[entry] != ' ') {
            ++entry;
        }
        if (entry >= length && begins_with(at + entry - length, name) &&
            (entry == length || at[entry - length - 1] == '/')) {
            return true;
        }
        at += entry + (at[entry] != '\0' ? 1 : 0);
    }
    return false;
}

// Returns the first definition in a preloaded object after `after` in load order.
void* preload_definition(const link_map* after, const char* name) {
    for (const link_map* map = after->l_next; map != nullptr && is_preload(map);
         map = map->l_next) {
        bool indirect = false;
        void* symbol = defined_symbol(map, name, &indirect);
        if (symbol != nullptr && !indirect) {
            return symbol;
        }
    }
    return nullptr;
}

// Like find_definition, for objects that are never unloaded. It does not use dl_iterate_phdr, which
// may be interposed by a library that is not ready to be called yet.
void* early_definition(const char* prefix, const char* name) {
    for (const link_map* map = first_object(); map != nullptr; map = map->l_next) {
        bool indirect = false;
        if (begins_with(base_name(map), prefix)) {
            return defined_symbol(map, name, &indirect);
        }
    }
    return nullptr;
}

bool precedes(const link_map* first, const link_map* second) {
    for (const link_map* map = first; map != nullptr; map = map->l_next) {
        if (map == second) {
            return true;
        }
    }
    return false;
}

// Returns true if the object is another interposer of `name`: preloaded, defines it, and is not the
// library that the name belongs to.
bool is_interposer(const link_map* map, const HookInfo& info) {
    bool indirect = false;
    return is_preload(map) && !begins_with(base_name(map), info.object) &&
           defined_symbol(map, info.name, &indirect) != nullptr;
}

// The real dlsym called from this library: RTLD_NEXT then means "after this library". Must not be a
// tail call.
[[gnu::noinline]] void* dlsym_from_here(void* handle, const char* name) {
    void* symbol = real_dlsym(handle, name);
    asm volatile("" : "+r"(symbol));
    return symbol;
}

// Returns what the caller's own object would find: in itself and in the objects that it needs.
void* scope_definition(const link_map* caller, const char* name) {
    const char* path = caller->l_name[0] == '\0' ? nullptr : caller->l_name;
    void* handle = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
    if (handle == nullptr) {
        return nullptr;
    }
    void* symbol = real_dlsym(handle, name);
    dlclose(handle);
    return symbol;
}

// Keeps the object of a real function loaded, so that a cached address stays valid.
void pin(const void* function) {
    const link_map* map = object_at(function);
    if (map != nullptr && map->l_name[0] != '\0') {
        (void)dlopen(map->l_name, RTLD_NOLOAD | RTLD_LAZY | RTLD_NODELETE);
    }
}

bool usable(const void* symbol, const link_map* excluded) {
    return symbol != nullptr && !is_ours(symbol) &&
           (excluded == nullptr || object_at(symbol) != excluded);
}

AddressRange range_of_caller(const void* caller) {
    const link_map* map = object_at(caller);
    const AddressRange range = map == nullptr ? AddressRange{} : object_range(map);
    return range.contains(caller) ? range : AddressRange{};
}

void* resolve_slowly(Hook hook, const void* caller) {
    const SignalsHeldBack no_signals;  // a signal handler's first call must not interrupt the
                                       // loader
    const HookInfo info = hook_info(hook);
    const link_map* object = object_at(caller);
    if (object != nullptr) {
        torch_note_object(object);
        tensorflow_note_object(object);
        onnxruntime_note_object(object);
        ggml_note_object(object);
    }
    void* symbol = resolve_in_scope(hook, object);
    if (symbol == nullptr) {
        symbol = __atomic_load_n(&g_seen[static_cast<size_t>(hook)], __ATOMIC_ACQUIRE);
    }
    if (symbol == nullptr) {
        symbol = find_definition(first_object(), info.object, info.name);
    }
    if (symbol != nullptr) {
        pin(symbol);
    } else if (info.wrapper == nullptr && find_object(info.object) != nullptr) {
        symbol = &g_missing;
    }
    (void)dlerror();  // our failed look-ups must not appear as the host's errors
    return symbol;
}

}  // namespace

void* real_dlsym(void* handle, const char* name) {
    if (__atomic_load_n(&fragtrace_real_loader[0], __ATOMIC_ACQUIRE) == nullptr) {
        fragtrace_find_loader();
    }
    auto* function = reinterpret_cast<void* (*)(void*, const char*)>(fragtrace_real_loader[0]);
    void* symbol = function == nullptr ? nullptr : function(handle, name);
    asm volatile("" : "+r"(symbol));  // prevents a tail call: the real dlsym examines its caller
    return symbol;
}

void* real_dlvsym(void* handle, const char* name, const char* version) {
    if (__atomic_load_n(&fragtrace_real_loader[1], __ATOMIC_ACQUIRE) == nullptr) {
        fragtrace_find_loader();
    }
    using Function = void* (*)(void*, const char*, const char*);
    auto* function = reinterpret_cast<Function>(fragtrace_real_loader[1]);
    void* symbol = function == nullptr ? nullptr : function(handle, name, version);
    asm volatile("" : "+r"(symbol));
    return symbol;
}

void* resolve_in_scope(Hook hook, const link_map* caller) {
    const HookInfo info = hook_info(hook);
    const link_map* ours = our_object();
    const link_map* interposer =
        caller != nullptr && is_interposer(caller, info) ? caller : nullptr;
    const link_map* after = interposer != nullptr && precedes(ours, interposer) ? interposer : ours;
    void* symbol = after == nullptr ? nullptr : preload_definition(after, info.name);
    if (symbol != nullptr) {
        return symbol;
    }
    if (caller != nullptr) {
        symbol = scope_definition(caller, info.name);
        if (usable(symbol, interposer)) {
            return symbol;
        }
    }
    if (interposer != nullptr) {
        // The interposer wants the next definition; the objects that it needs follow it in load
        // order.
        return find_definition(interposer->l_next, info.object, info.name);
    }
    symbol = dlsym_from_here(RTLD_NEXT, info.name);
    return usable(symbol, nullptr) ? symbol : nullptr;
}

void* next_definition(const char* name) {
    void* symbol = preload_definition(our_object(), name);
    return symbol != nullptr ? symbol : dlsym_from_here(RTLD_NEXT, name);
}

bool remember_real(Hook hook, void* function) {
    void*& seen = g_seen[static_cast<size_t>(hook)];
    void* expected = nullptr;
    if (__atomic_compare_exchange_n(
            &seen, &expected, function, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        pin(function);
        return true;
    }
    // There is only one driver, whatever address it has; but two runtimes are two different
    // libraries.
    return expected == function || hook_info(hook).library == kDriverLibrary;
}

void* resolve(Hook hook, const void* caller) {
    caller = torch_canonical_caller(caller);
    void* function = known_real(hook, caller);
    if (function != nullptr) {
        if (function == &g_missing) {
            return nullptr;
        }
        count_call(hook, caller, function);
        return function;
    }
    const uintptr_t object = known_object(caller).begin;
    function = object == 0 ? nullptr : known_real(hook, reinterpret_cast<const void*>(object));
    const SlowPath slow_path;
    const bool is_new = function == nullptr;
    AddressRange range{};
    if (is_new) {
        function = resolve_slowly(hook, caller);
        if (object == 0) {
            range = range_of_caller(caller);
        }
    }
    if (function != nullptr) {
        keep_real(hook, caller, function, is_new ? object : 0, range);
    }
    return function == &g_missing ? nullptr : function;
}

}  // namespace fragtrace::preload

// A later preload may interpose dlsym too: it stays in the chain.
extern "C" void fragtrace_find_loader() {
    using namespace fragtrace::preload;
    static const char* const kNames[] = {"dlsym", "dlvsym"};
    for (int i = 0; i < 2; ++i) {
        void* function = preload_definition(our_object(), kNames[i]);
        // libdl: for glibc before 2.34.
        for (const char* library : {"libc.so", "libdl.so"}) {
            if (function == nullptr) {
                function = early_definition(library, kNames[i]);
            }
        }
        __atomic_store_n(&fragtrace_real_loader[i], function, __ATOMIC_RELEASE);
    }
}
