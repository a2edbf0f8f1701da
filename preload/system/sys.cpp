#include "system/sys.h"

#include <fcntl.h>
#include <initializer_list>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// Functions of the thread sanitizer, null without it. It intercepts our calls of memcpy but does
// not see the atomic words of our locks. Without these calls, it would report races on data that
// the locks protect.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the sanitizer's names
extern "C" {
void __tsan_acquire(void* address) __attribute__((weak));
void __tsan_release(void* address) __attribute__((weak));
}

// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace fragtrace::preload {

void futex_wait(const uint32_t* word, uint32_t expected, uint64_t timeout_ns) {
    timespec timeout{};
    timeout.tv_sec = static_cast<time_t>(timeout_ns / kSecond_ns);
    timeout.tv_nsec = static_cast<long>(timeout_ns % kSecond_ns);
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, &timeout, nullptr, 0);
}

void futex_wake_all(const uint32_t* word) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 0x7fffffff, nullptr, nullptr, 0);
}

void yield_cpu() {
    sched_yield();
}

uint64_t clock_ns(int clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<uint64_t>(now.tv_sec) * kSecond_ns + static_cast<uint64_t>(now.tv_nsec);
}

bool can_read_word(uint64_t address) {
    // The kernel reads the set of signals before it refuses the first argument. Sandboxes
    // allow this call more often than those that copy memory.
    constexpr int kNoSuchOperation = -1;
    const KeepErrno keep_errno;
    syscall(SYS_rt_sigprocmask, kNoSuchOperation, address, nullptr, sizeof(uint64_t));
    return errno == EINVAL;
}

void* map_private(size_t size_bytes) {
    void* memory = mmap(nullptr,
                        size_bytes,
                        PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                        -1,
                        0);
    return memory == MAP_FAILED ? nullptr : memory;
}

void unmap(void* memory, size_t size_bytes) {
    if (memory != nullptr) {
        munmap(memory, size_bytes);
    }
}

SignalTakenBack::SignalTakenBack(int signal) : signal_(signal) {
    sigemptyset(&set_);
    sigaddset(&set_, signal);
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
}

SignalTakenBack::~SignalTakenBack() {
    if (sigismember(&before_, signal_) == 0) {
        const timespec none{};
        while (sigtimedwait(&set_, nullptr, &none) == signal_) {
        }
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
}

SignalsHeldBack::SignalsHeldBack() {
    sigset_t set;
    sigfillset(&set);
    for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGXFSZ}) {
        sigdelset(&set, signal);
    }
    pthread_sigmask(SIG_BLOCK, &set, &before_);
}

SignalsHeldBack::~SignalsHeldBack() {
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void move_out_of_the_way(int* fd) {
    // Uses a lower number if the host may open few files, but never that of a standard stream.
    for (const int lowest : {512, 128, 3}) {
        const int high = fcntl(*fd, F_DUPFD_CLOEXEC, lowest);
        if (high >= 0) {
            close(*fd);
            *fd = high;
            return;
        }
    }
}

bool Lock::try_lock() {
    uint32_t expected = 0;
    const bool locked = __atomic_compare_exchange_n(
        &state_, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
    if (locked && __tsan_acquire != nullptr) {
        __tsan_acquire(&state_);
    }
    return locked;
}

bool Lock::lock_within(uint64_t timeout_ns) {
    if (try_lock()) {
        return true;
    }
    const uint64_t start = clock_ns(CLOCK_MONOTONIC);
    for (;;) {
        if (__atomic_exchange_n(&state_, 2, __ATOMIC_ACQUIRE) == 0) {
            if (__tsan_acquire != nullptr) {
                __tsan_acquire(&state_);
            }
            return true;
        }
        const uint64_t waited = clock_ns(CLOCK_MONOTONIC) - start;
        if (waited >= timeout_ns) {
            return false;
        }
        futex_wait(&state_, 2, timeout_ns - waited);
    }
}

void Lock::unlock() {
    if (__tsan_release != nullptr) {
        __tsan_release(&state_);
    }
    if (__atomic_exchange_n(&state_, 0, __ATOMIC_RELEASE) == 2) {
        futex_wake_all(&state_);
    }
}

long read_file(const char* path, char* buffer, size_t capacity) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    size_t size = 0;
    while (size < capacity) {
        const ssize_t got = read(fd, buffer + size, capacity - size);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        size += static_cast<size_t>(got);
    }
    close(fd);
    return static_cast<long>(size);
}

Text& Text::add(const char* text, size_t count) {
    const size_t room = capacity_ - 1 - size_;
    const size_t taken = count < room ? count : room;
    memcpy(data_ + size_, text, taken);
    size_ += taken;
    data_[size_] = '\0';
    return *this;
}

Text& Text::add(const char* text) {
    return add(text, strlen(text));
}

Text& Text::add_number(uint64_t value) {
    char digits[20];
    size_t first = sizeof digits;
    do {
        digits[--first] = static_cast<char>('0' + value % 10);
        value /= 10;
    } while (value != 0);
    return add(digits + first, sizeof digits - first);
}

Text& Text::add_hex(uint64_t value) {
    char digits[16];
    for (size_t i = 0; i < sizeof digits; ++i) {
        digits[sizeof digits - 1 - i] = "0123456789abcdef"[value & 15];
        value >>= 4;
    }
    return add(digits, sizeof digits);
}

namespace {

// The file that was standard error when the library was loaded.
dev_t g_standard_error_device;
ino_t g_standard_error_inode;

// A program that closes its standard error may get the descriptor's number for a file with its
// data.
bool is_data_of_program() {
    struct stat file {};

    return fstat(STDERR_FILENO, &file) == 0 && S_ISREG(file.st_mode) &&
           (file.st_dev != g_standard_error_device || file.st_ino != g_standard_error_inode);
}

}  // namespace

void note_standard_error() {
    struct stat file {};

    if (fstat(STDERR_FILENO, &file) == 0) {
        g_standard_error_device = file.st_dev;
        g_standard_error_inode = file.st_ino;
    }
}

void say(const Text& text) {
    if (is_data_of_program()) {
        return;
    }
    const SignalTakenBack no_signal(SIGPIPE);
    pollfd stream{STDERR_FILENO, POLLOUT, 0};
    if (poll(&stream, 1, 0) == 1 && stream.revents == POLLOUT) {
        const ssize_t written = write(STDERR_FILENO, text.c_str(), text.size());
        (void)written;
    }
}

void add_error(Text* text, int error) {
    struct Name {
        int error;
        const char* text;
    };

    // strerror may allocate and needs locale data. These are the errors of creating and writing
    // files.
    static constexpr Name kNames[] = {
        {EACCES, "permission denied"},
        {EDQUOT, "disk quota exceeded"},
        {EEXIST, "exists already"},
        {EFBIG, "file size limit reached"},
        {EIO, "input/output error"},
        {EMFILE, "too many open files"},
        {ENAMETOOLONG, "name too long"},
        {ENOENT, "no such directory"},
        {ENOMEM, "out of memory"},
        {ENOSPC, "no space left on device"},
        {ENOTDIR, "not a directory"},
        {EPERM, "operation not permitted"},
        {EROFS, "read-only file system"},
        {EAGAIN, "resource temporarily unavailable"},
        {kSpaceKeptFree, "no space left on device except the reserved space (FRAGTRACE_KEEP_FREE)"},
    };
    for (const Name& name : kNames) {
        if (name.error == error) {
            text->add(name.text);
            return;
        }
    }
    text->add("error ").add_number(static_cast<uint64_t>(error));
}

}  // namespace fragtrace::preload
