/* Looks for two versions of a runtime function: one that exists and one that does not. */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>

int main(void) {
    void* runtime = dlopen("libcudart.so.13", RTLD_NOW);
    CHECK(runtime != NULL);
    CHECK(dlvsym(runtime, "cudaMalloc", "libcudart.so.13") != NULL);
    CHECK(dlvsym(runtime, "cudaMalloc", "libcudart.so.99") == NULL);
    CHECK(dlerror() != NULL);
    CHECK(dlvsym(runtime, "cudaMalloc", "libcudart.so.13") == dlsym(runtime, "cudaMalloc"));
    return 0;
}
