/* Looks up symbols by dlsym, dlvsym, dlinfo and dladdr, in search order and by handle. Missing
 * symbols must stay missing, even with names of CUDA functions. */
#include "client.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

static void look(const char* where, void* handle, const char* name) {
    dlerror();
    void* symbol = dlsym(handle, name);
    const char* error = dlerror();
    printf("%s %s: %s, %s\n",
           where,
           name,
           symbol == NULL ? "none" : "found",
           error == NULL ? "no error" : "an error");
}

static void look_for_version(const char* where,
                             void* handle,
                             const char* name,
                             const char* version) {
    dlerror();
    void* symbol = dlvsym(handle, name, version);
    const char* error = dlerror();
    printf("%s %s@%s: %s, %s\n",
           where,
           name,
           version,
           symbol == NULL ? "none" : "found",
           error == NULL ? "no error" : "an error");
}

static void look_everywhere(const char* name) {
    look("default", RTLD_DEFAULT, name);
    look("next", RTLD_NEXT, name);
    void* program = dlopen(NULL, RTLD_NOW);
    look("program", program, name);
    dlclose(program);
}

static const char* owner(void* symbol) {
    Dl_info info;
    if (symbol == NULL || dladdr(symbol, &info) == 0) return "none";
    const char* slash = strrchr(info.dli_fname, '/');
    return slash == NULL ? info.dli_fname : slash + 1;
}

int main(void) {
    static const char* const names[] = {"cuMemAlloc_v2",
                                        "cuMemAlloc",
                                        "cuInit",
                                        "cuNoSuchThing",
                                        "cu",
                                        "c",
                                        "",
                                        "malloc",
                                        "dlsym",
                                        "dlclose",
                                        "exit",
                                        "_exit",
                                        "cudaMalloc",
                                        "cudaNoSuchThing"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i)
        look_everywhere(names[i]);
    look_for_version("default", RTLD_DEFAULT, "malloc", "GLIBC_2.2.5");
    look_for_version("default", RTLD_DEFAULT, "malloc", "GLIBC_1.0");
    look_for_version("next", RTLD_NEXT, "cudaMalloc", "libcudart.so.13");
    look_for_version("default", RTLD_DEFAULT, "cudaMalloc", "libcudart.so.13");
    look_for_version("default", RTLD_DEFAULT, "cudaMalloc", "libcudart.so.1");

    /* Functions of the C library are found there, from every caller. */
    printf("malloc is of %s, printf of %s, memcpy of %s\n",
           owner(dlsym(RTLD_DEFAULT, "malloc")),
           owner(dlsym(RTLD_NEXT, "printf")),
           owner(dlvsym(RTLD_DEFAULT, "gettimeofday", "GLIBC_2.2.5")));
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    CHECK(driver != NULL);
    look("driver", driver, "cuMemAlloc_v2");
    look("driver", driver, "cuMemAlloc_v99");
    look("driver", driver, "cudaMalloc");
    look_for_version("driver", driver, "cuMemAlloc_v2", "NO_SUCH_VERSION");
    look_everywhere("cuMemAlloc_v2"); /* opened locally: still invisible to all others */
    struct link_map* map = NULL;
    CHECK(dlinfo(driver, RTLD_DI_LINKMAP, &map) == 0 && map != NULL);
    printf("dlinfo: %s\n", owner(map->l_ld));
    CHECK(dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) == driver);
    look_everywhere("cuMemAlloc_v2");
    device_work(3);
    look_everywhere("cuMemAlloc_v2");
    printf("last error: %s\n", dlerror() == NULL ? "none" : "one that was not mine");
    return 0;
}
