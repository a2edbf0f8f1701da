#include "stacks/thread_stacks.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace fragtrace::preload {
namespace {

constexpr uint32_t kThreads = 1024;
// Maximum number of threads with recurring stacks: 355 KiB each, allocated by the kernel as they
// are used.
constexpr uint32_t kThreads_with_recurring = 64;
constexpr uint32_t kMostProbes = 8;

ThreadStack* g_stacks;
RecurringStacks* g_recurring;

// The end of a thread is not reported. The next thread that probes a dead thread's place takes it.
bool is_dead(uint32_t id) {
    const KeepErrno keep_errno;
    return syscall(SYS_tgkill, getpid(), id, 0) != 0 && errno == ESRCH;
}

// Returns one of `count` places that belongs to the calling thread, to nobody, or to a dead thread;
// nullptr if the probes find none.
template <typename T>
T* claim(T* all, uint32_t count) {
    const uint32_t self = thread_id();
    for (uint32_t probe = 0; probe < kMostProbes; ++probe) {
        T* one = &all[(self + probe) % count];
        uint32_t owner = load_relaxed(&one->owner);
        if ((owner == 0 || owner == self || is_dead(owner)) &&
            __atomic_compare_exchange_n(
                &one->owner, &owner, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            return one;
        }
    }
    return nullptr;
}

}  // namespace

void create_thread_stacks() {
    if (g_stacks == nullptr) {
        g_stacks = static_cast<ThreadStack*>(map_private(kThreads * sizeof *g_stacks));
        g_recurring = static_cast<RecurringStacks*>(
            map_private(kThreads_with_recurring * sizeof *g_recurring));
    }
}

ThreadStack* thread_stack() {
    if (t_thread.stack != nullptr || g_stacks == nullptr || t_thread.stack_refused) {
        return t_thread.stack;
    }
    ThreadStack* stack = claim(g_stacks, kThreads);
    t_thread.stack_refused = stack == nullptr;
    if (stack != nullptr) {
        stack->count = 0;
        stack->low = stack->top = stack->refused_page = 0;
        stack->recurring = nullptr;
        stack->recurring_refused = false;
        t_thread.stack = stack;
    }
    return stack;
}

RecurringStacks* recurring_stacks(ThreadStack* stack) {
    if (stack->recurring == nullptr && g_recurring != nullptr && !stack->recurring_refused) {
        stack->recurring = claim(g_recurring, kThreads_with_recurring);
        stack->recurring_refused = stack->recurring == nullptr;
        if (stack->recurring != nullptr) {
            stack->recurring->forget();
        }
    }
    return stack->recurring;
}

void forget_stacks(ThreadStack* stack) {
    stack->count = 0;
    if (stack->recurring != nullptr) {
        stack->recurring->forget();
    }
}

void forget_thread_stacks() {
    unmap(g_stacks, kThreads * sizeof *g_stacks);
    unmap(g_recurring, kThreads_with_recurring * sizeof *g_recurring);
    g_stacks = nullptr;
    g_recurring = nullptr;
    t_thread.stack = nullptr;
    t_thread.stack_refused = false;
}

}  // namespace fragtrace::preload
