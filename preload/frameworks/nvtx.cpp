// NVTX ranges and marks as phases, without a change to the program.
//
// Programs contain NVTX as a header (libnvToolsExt works the same way). At its first call, the
// header reads the environment variable NVTX_INJECTION64_PATH, opens that library and calls its
// InitializeInjectionNvtx2. The argument is a function that returns tables of function pointers to
// fill in. The header's other way, a weak symbol, is local to the libraries that matter
// (PyTorch's), so a preloaded definition never reaches it.
//
// fragtrace is that library. It does not set the variable: it wraps getenv for this one name. So
// the environment of the program, its children and other tools does not change. If a tool has set
// the variable (Nsight Systems), that tool gets the ranges and fragtrace does not.
#include "frameworks/nvtx_names.h"
#include "hooks/hook_call.h"
#include "hooks/resolve.h"
#include "recorder/options.h"
#include "recorder/ranges.h"
#include "system/plain_text.h"
#include "system/sys.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

using namespace fragtrace;
using namespace fragtrace::preload;

namespace fragtrace::preload {
namespace {

// ---- NVTX's binary interface --------------------------------------------------------------------

using AnyFunction = void (*)();

struct CallbackTable {
    size_t struct_bytes;
    int (*module_functions)(uint32_t module, AnyFunction*** table, uint32_t* size);
};

enum Module : uint32_t { kCore = 1, kCore2 = 5 };

constexpr uint32_t kCallbackTable = 1;
// NVTX's result when no tool counts nesting levels; fragtrace returns the same.
constexpr int kLevelUnknown = -2;

// ---- the functions ------------------------------------------------------------------------------

int push(const void* domain, const NvtxName& name) {
    begin_range(
        RangeKind::kNvtx, static_cast<uint32_t>(reinterpret_cast<uintptr_t>(domain)), name.text());
    return kLevelUnknown;
}

int pop(const void* domain) {
    end_range(RangeKind::kNvtx, static_cast<uint32_t>(reinterpret_cast<uintptr_t>(domain)));
    return kLevelUnknown;
}

template <typename Message>
void mark(Message message) {
    record_mark(RangeKind::kNvtx, NvtxName(nullptr, message).text());
}

template <typename Message>
uint64_t start(Message message) {
    return start_range(RangeKind::kNvtx, NvtxName(nullptr, message).text());
}

void end(uint64_t range) {
    stop_range(RangeKind::kNvtx, range);
}

template <typename Message>
int push_plain(Message message) {
    return push(nullptr, NvtxName(nullptr, message));
}

int pop_plain() {
    return pop(nullptr);
}

void domain_mark(const void* domain, const NvtxEventAttributes* event) {
    record_mark(RangeKind::kNvtx, NvtxName(domain, event).text());
}

uint64_t domain_start(const void* domain, const NvtxEventAttributes* event) {
    return start_range(RangeKind::kNvtx, NvtxName(domain, event).text());
}

void domain_end(const void*, uint64_t range) {
    end(range);
}

int domain_push(const void* domain, const NvtxEventAttributes* event) {
    return push(domain, NvtxName(domain, event));
}

template <typename Character>
uintptr_t register_string(const void*, const Character* text) {
    return add_nvtx_string(NvtxName(nullptr, text).text());
}

template <typename Character>
uintptr_t create_domain(const Character* text) {
    return add_nvtx_domain(NvtxName(nullptr, text).text());
}

// ---- attaching ----------------------------------------------------------------------------------

struct Callback {
    uint32_t index;
    AnyFunction function;
};

template <typename Function>
AnyFunction any(Function* function) {
    return reinterpret_cast<AnyFunction>(function);
}

template <size_t kCount>
bool fill(const CallbackTable* callbacks, Module module, const Callback (&functions)[kCount]) {
    AnyFunction** table = nullptr;
    uint32_t size = 0;
    if (callbacks->module_functions(module, &table, &size) == 0 || table == nullptr) {
        return false;
    }
    for (const Callback& callback : functions) {
        if (callback.index < size && table[callback.index] != nullptr) {
            *table[callback.index] = callback.function;
        }
    }
    return true;
}

using GetEnvironment = char* (*)(const char*);

constexpr char kVariable[] = "NVTX_INJECTION64_PATH";
GetEnvironment g_real_getenv;
// Not zero initially: a variable that is zero would be in a further page of memory, and most
// processes need it only in the constructor.
bool g_before_constructor = true;

// Reads the array itself: before our constructor has run, no function can be called safely.
char* find_variable(const char* name) {
    const size_t size = text_length(name);
    for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
        if (begins_with(*at, name) && (*at)[size] == '=') {
            return *at + size + 1;
        }
    }
    return nullptr;
}

// Looked up at the first call, among the objects that the process was started with.
char* real_getenv(const char* name) {
    GetEnvironment function = load_relaxed(&g_real_getenv);
    if (function == nullptr && !g_before_constructor) {
        function = reinterpret_cast<GetEnvironment>(next_definition_at_start("getenv"));
        store_relaxed(&g_real_getenv, function);
    }
    return function != nullptr ? function(name) : find_variable(name);
}

// Returns the path of this library, as the loader knows it.
char* own_path() {
    Dl_info info{};
    const bool known = dladdr(reinterpret_cast<const void*>(kVariable), &info) != 0;
    return known && info.dli_fname != nullptr ? const_cast<char*>(info.dli_fname) : nullptr;
}

__attribute__((constructor)) void allow_look_ups() {
    (void)our_object();  // done now because it takes the loader's lock; later look-ups do not
    g_before_constructor = false;
}

}  // namespace
}  // namespace fragtrace::preload

extern "C" {

FT_PUBLIC char* getenv(const char* name) noexcept {
    char* value = real_getenv(name);
    if (value != nullptr || !is_same_text(name, kVariable)) [[likely]] {
        return value;
    }
    return option_nvtx() ? own_path() : nullptr;
}

FT_PUBLIC int InitializeInjectionNvtx2(const void* (*get_export_table)(uint32_t)) {
    const auto* callbacks = static_cast<const CallbackTable*>(get_export_table(kCallbackTable));
    if (callbacks == nullptr || callbacks->struct_bytes < sizeof(CallbackTable)) {
        return 0;
    }
    using Attributes = const NvtxEventAttributes*;
    const Callback core[] = {{1, any(mark<Attributes>)},
                             {2, any(mark<const char*>)},
                             {3, any(mark<const wchar_t*>)},
                             {4, any(start<Attributes>)},
                             {5, any(start<const char*>)},
                             {6, any(start<const wchar_t*>)},
                             {7, any(end)},
                             {8, any(push_plain<Attributes>)},
                             {9, any(push_plain<const char*>)},
                             {10, any(push_plain<const wchar_t*>)},
                             {11, any(pop_plain)}};
    const Callback core2[] = {{1, any(domain_mark)},
                              {2, any(domain_start)},
                              {3, any(domain_end)},
                              {4, any(domain_push)},
                              {5, any(pop)},
                              {10, any(register_string<char>)},
                              {11, any(register_string<wchar_t>)},
                              {12, any(create_domain<char>)},
                              {13, any(create_domain<wchar_t>)}};
    const bool has_core = fill(callbacks, kCore, core);
    const bool has_domains = fill(callbacks, kCore2, core2);
    return has_core || has_domains ? 1 : 0;
}
}
