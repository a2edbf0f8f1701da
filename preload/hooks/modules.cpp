// Hooks of loaded code: modules and libraries. Code and static variables take device memory, at
// once or, where loading is lazy, with a kernel's first launch; what is measured here is what is
// taken at once. Loading happens inside other calls as well, and is recorded there too.
#include "hooks/hooks.h"
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
