// Names and descriptions of results. The names come from the installed header. A description is the
// name in plain words.
#include "driver/state.h"

namespace fragtrace::vgpu {
namespace {

struct ErrorName {
    CUresult value;
    const char* name;
};

constexpr ErrorName kErrors[] = {
#define FT_ERROR(name, value) {static_cast<CUresult>(value), #name},
#include "driver_errors.inc"
#undef FT_ERROR
};
constexpr int kErrorCount = int(sizeof kErrors / sizeof kErrors[0]);
constexpr int kTextBytes = 80;

int index_of(CUresult result) {
    for (int i = 0; i < kErrorCount; ++i) {
        if (kErrors[i].value == result) return i;
    }
    return -1;
}

// CUDA_ERROR_OUT_OF_MEMORY -> "out of memory"
void describe(const char* name, char* out) {
    constexpr char kPrefix[] = "CUDA_ERROR_";
    if (strncmp(name, kPrefix, sizeof kPrefix - 1) == 0) name += sizeof kPrefix - 1;
    int i = 0;
    for (; name[i] != '\0' && i < kTextBytes - 1; ++i) {
        out[i] = name[i] == '_' ? ' ' : char(name[i] | 0x20);
    }
    out[i] = '\0';
}

char g_texts[kErrorCount][kTextBytes];

}  // namespace
}  // namespace fragtrace::vgpu

using namespace fragtrace::vgpu;

CUresult cuGetErrorName(CUresult result, const char** name) {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const int index = index_of(result);
    *name = index >= 0 ? kErrors[index].name : nullptr;
    return index >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult result, const char** text) {
    if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const int index = index_of(result);
    *text = nullptr;
    if (index < 0) return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        *text = "no error";
        return CUDA_SUCCESS;
    }
    StateLock lock;
    if (g_texts[index][0] == '\0') describe(kErrors[index].name, g_texts[index]);
    *text = g_texts[index];
    return CUDA_SUCCESS;
}

// The virtual driver logs nothing, so it never calls the callback.
CUresult cuLogsRegisterCallback(CUlogsCallback callback, void*, CUlogsCallbackHandle* handle) {
    if (callback == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (handle != nullptr) *handle = nullptr;
    return CUDA_SUCCESS;
}

CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle) {
    return CUDA_SUCCESS;
}
