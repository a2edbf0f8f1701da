// What the recorder needs of the kernel and of the C library, behind few names.
//
// Nothing here allocates from the heap or throws. Locks are futexes with bounded waits, because a
// host must never hang on its profiler.
#pragma once

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

namespace fragtrace::preload {

// Keeps errno over a scope: the host must not see ours.
class KeepErrno {
  public:
    KeepErrno() : saved_(errno) {}

    ~KeepErrno() { errno = saved_; }

    KeepErrno(const KeepErrno&) = delete;
    KeepErrno& operator=(const KeepErrno&) = delete;

  private:
    int saved_;
};

// A thread of the host that is to be cancelled must not end within a scope: it would unwind out of
// the CUDA runtime, or of us, with locks held.
class NoCancellation {
  public:
    NoCancellation() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &former_); }

    ~NoCancellation() { pthread_setcancelstate(former_, nullptr); }

    NoCancellation(const NoCancellation&) = delete;
    NoCancellation& operator=(const NoCancellation&) = delete;

  private:
    int former_ = PTHREAD_CANCEL_ENABLE;
};

// Whatever of ours may make a system call on a thread of the host. Paths without one, which most
// events take, need KeepErrno at most.
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

// The memory will be written: it is fetched from other processors' caches for this one alone, which
// __builtin_prefetch asks for only where the compiler may take newer processors for granted. A
// processor that does not know the instruction takes it for none.
inline void fetch_for_writing(const void* memory) {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(memory)));
#else
    __builtin_prefetch(memory, 1);
#endif
}

inline constexpr uint64_t kMillisecond_ns = 1'000'000;
inline constexpr uint64_t kSecond_ns = 1'000'000'000;

// Sleeps while `*word == expected`, at most `timeout_ns`. May wake early.
void futex_wait(const uint32_t* word, uint32_t expected, uint64_t timeout_ns);
void futex_wake_all(const uint32_t* word);
void yield_cpu();

uint64_t clock_ns(int clock);

// Zeroed private memory from the kernel, nullptr on failure. Pages cost nothing until touched.
void* map_private(size_t size_bytes);
void unmap(void* memory, size_t size_bytes);

// A signal that a write of ours may raise in this thread, and that would kill the host: SIGXFSZ
// when a file meets the file size limit, SIGPIPE when nobody reads what we say. Blocked while we
// write, and taken back before it can be delivered.
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

// Holds back every signal of this thread that it does not raise itself, for what must not be
// interrupted by a handler that calls us again: the loader, the start of a session.
class SignalsHeldBack {
  public:
    SignalsHeldBack();
    ~SignalsHeldBack();
    SignalsHeldBack(const SignalsHeldBack&) = delete;
    SignalsHeldBack& operator=(const SignalsHeldBack&) = delete;

  private:
    sigset_t before_;
};

// Gives a descriptor of ours a high number: hosts expect low ones for their own files, and some
// close them by the number.
void move_out_of_the_way(int* fd);

// A lock for slow paths. All-zero is unlocked; needs no construction or destruction.
class Lock {
  public:
    [[nodiscard]] bool try_lock();
    // False when the lock was not had within the time.
    [[nodiscard]] bool lock_within(uint64_t timeout_ns);
    void unlock();

    // For a forked child, where the holder no longer exists.
    void reset() { state_ = 0; }

  private:
    uint32_t state_ = 0;  // 0 free, 1 held, 2 held and somebody sleeps
};

// Reads a small file whole; returns its size in bytes, at most `capacity`, or -1.
long read_file(const char* path, char* buffer, size_t capacity);

// Text built in a caller's buffer: truncates silently, always NUL-terminated.
class Text {
  public:
    Text(char* buffer, size_t capacity) : data_(buffer), capacity_(capacity) { data_[0] = '\0'; }

    Text& add(const char* text);
    Text& add(const char* text, size_t count);
    Text& add_number(uint64_t value);
    Text& add_signed(int64_t value);
    Text& add_hex(uint64_t value);

    [[nodiscard]] const char* c_str() const { return data_; }

    [[nodiscard]] size_t size() const { return size_; }

    [[nodiscard]] bool full() const { return size_ + 1 >= capacity_; }

  private:
    char* data_;
    size_t capacity_;
    size_t size_ = 0;
};

// Says a line on standard error, unless that would block or nobody reads it: a host that ends must
// end as it would.
void say(const Text& text);

// "ENOSPC (no space left)" and the like for the errors that a recorder meets.
void add_error(Text* text, int error);

}  // namespace fragtrace::preload
