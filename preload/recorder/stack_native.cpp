#include "recorder/stack_native.h"

#include "recorder/session.h"
#include "recorder/trace_facts.h"
#include "stacks/stack_walk.h"
#include "stacks/thread_stacks.h"

#include <dlfcn.h>

// For code without frame pointers, libunwind is the fastest unwinder: on x86-64 it caches the
// unwind step of each address that it has seen.
#define UNW_LOCAL_ONLY
#include <libunwind.h>

// Returns whether libunwind may read the word at an address (libunwind_changes.cmake). Asks the
// kernel once per page in each walk: the page of an earlier walk may have been unmapped since.
extern "C" int fragtrace_can_read_stack(unsigned long address) {
    constexpr uint64_t kPage_bytes = 4096;
    const uint64_t page = address / kPage_bytes;
    if (page + 1 == fragtrace::preload::t_thread.readable_page &&
        (address + sizeof(uint64_t) - 1) / kPage_bytes == page) {
        return 1;
    }
    if (!fragtrace::preload::can_read_word(address)) {
        return 0;
    }
    fragtrace::preload::t_thread.readable_page = page + 1;
    return 1;
}

#if defined(__aarch64__)
// Returns a return address without its signature (pointer authentication). libunwind calls this
// function (libunwind_changes.cmake). The instruction is xpaclri, which processors without
// signatures treat as a no-op.
extern "C" unsigned long fragtrace_without_signature(unsigned long address) {
    register unsigned long x30 asm("x30") = address;
    asm("hint #7" : "+r"(x30));
    return x30;
}
#endif

// If a module has no table of its unwind information, and for function names, libunwind would open
// and read the modules' files on a host thread. These functions replace its own:
#if defined(__x86_64__)
#    define FT_EXE_IMAGE_PATH _Ux86_64_get_exe_image_path
#else
#    define FT_EXE_IMAGE_PATH _Uaarch64_get_exe_image_path
#endif

extern "C" {

void FT_EXE_IMAGE_PATH(char* path) {
    path[0] = '\0';
}

int _Uelf64_find_section(void* /*image*/, const char* /*name*/) {
    return 0;
}

int _Uelf64_get_proc_name() {
    return -UNW_ENOINFO;
}
}

namespace fragtrace::preload {
namespace {

bool g_can_unwind;

// Maximum number of our own frames before the first frame to keep.
constexpr uint32_t kOwnFrames = 12;

struct Interned {
    uint32_t node;  // 0 = no room
    bool came_before;
};

// Returns the node of `count` frames called from `base`. `sum` is their hash by add_frame_to_hash,
// starting with 0. `address_at` and `keep` are as in StackTable::find_stack.
template <typename AddressAt, typename Keep>
Interned intern(Session* session,
                uint32_t base,
                uint32_t count,
                uint64_t sum,
                AddressAt address_at,
                Keep keep) {
    StackTable& stacks = session->stacks;
    const uint64_t hash = finish_hash(sum + base * uint64_t{0xd6e8feb86659fd93u});
    uint32_t node = stacks.find_stack(base, count, hash, address_at, keep);
    if (node != 0) {
        return {node, true};
    }
    node = base;
    for (uint32_t i = count; i > 0; --i) {
        node = stacks.intern(node, address_at(i - 1), [] { return 0u; });
        if (node == 0) {
            count_up(&session->ring.header->stacks_without_room);
            return {0, false};
        }
        keep(i - 1, node);
    }
    stacks.know_stack(hash, node);
    return {node, false};
}

// A complete stack is remembered for the thread's next walk.
Interned intern_walk(Session* session, ThreadStack* stack, const Walk& walk) {
    const uint32_t base = walk.kept == 0 ? 0 : stack->frames[walk.kept - 1].node;
    const auto address_at = [stack](uint32_t i) { return stack->fresh[i].address; };
    if (!walk.whole) {
        stack->count = 0;
        return intern(session, base, walk.fresh, walk.hash, address_at, [](uint32_t, uint32_t) {});
    }
    stack->count = walk.kept + walk.fresh;
    if (walk.fresh == 0) {
        return {base, true};
    }
    RememberedFrame* innermost = &stack->frames[stack->count - 1];
    const Interned interned = intern(session,
                                     base,
                                     walk.fresh,
                                     walk.hash,
                                     address_at,
                                     [stack, innermost](uint32_t i, uint32_t fresh) {
                                         RememberedFrame* to = innermost - i;
                                         copy_frame(to, stack->fresh[i]);
                                         to->node = fresh;
                                     });
    if (interned.node == 0) {
        stack->count = 0;
    }
    return interned;
}

// Nodes that were remembered in another session are invalid in this one.
void use_session(ThreadStack* stack, const Session& session) {
    if (stack->session_generation != session.generation) {
        stack->session_generation = session.generation;
        forget_stacks(stack);
    }
}

}  // namespace

void start_native_stacks(Session* session) {
    if (!session->options.native_stacks) {
        add_session_fact(session, "stacks.native", "off: FRAGTRACE_STACKS");
        return;
    }
    // libunwind frees a thread's data after the thread sanitizer has finished with that thread. It
    // locks a mutex there, and the sanitizer intercepts the lock.
    if (dlsym(RTLD_DEFAULT, "__tsan_init") != nullptr) {
        add_session_fact(session, "stacks.native", "off: thread sanitizer");
        return;
    }
    g_can_unwind = true;
    start_walks();
    add_session_fact(session, "stacks.native", "on");
}

#if defined(__x86_64__)
#    define FT_OWN_WALK 1
#else
#    define FT_OWN_WALK 0
#endif

__attribute__((noinline)) uint32_t native_stack(Session* session) {
    if (!g_can_unwind || !session->options.native_stacks) {
        return 0;
    }
    const uint32_t depth = session->options.stack_depth;
    if (FT_OWN_WALK != 0) {
        ThreadStack* stack = thread_stack();
        const auto* frame = static_cast<const uint64_t*>(__builtin_frame_address(0));
        // The prologue of this function stored these: the caller's rbp and the return address.
        const Registers caller{frame[1], reinterpret_cast<uint64_t>(frame + 2), frame[0]};
        if (stack != nullptr) {
            use_session(stack, *session);
            const uint32_t node = recurring_stack(*stack, caller);
            if (node != 0) {
                return node;
            }
            Walk walk{};
            if (walk_stack(stack, caller, session->own_text, depth, &walk)) {
                const Interned interned = intern_walk(session, stack, walk);
                if (interned.came_before && interned.node != 0) {
                    remember_recurring_stack(
                        stack, caller, session->own_text, walk.kept + walk.fresh, interned.node);
                }
                return interned.node;
            }
        }
    }
    const NoCancellation no_cancellation;  // libunwind makes system calls
    t_thread.readable_page = 0;
    void* found[kMaxStackDepth + kOwnFrames];
    const int count = unw_backtrace(found, static_cast<int>(depth + kOwnFrames));
    // Skip the frames of the recorder and its hooks. If these are linked into the program itself,
    // skip only this function.
    const TextRange own = session->own_text;
    int first = own.end == 0 ? 1 : 0;
    while (first < count &&
           reinterpret_cast<uint64_t>(found[first]) - own.begin < own.end - own.begin) {
        ++first;
    }
    if (count <= first) {
        count_up(&session->ring.header->native_unwind_failures);
        return 0;
    }
    const auto all = static_cast<uint32_t>(count - first);
    const uint32_t frames = all < depth ? all : depth;
    const auto address_at = [&](uint32_t i) {
        return reinterpret_cast<uint64_t>(found[first + static_cast<int>(i)]);
    };
    uint64_t hash = 0;
    for (uint32_t i = 0; i < frames; ++i) {
        hash = add_frame_to_hash(hash, address_at(i), i);
    }
    return intern(session, 0, frames, hash, address_at, [](uint32_t, uint32_t) {}).node;
}

}  // namespace fragtrace::preload
