/* Uses only the driver, whose functions it finds by dlsym or by cuGetProcAddress, as the argument
 * says. */
#include "client.h"

#include <dlfcn.h>
#include <string.h>

typedef int (*GetProcAddress)(const char*, void**, int, unsigned long long, int*);

static void* g_driver;
static GetProcAddress g_get;

static void* find(const char* base, const char* symbol, int version) {
    void* function = NULL;
    if (g_get == NULL) {
        function = dlsym(g_driver, symbol);
    } else {
        CHECK(g_get(base, &function, version, 0, NULL) == 0);
    }
    CHECK(function != NULL);
    return function;
}

int main(int argc, char** argv) {
    g_driver = dlopen("libcuda.so.1", RTLD_NOW);
    CHECK(g_driver != NULL);
    if (argc > 1 && strcmp(argv[1], "by-entry-point") == 0) {
        g_get = (GetProcAddress)dlsym(g_driver, "cuGetProcAddress_v2");
        CHECK(g_get != NULL);
    }
    int (*init)(unsigned) = (int (*)(unsigned))find("cuInit", "cuInit", 2000);
    int (*retain)(void**, int) =
        (int (*)(void**, int))find("cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain", 7000);
    int (*set)(void*) = (int (*)(void*))find("cuCtxSetCurrent", "cuCtxSetCurrent", 4000);
    int (*allocate)(uint64_t*, size_t) =
        (int (*)(uint64_t*, size_t))find("cuMemAlloc", "cuMemAlloc_v2", 3020);
    int (*release)(uint64_t) = (int (*)(uint64_t))find("cuMemFree", "cuMemFree_v2", 3020);
    void* context = NULL;
    CHECK(init(0) == 0 && retain(&context, 0) == 0 && set(context) == 0);
    for (int i = 0; i < 20; ++i) {
        uint64_t address = 0;
        CHECK(allocate(&address, 1000) == 0);
        log_call(kLogAlloc, (void*)(uintptr_t)address, 1000);
        log_call(kLogFree, (void*)(uintptr_t)address, 0);
        CHECK(release(address) == 0);
    }
    puts("done");
    return 0;
}
