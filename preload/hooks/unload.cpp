// Hook of dlclose, to notice unloaded objects. Cached results for return addresses in them, and
// their unwind rules, must not be used for another object at the same addresses. The call is passed
// on unchanged.
#include "hooks/known_callers.h"
#include "hooks/resolve.h"
#include "stacks/stack_walk.h"
#include "system/modules.h"
#include "system/sys.h"

#include <dlfcn.h>

using namespace fragtrace::preload;

extern "C" FT_PUBLIC int dlclose(void* handle) {
    using Function = int (*)(void*);
    static Function known = nullptr;
    Function real_dlclose = load_relaxed(&known);
    if (real_dlclose == nullptr) {
        real_dlclose = reinterpret_cast<Function>(next_definition("dlclose"));
        __atomic_store_n(&known, real_dlclose, __ATOMIC_RELAXED);
    }
    if (real_dlclose == nullptr) {
        return -1;
    }
    const uint64_t removed = module_version().removed;
    const int result = real_dlclose(handle);
    const SlowPath slow_path;
    if (module_version().removed != removed) {
        forget_callers();
        forget_unloaded_code();
    }
    return result;
}
