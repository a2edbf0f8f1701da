/* Loads the libraries named as arguments privately. Each allocates and frees in turn, TOY_ROUNDS
 * times. With TOY_UNLOADS each is unloaded again, so the next one may use its address. */
#include "check.h"

#include <dlfcn.h>
#include <stdlib.h>

int main(int count, char** arguments) {
    const char* rounds = getenv("TOY_ROUNDS");
    for (int round = 0; round < (rounds == NULL ? 3 : atoi(rounds)); ++round) {
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
            if (getenv("TOY_UNLOADS") != NULL) {
                CHECK(dlclose(library) == 0);
            }
        }
    }
    return 0;
}
