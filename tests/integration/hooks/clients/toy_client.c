/* Loads the libraries named as arguments, privately, and lets each allocate and free. */
#include "check.h"

#include <dlfcn.h>

int main(int count, char** arguments) {
    for (int round = 0; round < 3; ++round) {
        for (int i = 1; i < count; ++i) {
            void* library = dlopen(arguments[i], RTLD_NOW | RTLD_LOCAL);
            CHECK(library != NULL);
            void* (*use)(size_t) = dlsym(library, "toy_use");
            int (*release)(void*) = dlsym(library, "toy_release");
            CHECK(use != NULL && release != NULL);
            void* address = use(1000);
            CHECK(address != NULL);
            printf("%d %p\n", i, address);
            CHECK(release(address) == 0);
        }
    }
    return 0;
}
