/* Fills the memory of /dev/shm after its first call. Then it makes calls from more places than the
 * recorder had room for by then. */
#include "client.h"

#include <errno.h>

static int fill(const char* path) {
    static const char zeros[1 << 16];
    const int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    CHECK(fd >= 0);
    while (write(fd, zeros, sizeof zeros) > 0) {
    }
    CHECK(errno == ENOSPC);
    return fd;
}

static int left(unsigned path, int depth);
static int right(unsigned path, int depth);

/* Each path through the two functions is a different stack. */
__attribute__((noinline)) static int go(unsigned path, int depth) {
    if (depth == 0) {
        device_free(device_alloc(512));
        return 1;
    }
    return (path & 1 ? left(path >> 1, depth - 1) : right(path >> 1, depth - 1)) + 1;
}

__attribute__((noinline)) static int left(unsigned path, int depth) {
    return go(path, depth) + 1;
}

__attribute__((noinline)) static int right(unsigned path, int depth) {
    return go(path, depth) + 2;
}

int main(void) {
    enum { kDepth = 14 };

    device_work(10);
    const int fd = fill("/dev/shm/taken");
    int sum = 0;
    for (unsigned path = 0; path < 1u << kDepth; ++path) {
        sum += go(path, kDepth);
    }
    CHECK(unlink("/dev/shm/taken") == 0);
    close(fd);
    printf("%d\n", sum);
    return 0;
}
