/* Launches kernels that succeed, that fail, and that fail because memory ran out. With a number as
 * argument it makes so many successful launches and prints the nanoseconds of each. */
#include "check.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

typedef int (*launch_t)(void*,
                        unsigned,
                        unsigned,
                        unsigned,
                        unsigned,
                        unsigned,
                        unsigned,
                        unsigned,
                        void*,
                        void**,
                        void**);

static int launch(launch_t function, int result) {
    return function((void*)11, (unsigned)result, 2, 3, 4, 5, 6, 7, (void*)8, (void*)9, (void*)10);
}

int main(int argc, char** argv) {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    CHECK(driver != NULL);
    const launch_t function = (launch_t)dlsym(driver, "cuLaunchKernel");
    CHECK(function != NULL);
    if (argc > 1) {
        const long count = atol(argv[1]);
        struct timespec begin, end;
        launch(function, 0);
        clock_gettime(CLOCK_MONOTONIC, &begin);
        for (long i = 0; i < count; ++i) {
            launch(function, 0);
        }
        clock_gettime(CLOCK_MONOTONIC, &end);
        const double ns =
            (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
        printf("%.1f ns\n", ns / (double)count);
        return 0;
    }
    for (int result = 0; result < 5; ++result) {
        errno = 77;
        CHECK(launch(function, result) == result);
        CHECK(errno == 77);
    }
    return 0;
}
