/* Looks for CUDA functions in a process without CUDA. None may be found. */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>

extern int cudaMalloc(void** address, size_t bytes) __attribute__((weak));

static const char* const kNames[] = {
    "cuMemAlloc_v2", "cuGetProcAddress_v2", "cudaMalloc", "cudaGetDeviceCount"};

int main(void) {
    void* program = dlopen(NULL, RTLD_NOW);
    for (size_t i = 0; i < sizeof kNames / sizeof *kNames; ++i) {
        CHECK(dlsym(RTLD_DEFAULT, kNames[i]) == NULL);
        CHECK(dlerror() != NULL);
        CHECK(dlsym(RTLD_NEXT, kNames[i]) == NULL);
        CHECK(dlerror() != NULL);
        CHECK(dlsym(program, kNames[i]) == NULL);
        CHECK(dlerror() != NULL);
        CHECK(dlvsym(RTLD_DEFAULT, kNames[i], "libcudart.so.13") == NULL);
        CHECK(dlerror() != NULL);
    }
    CHECK(dlsym(RTLD_DEFAULT, "cu") == NULL && dlsym(RTLD_DEFAULT, "c") == NULL);
    CHECK(dlsym(RTLD_DEFAULT, "cuMemAlloc_v") == NULL && dlsym(RTLD_DEFAULT, "cuMem") == NULL);
    CHECK(dlsym(RTLD_DEFAULT, "printf") != NULL);
    CHECK(dlvsym(RTLD_DEFAULT, "dlsym", "GLIBC_2.2.5") != NULL);
    if (cudaMalloc != NULL) { /* a weak reference does bind to the recorder */
        void* address = program;
        CHECK(cudaMalloc(&address, 1) == 3 && address == program);
    }
    return 0;
}
