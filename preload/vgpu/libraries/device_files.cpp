// For programs that look for NVIDIA's device files before they load CUDA (JAX does): while a
// virtual GPU is set, calls that ask about these files are asked about /dev/null instead. Users
// preload this library themselves (README.md, "Device files").
#include "common/stub.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

namespace {

bool is_device_file(const char* path) {
    constexpr char kBegin[] = "/dev/nvidia";
    if (path == nullptr || strncmp(path, kBegin, sizeof kBegin - 1) != 0) return false;
    const char* rest = path + sizeof kBegin - 1;
    return strcmp(rest, "ctl") == 0 || strcmp(rest, "-uvm") == 0 ||
           (*rest >= '0' && *rest <= '9' && strspn(rest, "0123456789") == strlen(rest));
}

const char* seen(const char* path) {
    if (!is_device_file(path)) return path;
    const char* card = getenv("FRAGTRACE_VIRTUAL_GPU");
    return card != nullptr && *card != '\0' ? "/dev/null" : path;
}

template <typename Function>
Function* next(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// The C library declares some of these with attributes that a definition here cannot repeat, so
// each has another name in the source.
#define FT_PATH_FUNCTION(name, parameters, arguments)             \
    extern "C" FT_EXPORT int ft_##name parameters __asm__(#name); \
    int ft_##name parameters {                                    \
        static int(*real) parameters = nullptr;                   \
        if (real == nullptr) real = next<int parameters>(#name);  \
        return real arguments;                                    \
    }

FT_PATH_FUNCTION(stat, (const char* path, void* out), (seen(path), out))
FT_PATH_FUNCTION(stat64, (const char* path, void* out), (seen(path), out))
FT_PATH_FUNCTION(lstat, (const char* path, void* out), (seen(path), out))
FT_PATH_FUNCTION(lstat64, (const char* path, void* out), (seen(path), out))
FT_PATH_FUNCTION(__xstat, (int version, const char* path, void* out), (version, seen(path), out))
FT_PATH_FUNCTION(__xstat64, (int version, const char* path, void* out), (version, seen(path), out))
FT_PATH_FUNCTION(fstatat,
                 (int folder, const char* path, void* out, int flags),
                 (folder, seen(path), out, flags))
FT_PATH_FUNCTION(fstatat64,
                 (int folder, const char* path, void* out, int flags),
                 (folder, seen(path), out, flags))
FT_PATH_FUNCTION(access, (const char* path, int mode), (seen(path), mode))
FT_PATH_FUNCTION(faccessat,
                 (int folder, const char* path, int mode, int flags),
                 (folder, seen(path), mode, flags))
