/* Shared by the client programs: a check that ends the program, and a check that errno is kept. */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                         \
    do {                                                                         \
        if (!(condition)) {                                                      \
            printf("%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

/* The result of a CUDA call that must not change errno. */
#define KEEPS_ERRNO(call) (errno = 77, check_errno_after((int)(call)))

static inline int check_errno_after(int result) {
    CHECK(errno == 77);
    return result;
}
