/* After the first calls it opens plug-ins that come with newer copies of libraries. The loader
 * reuses a loaded library for any other of the same name. */
#include "client.h"

#include <dlfcn.h>

int main(void) {
    device_work(200);
    static const char* const names[] = {"zstd", "unwind", "lzma"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        char path[4096];
        snprintf(path, sizeof path, "%s/libneeds_%s.so", getenv("CLIENT_PROGRAMS"), names[i]);
        void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) {
            say_and_die(dlerror());
        }
        int (*answer)(void) = (int (*)(void))dlsym(library, "plugin_answer");
        CHECK(answer != NULL && answer() == 42);
    }
    device_work(200);
    puts("done");
    return 0;
}
