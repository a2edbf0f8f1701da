// Hooks of loaded code: modules and libraries. Code and static variables need device memory,
// immediately or (with lazy loading) at a kernel's first launch. Only the immediate part is
// measured here. Code is also loaded inside other calls, and is recorded there too.
#include "hooks/hook_call.h"
#include "hooks/memory_delta.h"

namespace fragtrace::preload {
namespace {

template <Hook kHook, typename... Arguments>
int load(const void* caller, void** module, Arguments... arguments) {
    MemoryDelta delta(kDeviceUnknown, caller);
    return around<kHook, Nested::kRecorded>(
        caller,
        [&](Call&) {
            delta.before(false);
            return uint64_t{0};
        },
        [&](Call& call, int result) {
            if (result == kSuccess) {
                call.record({.kind = EventKind::kModuleLoad,
                             .device = call.current_device(),
                             .address = number(*module),
                             .size = delta.after()});
            }
        },
        module,
        arguments...);
}

template <Hook kHook>
int unload(const void* caller, void* module) {
    return around<kHook, Nested::kRecorded>(
        caller,
        [&](Call& call) {
            return call.record({.kind = EventKind::kModuleUnload,
                                .device = call.current_device(),
                                .address = number(module)});
        },
        [](Call&, int) {},
        module);
}

}  // namespace

FT_HOOK_2(cuModuleLoad, load)
FT_HOOK_2(cuModuleLoadData, load)
FT_HOOK_5(cuModuleLoadDataEx, load)
FT_HOOK_2(cuModuleLoadFatBinary, load)
FT_HOOK_8(cuLibraryLoadData, load)
FT_HOOK_8(cuLibraryLoadFromFile, load)
FT_HOOK_1(cuModuleUnload, unload)
FT_HOOK_1(cuLibraryUnload, unload)

}  // namespace fragtrace::preload
