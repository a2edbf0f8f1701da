/* Preloaded before the recorder: lets functions of the C library fail, but only if the recorder
 * calls them.
 *
 * A call site is the place in libfragtrace.so to which a call returns. FAULT_SITES names a file
 * that lists each site once. FAULT_AT is the site whose calls fail. FAULT_HOW is the errno of the
 * failure, or "short" for half of the bytes. FAULT_FROM is the first failing call (0 if unset),
 * FAULT_TO the first that works again. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { kShort = -1, kMaxSites = 1024 };

static uintptr_t g_begin, g_end; /* the recorder's code */
static unsigned long g_at, g_from, g_to;
static int g_how;
static unsigned long g_calls; /* calls at the failing site */
static uintptr_t g_sites[kMaxSites];

static int find_recorder(struct dl_phdr_info* info, size_t size, void* unused) {
    (void)size, (void)unused;
    if (strstr(info->dlpi_name, "libfragtrace.so") == NULL) {
        return 0;
    }
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X) != 0) {
            g_end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
        }
    }
    __atomic_store_n(&g_begin, info->dlpi_addr, __ATOMIC_RELEASE);
    return 1;
}

static unsigned long number_of(const char* name, unsigned long otherwise) {
    const char* text = getenv(name);
    return text == NULL ? otherwise : strtoul(text, NULL, 0);
}

static void begin(void) {
    static int begun;
    if (__atomic_exchange_n(&begun, 1, __ATOMIC_ACQ_REL) == 0) {
        const char* how = getenv("FAULT_HOW");
        g_how = how == NULL ? 0 : strcmp(how, "short") == 0 ? kShort : atoi(how);
        g_from = number_of("FAULT_FROM", 0);
        g_to = number_of("FAULT_TO", ~0ul);
        g_at = number_of("FAULT_AT", 0);
        dl_iterate_phdr(find_recorder, NULL);
    }
}

static void note_site(const char* function, uintptr_t site) {
    static const char* path;
    if (path == NULL && (path = getenv("FAULT_SITES")) == NULL) {
        return;
    }
    for (int i = 0; i < kMaxSites; ++i) {
        uintptr_t none = 0;
        if (__atomic_compare_exchange_n(
                &g_sites[i], &none, site, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            char line[100];
            const int length = snprintf(line, sizeof line, "%s 0x%lx\n", function, site);
            const long file =
                syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
            syscall(SYS_write, file, line, length);
            syscall(SYS_close, file);
            return;
        }
        if (none == site) {
            return;
        }
    }
}

/* The action of the call that returns to `place`: 0 for its usual work, else kShort or an errno. */
static int fault(const char* function, const void* place) {
    begin();
    const uintptr_t from = __atomic_load_n(&g_begin, __ATOMIC_ACQUIRE);
    if (from == 0 || (uintptr_t)place < from || (uintptr_t)place >= g_end) {
        return 0;
    }
    const int before = errno;
    const uintptr_t site = (uintptr_t)place - from;
    note_site(function, site);
    errno = before;
    if (site != g_at) {
        return 0;
    }
    const unsigned long call = __atomic_fetch_add(&g_calls, 1, __ATOMIC_RELAXED);
    return call < g_from || call >= g_to ? 0 : g_how;
}

#define REAL(name)                                                    \
    static __typeof__(&name) real;                                    \
    if (real == NULL) {                                               \
        real = (__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name); \
    }

/* A function that fails with the result `failed` and sets errno. */
#define FAILS(result, name, failed, parameters, arguments)         \
    result name parameters {                                       \
        REAL(name)                                                 \
        const int how = fault(#name, __builtin_return_address(0)); \
        if (how > 0) {                                             \
            errno = how;                                           \
            return failed;                                         \
        }                                                          \
        return real arguments;                                     \
    }

/* A function that returns the error. */
#define GIVES(name, parameters, arguments)                         \
    int name parameters {                                          \
        REAL(name)                                                 \
        const int how = fault(#name, __builtin_return_address(0)); \
        return how > 0 ? how : real arguments;                     \
    }

/* A function that transfers `bytes`, or half of them. */
#define MOVES(name, parameters, bytes, arguments)                  \
    ssize_t name parameters {                                      \
        REAL(name)                                                 \
        const int how = fault(#name, __builtin_return_address(0)); \
        if (how > 0) {                                             \
            errno = how;                                           \
            return -1;                                             \
        }                                                          \
        if (how == kShort && bytes > 1) {                          \
            bytes /= 2;                                            \
        }                                                          \
        return real arguments;                                     \
    }

FAILS(int, access, -1, (const char* path, int mode), (path, mode))
FAILS(int, close, -1, (int fd), (fd))
FAILS(int, fallocate, -1, (int fd, int mode, off_t from, off_t size), (fd, mode, from, size))
FAILS(int, fstat, -1, (int fd, struct stat* file), (fd, file))
FAILS(int,
      fstatat,
      -1,
      (int folder, const char* path, struct stat* file, int flags),
      (folder, path, file, flags))
FAILS(int, fstatfs, -1, (int fd, struct statfs* place), (fd, place))
FAILS(int, fstatvfs, -1, (int fd, struct statvfs* place), (fd, place))
FAILS(int, ftruncate, -1, (int fd, off_t size), (fd, size))
FAILS(char*, getcwd, NULL, (char* path, size_t size), (path, size))
FAILS(ssize_t, getrandom, -1, (void* bytes, size_t size, unsigned flags), (bytes, size, flags))
FAILS(int,
      linkat,
      -1,
      (int from, const char* old, int to, const char* name, int flags),
      (from, old, to, name, flags))
FAILS(off_t, lseek, -1, (int fd, off_t to, int whence), (fd, to, whence))
FAILS(int, madvise, -1, (void* memory, size_t size, int advice), (memory, size, advice))
FAILS(int, mincore, -1, (void* memory, size_t size, unsigned char* pages), (memory, size, pages))
FAILS(int, mkdir, -1, (const char* path, mode_t mode), (path, mode))
FAILS(void*,
      mmap,
      MAP_FAILED,
      (void* at, size_t size, int how_, int flags, int fd, off_t from),
      (at, size, how_, flags, fd, from))
FAILS(int, msync, -1, (void* memory, size_t size, int flags), (memory, size, flags))
FAILS(int, munmap, -1, (void* memory, size_t size), (memory, size))
FAILS(int, pipe2, -1, (int ends[2], int flags), (ends, flags))
FAILS(int, poll, -1, (struct pollfd * files, nfds_t count, int timeout), (files, count, timeout))
FAILS(ssize_t,
      pwritev,
      -1,
      (int fd, const struct iovec* parts, int count, off_t at),
      (fd, parts, count, at))
FAILS(ssize_t, readlink, -1, (const char* path, char* to, size_t size), (path, to, size))
FAILS(int, rename, -1, (const char* from, const char* to), (from, to))
FAILS(int,
      renameat2,
      -1,
      (int from, const char* old, int to, const char* name, unsigned flags),
      (from, old, to, name, flags))
FAILS(int, sched_getaffinity, -1, (pid_t pid, size_t size, cpu_set_t* set), (pid, size, set))
FAILS(int, sched_setaffinity, -1, (pid_t pid, size_t size, const cpu_set_t* set), (pid, size, set))
FAILS(int, sigaltstack, -1, (const stack_t* now, stack_t* before), (now, before))
FAILS(int, statfs, -1, (const char* path, struct statfs* place), (path, place))
FAILS(int, uname, -1, (struct utsname * names), (names))
FAILS(int, unlink, -1, (const char* path), (path))

GIVES(posix_fallocate, (int fd, off_t from, off_t size), (fd, from, size))
GIVES(pthread_attr_setstacksize, (pthread_attr_t * attributes, size_t size), (attributes, size))
GIVES(pthread_create,
      (pthread_t * thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument),
      (thread, attributes, run, argument))
GIVES(pthread_key_create, (pthread_key_t * key, void (*end)(void*)), (key, end))
GIVES(pthread_setname_np, (pthread_t thread, const char* name), (thread, name))
GIVES(pthread_setschedparam,
      (pthread_t thread, int policy, const struct sched_param* parameters),
      (thread, policy, parameters))

MOVES(pread, (int fd, void* to, size_t size, off_t at), size, (fd, to, size, at))
MOVES(pwrite, (int fd, const void* from, size_t size, off_t at), size, (fd, from, size, at))
MOVES(read, (int fd, void* to, size_t size), size, (fd, to, size))
MOVES(write, (int fd, const void* from, size_t size), size, (fd, from, size))

int getrlimit(__rlimit_resource_t what, struct rlimit* limit) {
    REAL(getrlimit)
    const int how = fault("getrlimit", __builtin_return_address(0));
    if (how > 0) {
        errno = how;
        return -1;
    }
    return real(what, limit);
}

int open(const char* path, int flags, ...) {
    REAL(open)
    va_list more;
    va_start(more, flags);
    const mode_t mode = va_arg(more, mode_t);
    va_end(more);
    const int how = fault("open", __builtin_return_address(0));
    if (how > 0) {
        errno = how;
        return -1;
    }
    return real(path, flags, mode);
}

int fcntl(int fd, int command, ...) {
    REAL(fcntl)
    va_list more;
    va_start(more, command);
    void* argument = va_arg(more, void*);
    va_end(more);
    const int how = fault("fcntl", __builtin_return_address(0));
    if (how > 0) {
        errno = how;
        return -1;
    }
    return real(fd, command, argument);
}

int prctl(int option, ...) {
    REAL(prctl)
    va_list more;
    va_start(more, option);
    unsigned long arguments[4];
    for (int i = 0; i < 4; ++i) {
        arguments[i] = va_arg(more, unsigned long);
    }
    va_end(more);
    const int how = fault("prctl", __builtin_return_address(0));
    if (how > 0) {
        errno = how;
        return -1;
    }
    return real(option, arguments[0], arguments[1], arguments[2], arguments[3]);
}

void* mremap(void* old, size_t size, size_t more_size, int flags, ...) {
    REAL(mremap)
    va_list more;
    va_start(more, flags);
    void* to = va_arg(more, void*);
    va_end(more);
    const int how = fault("mremap", __builtin_return_address(0));
    if (how > 0) {
        errno = how;
        return MAP_FAILED;
    }
    return real(old, size, more_size, flags, to);
}

/* dlsym() allocates memory itself, so it cannot be used to find these functions. */
extern void* __libc_malloc(size_t size);

void* malloc(size_t size) {
    const void* place = __builtin_return_address(0);
    if (__atomic_load_n(&g_begin, __ATOMIC_ACQUIRE) != 0 && fault("malloc", place) > 0) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_malloc(size);
}

/* All system calls except those that cannot fail. */
long syscall(long number, ...) {
    static long (*real)(long, ...);
    if (real == NULL) {
        real = (long (*)(long, ...))(uintptr_t)dlsym(RTLD_NEXT, "syscall");
    }
    va_list more;
    va_start(more, number);
    long arguments[6];
    for (int i = 0; i < 6; ++i) {
        arguments[i] = va_arg(more, long);
    }
    va_end(more);
    const int how = number == SYS_gettid || number == SYS_getpid || number == SYS_exit_group
                        ? 0
                        : fault("syscall", __builtin_return_address(0));
    if (how > 0) {
        errno = how;
        return -1;
    }
    return real(
        number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}
