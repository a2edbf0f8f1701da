/* Plug-ins are closed and others are opened at the same address: the caller's address alone does
 * not identify its runtime. The two plug-ins are one file linked to different runtimes. */
#include "client.h"

#include <dlfcn.h>

static uintptr_t open_and_call(const char* name, uint64_t base) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", getenv("CLIENT_PROGRAMS"), name);
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        say_and_die(dlerror());
    }
    void* (*plugin_alloc)(size_t) = (void* (*)(size_t))dlsym(library, "plugin_alloc");
    int (*plugin_free)(void*) = (int (*)(void*))dlsym(library, "plugin_free");
    CHECK(plugin_alloc != NULL && plugin_free != NULL);
    void* address = plugin_alloc(1000);
    log_call(kLogAlloc, address, 1000);
    CHECK((uintptr_t)address >> 32 == base >> 32);
    log_call(kLogFree, address, 0);
    CHECK(plugin_free(address) == 0);
    const uintptr_t place = (uintptr_t)plugin_alloc;
    CHECK(dlclose(library) == 0);
    CHECK(dlopen(path, RTLD_NOW | RTLD_NOLOAD) ==
          NULL); /* really unloaded: the recorder did not keep it */
    return place;
}

int main(void) {
    int same_place = 0;
    for (int i = 0; i < 50; ++i) {
        const uintptr_t first = open_and_call("libplugin_one.so", 0x600000000ull);
        const uintptr_t second = open_and_call("libplugin_two.so", 0x700000000ull);
        same_place += first == second;
    }
    CHECK(same_place > 0); /* otherwise this test shows nothing */
    puts("done");
    return 0;
}
