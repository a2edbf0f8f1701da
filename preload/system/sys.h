// Wrappers for the kernel and the C library, as the recorder needs them.
//
// Nothing here allocates from the heap or throws. Locks are futexes with bounded waits, because a
// host must never hang because of its profiler.
#pragma once

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

namespace fragtrace::preload {

// Preserves errno over a scope: the host must not see our values.
class KeepErrno {
  public:
    KeepErrno() : saved_(errno) {}

    ~KeepErrno() { errno = saved_; }

    KeepErrno(const KeepErrno&) = delete;
    KeepErrno& operator=(const KeepErrno&) = delete;

  private:
    int saved_;
};

// Prevents cancellation of the calling host thread within a scope. A cancelled thread would unwind
// out of the CUDA runtime, or out of our code, with locks held.
class NoCancellation {
  public:
    NoCancellation() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &former_); }

    ~NoCancellation() { pthread_setcancelstate(former_, nullptr); }

    NoCancellation(const NoCancellation&) = delete;
    NoCancellation& operator=(const NoCancellation&) = delete;

  private:
    int former_ = PTHREAD_CANCEL_ENABLE;
};

// For code of ours that may make a system call on a host thread. Most events need no system call;
// their paths need at most KeepErrno.
class SlowPath {
    const KeepErrno keep_errno_;
    const NoCancellation no_cancellation_;
};

template <typename T>
T load_relaxed(const T* from) {
    return __atomic_load_n(from, __ATOMIC_RELAXED);
}

template <typename T>
T load_acquire(const T* from) {
    return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}

template <typename T>
void store_relaxed(T* to, T value) {
    __atomic_store(to, &value, __ATOMIC_RELAXED);  // clang's _n takes no enumeration
}

template <typename T>
void store_release(T* to, T value) {
    __atomic_store(to, &value, __ATOMIC_RELEASE);
}

template <typename T>
void count_up(T* counter, T by = 1) {
    __atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
}

// Prefetches memory that will be written, exclusively for this processor. __builtin_prefetch does
// that only if the compiler may assume newer processors. A processor without this instruction
// treats it as a no-op.
inline void fetch_for_writing(const void* memory) {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(memory)));
#else
    __builtin_prefetch(memory, 1);
#endif
}

inline constexpr uint64_t kMillisecond_ns = 1'000'000;
inline constexpr uint64_t kSecond_ns = 1'000'000'000;

// Sleeps while `*word == expected`, at most `timeout_ns`. It may return early.
void futex_wait(const uint32_t* word, uint32_t expected, uint64_t timeout_ns);
void futex_wake_all(const uint32_t* word);
void yield_cpu();

uint64_t clock_ns(int clock);

// Returns whether the eight bytes at an address can be read, by a system call that only looks at
// them. They may be unmapped at any time after that, unless they belong to the calling thread's
// stack.
bool can_read_word(uint64_t address);

// Returns zeroed private memory from the kernel, nullptr on failure. Pages cost nothing until they
// are touched.
void* map_private(size_t size_bytes);
void unmap(void* memory, size_t size_bytes);

// pthread_atfork(). Its code would be a part of this library, in a page that every process has to
// read for it.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the C library's names
extern "C" int __register_atfork(void (*before)(),
                                 void (*in_parent)(),
                                 void (*in_child)(),
                                 void* library);
extern "C" __attribute__((visibility("hidden"))) void* __dso_handle;

// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

inline void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) {
    __register_atfork(before, in_parent, in_child, &__dso_handle);
}

// Blocks a signal that our writes may raise in this thread and that would kill the host: SIGXFSZ
// when a file reaches the size limit, SIGPIPE when nobody reads our message. A signal raised within
// the scope is removed before it can be delivered.
class SignalTakenBack {
  public:
    explicit SignalTakenBack(int signal);
    ~SignalTakenBack();
    SignalTakenBack(const SignalTakenBack&) = delete;
    SignalTakenBack& operator=(const SignalTakenBack&) = delete;

  private:
    int signal_;
    sigset_t set_;
    sigset_t before_;
};

// Blocks all signals that this thread does not raise itself. For code that a handler which calls us
// again must not interrupt: the loader, the start of a session.
class SignalsHeldBack {
  public:
    SignalsHeldBack();
    ~SignalsHeldBack();
    SignalsHeldBack(const SignalsHeldBack&) = delete;
    SignalsHeldBack& operator=(const SignalsHeldBack&) = delete;

  private:
    sigset_t before_;
};

// Moves a descriptor of ours to a high number: hosts expect low numbers for their own files, and
// some close descriptors by number.
void move_out_of_the_way(int* fd);

// A lock for slow paths. All zeros means unlocked; it needs no construction or destruction.
class Lock {
  public:
    [[nodiscard]] bool try_lock();
    // Returns false if the lock was not free within the time.
    [[nodiscard]] bool lock_within(uint64_t timeout_ns);
    void unlock();

    // For a forked child, where the thread that owned the lock does not exist.
    void reset() { state_ = 0; }

  private:
    uint32_t state_ = 0;  // 0 unlocked, 1 locked, 2 locked and at least one thread sleeps
};

// Reads a small file completely. Returns its size in bytes, at most `capacity`, or -1.
long read_file(const char* path, char* buffer, size_t capacity);

// A text in a caller's buffer: cut silently if too long, always NUL-terminated.
class Text {
  public:
    Text(char* buffer, size_t capacity) : data_(buffer), capacity_(capacity) { data_[0] = '\0'; }

    Text& add(const char* text);
    Text& add(const char* text, size_t count);
    Text& add_number(uint64_t value);
    Text& add_hex(uint64_t value);

    [[nodiscard]] const char* c_str() const { return data_; }

    [[nodiscard]] size_t size() const { return size_; }

    [[nodiscard]] bool full() const { return size_ + 1 >= capacity_; }

  private:
    char* data_;
    size_t capacity_;
    size_t size_ = 0;
};

// Remembers which file standard error is. Call it once, when the library is loaded.
void note_standard_error();

// Writes a line to standard error, unless that would block or nobody reads it: the end of the host
// must not change. Writes nothing if standard error is now a regular file that it was not when the
// library was loaded: this may be a data file of the host, which got a free number.
void say(const Text& text);

// In errno: a write would have used space that must stay free (FRAGTRACE_KEEP_FREE).
inline constexpr int kSpaceKeptFree = -1;

// Adds a text for an error of creating or writing files, such as "no space left on device".
void add_error(Text* text, int error);

}  // namespace fragtrace::preload
