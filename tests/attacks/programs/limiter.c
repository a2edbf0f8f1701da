/* Another interposer of dlsym and of driver functions, like libraries that limit the device memory
 * of a container. It returns its own cuMemAlloc_v2 for every look-up, also by cuGetProcAddress, and
 * finds the real dlsym by its version. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef int (*Allocate)(unsigned long long*, size_t);
typedef int (*GetProcAddress)(const char*, void**, int, unsigned long long, int*);

static Allocate g_allocate;
static GetProcAddress g_get;
static int g_allocations;

static void* real_dlsym(void* handle, const char* name) {
    typedef void* (*Dlsym)(void*, const char*);
    static Dlsym real;
    if (real == NULL) {
        real = (Dlsym)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
        if (real == NULL) real = (Dlsym)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
        if (real == NULL) real = (Dlsym)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
    }
    return real == NULL ? NULL : real(handle, name);
}

int cuMemAlloc_v2(unsigned long long* address, size_t bytes) {
    if (g_allocate == NULL) {
        g_allocate = (Allocate)real_dlsym(dlopen("libcuda.so.1", RTLD_LAZY), "cuMemAlloc_v2");
    }
    __atomic_fetch_add(&g_allocations, 1, __ATOMIC_RELAXED);
    return g_allocate(address, bytes);
}

int cuGetProcAddress_v2(
    const char* symbol, void** function, int version, unsigned long long flags, int* status) {
    const int result = g_get(symbol, function, version, flags, status);
    if (result == 0 && strcmp(symbol, "cuMemAlloc") == 0 && *function != NULL) {
        g_allocate = g_allocate == NULL ? (Allocate)*function : g_allocate;
        *function = (void*)cuMemAlloc_v2;
    }
    return result;
}

void* dlsym(void* handle, const char* name) {
    void* symbol = real_dlsym(handle, name);
    if (symbol == NULL || handle == RTLD_NEXT || handle == RTLD_DEFAULT) {
        return symbol;
    }
    if (strcmp(name, "cuMemAlloc_v2") == 0) {
        g_allocate = g_allocate == NULL ? (Allocate)symbol : g_allocate;
        return (void*)cuMemAlloc_v2;
    }
    if (strcmp(name, "cuGetProcAddress_v2") == 0) {
        g_get = g_get == NULL ? (GetProcAddress)symbol : g_get;
        return (void*)cuGetProcAddress_v2;
    }
    return symbol;
}

__attribute__((destructor)) static void tell(void) {
    fprintf(stderr, "limiter: %d allocations\n", g_allocations);
}
