// cuGetProcAddress honours the requested version. cuGetExportTable always fails, because the
// driver's private tables are not imitated. It explains on stderr what to do instead.
#include "driver/state.h"

#include <unistd.h>

extern "C" {
#define FT_ENTRY(name, version, per_thread, symbol) \
    FT_EXPORT extern int ft_##symbol(void) __asm__(#symbol);
#include "entry_points.inc"
#undef FT_ENTRY
}

namespace fragtrace::vgpu {
namespace {

struct EntryPoint {
    const char* name;
    int version;
    bool per_thread;
    void* function;
};

void* pointer(int (*function)(void)) {
    return reinterpret_cast<void*>(function);
}

// Sorted by name. Rows of one name: first those without per-thread stream, then by rising version.
const EntryPoint* entry_points(int* count) {
    static const EntryPoint kTable[] = {
#define FT_ENTRY(name, version, per_thread, symbol) \
    {#name, version, per_thread != 0, pointer(ft_##symbol)},
#include "entry_points.inc"
#undef FT_ENTRY
    };
    *count = int(sizeof kTable / sizeof kTable[0]);
    return kTable;
}

struct Found {
    void* function;
    bool name_known;
};

Found find_entry(const char* name, int version, bool per_thread) {
    int count = 0;
    const EntryPoint* table = entry_points(&count);
    Found found{nullptr, false};
    int best = -1;
    for (int i = 0; i < count; ++i) {
        const EntryPoint& row = table[i];
        if (row.per_thread != per_thread || strcmp(row.name, name) != 0) continue;
        found.name_known = true;
        if (row.version > version || row.version < best) continue;
        best = row.version;
        found.function = row.function;
    }
    return found;
}

}  // namespace
}  // namespace fragtrace::vgpu

using namespace fragtrace::vgpu;

CUresult cuGetProcAddress_v2(const char* name,
                             void** function,
                             int version,
                             cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
    if (name == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *function = nullptr;
    const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
    Found found{nullptr, false};
    if (per_thread) found = find_entry(name, version, true);
    if (found.function == nullptr) found = find_entry(name, version, false);
    *function = found.function;
    CUdriverProcAddressQueryResult result = CU_GET_PROC_ADDRESS_SUCCESS;
    if (found.function == nullptr) {
        result = found.name_known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                  : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    }
    if (status != nullptr) *status = result;
    // A caller that passes no `status` can see a missing function only in the result.
    return found.function == nullptr && status == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

CUresult cuGetExportTable(const void** table, const CUuuid*) {
    if (table != nullptr) *table = nullptr;
    static bool said;
    if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) {
        constexpr char kLine[] =
            "fragtrace: a CUDA runtime linked statically into this program or one of its libraries "
            "cannot run on the virtual GPU; build with nvcc -cudart shared, or use a real GPU\n";
        (void)!write(2, kLine, sizeof kLine - 1);
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}
