// The recorder's data of each thread: two guards, the thread's id and its last stacks.
//
// Uses initial-exec TLS: the library is loaded at program start, so its block is at a fixed offset
// from the thread pointer. The other TLS models call __tls_get_addr, which may allocate from the
// heap at a thread's first use. That could happen inside the host's allocator or in a signal
// handler.
#pragma once

#include <stdint.h>

namespace fragtrace::preload {

// Maximum length of a native or Python stack; FRAGTRACE_STACK_DEPTH is at most this.
inline constexpr uint32_t kMaxStackDepth = 128;
// Number of remembered frames of the previous Python stack, counted from the outermost.
inline constexpr uint32_t kRememberedFrames = 64;

struct ThreadStack;

struct PythonMemory {
    uint32_t count;
    uint64_t era;                       // python_code_era() for which the rest is valid
    uint64_t place[kRememberedFrames];  // function, position in it, entry mark
    uint32_t node[kRememberedFrames];
};

struct alignas(64) ThreadState {
    bool inside_hook;
    uintptr_t hook_mark;  // address in the outermost HookScope; 0 = none, or inside_hook is set for
                          // another reason
    bool inside_recorder;
    bool free_was_too_small;  // whether FRAGTRACE_MIN_BYTES excluded the last block free of this
                              // thread
    bool is_drain;
    bool holds_flush_lock;       // from before_fork() to the handler in the parent
    bool inside_framework_pool;  // a request to an allocator whose functions call each other
    uint64_t last_time_ns;       // last result of now_ns(), which must never decrease
    uint32_t thread_id;
    uint32_t session_generation;  // session of the remembered nodes
    bool counted_without_python;
    bool stack_refused;  // no room: too many threads
    uint32_t label;  // for the blocks that the thread allocates: N of the fact "text.N"; 0 = none
    uint64_t readable_page;  // 1 + number of a page that libunwind may read in this walk; 0 = none
    ThreadStack* stack;      // the last native stack; see thread_stacks.h
    PythonMemory python;
};

extern constinit thread_local ThreadState t_thread __attribute__((tls_model("initial-exec")));

// Asks the kernel for the calling thread's id and stores it.
uint32_t ask_thread_id();

inline uint32_t thread_id() {
    return t_thread.thread_id != 0 ? t_thread.thread_id : ask_thread_id();
}

// Marks this thread as inside the recorder. Not entered if a signal handler interrupted the
// recorder on the same thread, because its structures may then be inconsistent.
class RecorderScope {
  public:
    RecorderScope() : entered_(!t_thread.inside_recorder) {
        t_thread.inside_recorder = true;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    }

    ~RecorderScope() {
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        if (entered_) {
            t_thread.inside_recorder = false;
        }
    }

    RecorderScope(const RecorderScope&) = delete;
    RecorderScope& operator=(const RecorderScope&) = delete;

    [[nodiscard]] bool entered() const { return entered_; }

  private:
    bool entered_;
};

}  // namespace fragtrace::preload
