// What the recorder keeps per thread: the two guards, the thread's id and its last stacks.
//
// Initial-exec TLS: the library is loaded at program start, so its block lies at a fixed offset
// from the thread pointer. The other models call __tls_get_addr, which may allocate from the heap
// on a thread's first use - inside somebody else's allocator, or in a signal handler.
#pragma once

#include <stdint.h>

namespace fragtrace::preload {

// Longest stack that is kept of either kind; FRAGTRACE_STACK_DEPTH is at most this.
inline constexpr uint32_t kMaxStackDepth = 128;
// Frames of the previous stack that are remembered, from the outermost inwards.
inline constexpr uint32_t kRememberedFrames = 64;

struct ThreadStack;

struct PythonMemory {
    uint32_t count;
    uint64_t era;                       // python_code_era(), which the rest is true of
    uint64_t place[kRememberedFrames];  // function, place in it, whether an entry
    uint32_t node[kRememberedFrames];
};

struct alignas(64) ThreadState {
    bool inside_hook;
    uintptr_t hook_mark;  // in the outermost HookScope; 0 = none, or inside for another reason
    bool inside_recorder;
    bool free_was_too_small;  // the last block free that came here, by FRAGTRACE_MIN_BYTES
    bool is_drain;
    bool holds_flush_lock;  // from before_fork() to the handler in the parent
    uint64_t last_time_ns;  // now_ns(), which never goes back
    uint32_t thread_id;
    uint32_t session_generation;  // whose nodes the memories hold
    bool counted_without_python;
    bool stack_refused;  // there are more threads than there is room for
    ThreadStack* stack;  // the last native stack; see thread_stacks.h
    PythonMemory python;
};

extern constinit thread_local ThreadState t_thread __attribute__((tls_model("initial-exec")));

// The kernel's id of the calling thread.
uint32_t ask_thread_id();

inline uint32_t thread_id() {
    return t_thread.thread_id != 0 ? t_thread.thread_id : ask_thread_id();
}

// Marks this thread as inside the recorder. Not entered when a signal handler interrupted the
// recorder on the same thread: its structures may be half changed then.
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
