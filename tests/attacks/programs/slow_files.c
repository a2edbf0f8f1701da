/* Preloaded after the recorder: storage that hangs. SLOW=open: a trace is never opened. SLOW=ring:
 * the folder of the ring does not answer. SLOW=write: the third and every later write of a trace
 * does not return. SLOW=little: each write takes half a second. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/types.h>
#include <unistd.h>

static int is_slow(const char* what) {
    const char* slow = getenv("SLOW");
    return slow != NULL && strcmp(slow, what) == 0;
}

static void hang(void) {
    for (;;) {
        sleep(1000);
    }
}

int open(const char* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    const int makes = (flags & O_TMPFILE) == O_TMPFILE || (flags & O_CREAT) != 0;
    if (makes && strstr(path, "/traces") != NULL && is_slow("open")) {
        hang();
    }
    int (*real)(const char*, int, ...) = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, "open");
    return real(path, flags, mode);
}

int statfs(const char* path, struct statfs* place) {
    if (strstr(path, "/rings") != NULL && is_slow("ring")) {
        hang();
    }
    int (*real)(const char*, struct statfs*) =
        (int (*)(const char*, struct statfs*))dlsym(RTLD_NEXT, "statfs");
    return real(path, place);
}

ssize_t pwrite(int file, const void* data, size_t bytes, off_t offset) {
    static int count;
    if (is_slow("write") && ++count >= 3) {
        hang();
    }
    if (is_slow("little")) {
        usleep(500000);
    }
    ssize_t (*real)(int, const void*, size_t, off_t) =
        (ssize_t(*)(int, const void*, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
    return real(file, data, bytes, offset);
}
