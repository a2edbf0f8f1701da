// The rows of hooks.def without pointers: names are offsets into one text, functions are relative
// addresses. Otherwise the loader would relocate a thousand pointers in every process, and most
// processes never call a hook.
#include "hooks/hook_call.h"
#include "hooks/resolve.h"

#include <stddef.h>
#include <string.h>

// Addresses of the wrappers relative to the table. C++ has no constant for that.
asm(".pushsection .rodata\n"
    ".balign 4\n"
    ".globl fragtrace_wrappers\n"
    ".hidden fragtrace_wrappers\n"
    "fragtrace_wrappers:\n"
#define FT_WRAPPER(symbol)                                         ".protected " #symbol "\n.long " #symbol " - fragtrace_wrappers\n"
#define FT_DRIVER(symbol, base, since, stream, family, parameters) FT_WRAPPER(symbol)
#define FT_RUNTIME(symbol, since, family, parameters)              FT_WRAPPER(symbol)
#define FT_FRAMEWORK(symbol, object, family, result, parameters)   FT_WRAPPER(symbol)
#define FT_NCCL(symbol, parameters)                                FT_WRAPPER(symbol)
#include "hooks/hooks.def"
    ".popsection\n");

extern "C" {
extern const int32_t fragtrace_wrappers[] __attribute__((visibility("hidden")));
}

namespace fragtrace::preload {
namespace {

constexpr size_t kHookCount = static_cast<size_t>(Hook::kCount);
constexpr size_t kInterposedCount = static_cast<size_t>(Hook::kInterposedCount);

struct Names {
    char none[1];
    char driver[sizeof "libcuda.so"];
    char runtime[sizeof "libcudart.so"];
    char nccl[sizeof "libnccl.so"];
#define FT_DRIVER(symbol, base, since, stream, family, parameters) \
    char name_##symbol[sizeof #symbol];                            \
    char base_##symbol[sizeof base];
#define FT_RUNTIME(symbol, since, family, parameters) char name_##symbol[sizeof #symbol];
#define FT_FRAMEWORK(symbol, object, family, result, parameters) \
    char name_##symbol[sizeof #symbol];                          \
    char object_##symbol[sizeof object];
#define FT_NCCL(symbol, parameters) char name_##symbol[sizeof #symbol];
#include "hooks/hooks.def"
#define FT_CALLED_DRIVER(symbol, parameters)  char name_##symbol[sizeof #symbol];
#define FT_CALLED_RUNTIME(symbol, parameters) char name_##symbol[sizeof #symbol];
#include "hooks/hooks.def"
};

constexpr Names kNames = {
    "",
    "libcuda.so",
    "libcudart.so",
    "libnccl.so",
#define FT_DRIVER(symbol, base, since, stream, family, parameters) #symbol, base,
#define FT_RUNTIME(symbol, since, family, parameters)              #symbol,
#define FT_FRAMEWORK(symbol, object, family, result, parameters)   #symbol, object,
#define FT_NCCL(symbol, parameters)                                #symbol,
#include "hooks/hooks.def"
#define FT_CALLED_DRIVER(symbol, parameters)  #symbol,
#define FT_CALLED_RUNTIME(symbol, parameters) #symbol,
#include "hooks/hooks.def"
};

static_assert(sizeof kNames < 65536);

// Like HookInfo, with texts as offsets into kNames.
struct Row {
    uint16_t name;
    uint16_t base;
    uint16_t object;
    uint16_t since;
    uint8_t stream;
    uint8_t library;
};

constexpr Row kRows[kHookCount] = {
#define FT_AT(member) static_cast<uint16_t>(offsetof(Names, member))
#define FT_DRIVER(symbol, base, since, stream, family, parameters) \
    {FT_AT(name_##symbol), FT_AT(base_##symbol), FT_AT(driver), since, stream, kDriverLibrary},
#define FT_RUNTIME(symbol, since, family, parameters) \
    {FT_AT(name_##symbol), FT_AT(none), FT_AT(runtime), since, kAnyStream, kRuntimeLibrary},
#define FT_FRAMEWORK(symbol, object, family, result, parameters) \
    {FT_AT(name_##symbol), FT_AT(none), FT_AT(object_##symbol), 0, kAnyStream, kFrameworkLibrary},
#define FT_NCCL(symbol, parameters) \
    {FT_AT(name_##symbol), FT_AT(none), FT_AT(nccl), 0, kAnyStream, kNcclLibrary},
#include "hooks/hooks.def"
#define FT_CALLED_DRIVER(symbol, parameters) \
    {FT_AT(name_##symbol), FT_AT(none), FT_AT(driver), 0, kAnyStream, kDriverLibrary},
#define FT_CALLED_RUNTIME(symbol, parameters) \
    {FT_AT(name_##symbol), FT_AT(none), FT_AT(runtime), 0, kAnyStream, kRuntimeLibrary},
#include "hooks/hooks.def"
};

const char* text_at(uint16_t place) {
    return reinterpret_cast<const char*>(&kNames) + place;
}

}  // namespace

HookInfo hook_info(Hook hook) {
    const auto index = static_cast<size_t>(hook);
    const Row& row = kRows[index];
    const char* wrapper = reinterpret_cast<const char*>(fragtrace_wrappers);
    return {text_at(row.name),
            text_at(row.base),
            row.since,
            row.stream,
            row.library,
            text_at(row.object),
            index < kInterposedCount ? const_cast<char*>(wrapper + fragtrace_wrappers[index])
                                     : nullptr};
}

Hook find_hook(const char* name) {
    for (size_t i = 0; i < kInterposedCount; ++i) {
        if (kRows[i].library != kFrameworkLibrary && strcmp(text_at(kRows[i].name), name) == 0) {
            return static_cast<Hook>(i);
        }
    }
    return Hook::kNone;
}

}  // namespace fragtrace::preload
