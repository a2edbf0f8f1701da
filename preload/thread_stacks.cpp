// See thread_stacks.h.
#include "thread_stacks.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace fragtrace::preload {
namespace {

constexpr uint32_t kThreads = 1024;
constexpr uint32_t kMostProbes = 8;

ThreadStack* g_stacks;

// Nobody tells us that a thread ends; its place is taken by the next one that comes upon it.
bool is_dead(uint32_t id) {
    const KeepErrno keep_errno;
    return syscall(SYS_tgkill, getpid(), id, 0) != 0 && errno == ESRCH;
}

}  // namespace

void create_thread_stacks() {
    if (g_stacks == nullptr) {
        g_stacks = static_cast<ThreadStack*>(map_private(kThreads * sizeof *g_stacks));
    }
}

ThreadStack* thread_stack() {
    ThreadStack* stacks = g_stacks;
    if (t_thread.stack != nullptr || stacks == nullptr || t_thread.stack_refused) {
        return t_thread.stack;
    }
    const uint32_t self = thread_id();
    for (uint32_t probe = 0; probe < kMostProbes; ++probe) {
        ThreadStack* stack = &stacks[(self + probe) % kThreads];
        uint32_t owner = load_relaxed(&stack->owner);
        if ((owner == 0 || owner == self || is_dead(owner)) &&
            __atomic_compare_exchange_n(
                &stack->owner, &owner, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            stack->count = 0;
            stack->low = stack->top = stack->refused_page = 0;
            t_thread.stack = stack;
            return stack;
        }
    }
    t_thread.stack_refused = true;
    return nullptr;
}

void forget_thread_stacks() {
    unmap(g_stacks, kThreads * sizeof *g_stacks);
    g_stacks = nullptr;
    t_thread.stack = nullptr;
    t_thread.stack_refused = false;
}

}  // namespace fragtrace::preload
