#include "stack_native.h"

#include "facts.h"
#include "session.h"
#include "thread_state.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

namespace fragtrace::preload {
namespace {

// libunwind's fast path: on x86-64 it caches how to step from each address it has seen, which no
// other unwinder for code without frame pointers matches. Opened privately: as a dependency of a
// preloaded library it would take over the exception handling of the host.
int (*g_backtrace)(void** frames, int capacity);

// libunwind asks a pipe of its own whether an address can be read. It keeps the pipe at the lowest
// free numbers: those of the standard streams, where the host has closed them, or those that the
// host closes and reuses later. So it gets one that is out of the way.
int make_pipe_out_of_the_way(int ends[2], int flags) {
    if (pipe2(ends, flags) != 0) {
        return -1;
    }
    move_out_of_the_way(&ends[0]);
    move_out_of_the_way(&ends[1]);
    return 0;
}

// Writes past the protection that an object's table of calls has after loading.
void overwrite_word(const void* address, uint64_t word) {
    const int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    if (memory >= 0) {
        const ssize_t written =
            pwrite(memory, &word, sizeof word, reinterpret_cast<off_t>(address));
        (void)written;  // then the pipe stays where it is
        close(memory);
    }
}

// Lets the library's own calls of pipe2() reach the function above; nobody else's.
void redirect_pipe(void* library) {
    link_map* map = nullptr;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || map->l_ld == nullptr) {
        return;
    }
    const ElfW(Rela)* entries = nullptr;
    const ElfW(Sym)* symbols = nullptr;
    const char* strings = nullptr;
    size_t size_bytes = 0;
    for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
        const auto pointer = entry->d_un.d_ptr;  // relocated by the loader
        switch (entry->d_tag) {
            case DT_JMPREL:
                entries = reinterpret_cast<const ElfW(Rela)*>(pointer);
                break;
            case DT_PLTRELSZ:
                size_bytes = entry->d_un.d_val;
                break;
            case DT_SYMTAB:
                symbols = reinterpret_cast<const ElfW(Sym)*>(pointer);
                break;
            case DT_STRTAB:
                strings = reinterpret_cast<const char*>(pointer);
                break;
            default:
                break;
        }
    }
    if (entries == nullptr || symbols == nullptr || strings == nullptr) {
        return;
    }
    for (size_t i = 0; i < size_bytes / sizeof *entries; ++i) {
        const ElfW(Sym)& symbol = symbols[ELF64_R_SYM(entries[i].r_info)];
        if (strcmp(strings + symbol.st_name, "pipe2") == 0) {
            overwrite_word(reinterpret_cast<const void*>(map->l_addr + entries[i].r_offset),
                           reinterpret_cast<uint64_t>(&make_pipe_out_of_the_way));
        }
    }
}

// Frames of ours that may precede the first that is kept.
constexpr uint32_t kOwnFrames = 12;

}  // namespace

void start_native_stacks(Session* session) {
    if (!session->options.native_stacks) {
        add_session_fact(session, "stacks.native", "off: FRAGTRACE_STACKS");
        return;
    }
    if (g_backtrace == nullptr) {
        void* library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
        if (library != nullptr) {
            redirect_pipe(library);
            g_backtrace = reinterpret_cast<decltype(g_backtrace)>(dlsym(library, "unw_backtrace"));
        }
    }
    add_session_fact(
        session, "stacks.native", g_backtrace != nullptr ? "on" : "off: libunwind.so.8 not found");
}

__attribute__((noinline)) uint32_t native_stack(Session* session) {
    if (g_backtrace == nullptr || !session->options.native_stacks) {
        return 0;
    }
    void* found[kMaxStackDepth + kOwnFrames];
    const uint32_t wanted = session->options.stack_depth + kOwnFrames;
    const int count = g_backtrace(found, static_cast<int>(wanted));
    // Skip the recorder and its hooks; where they are part of the program itself, only this
    // function and its caller.
    const TextRange own = session->own_text;
    int first = 0;
    if (own.end == 0) {
        first = 1;
    }
    while (first < count &&
           reinterpret_cast<uint64_t>(found[first]) - own.begin < own.end - own.begin) {
        ++first;
    }
    int frames = count - first;
    if (frames <= 0) {
        count_up(&session->ring.header->native_unwind_failures);
        return 0;
    }
    if (frames > static_cast<int>(session->options.stack_depth)) {
        frames = static_cast<int>(session->options.stack_depth);
    }

    // Outermost first. As long as the frames are those of this thread's previous stack, so are the
    // nodes; most stacks differ from the one before only in their innermost frames.
    NativeMemory& memory = t_thread.native;
    const auto frame_at = [&](uint32_t depth) {
        return reinterpret_cast<uint64_t>(found[first + frames - 1 - static_cast<int>(depth)]);
    };
    const auto depth_count = static_cast<uint32_t>(frames);
    uint32_t depth = 0;
    uint32_t node = 0;
    while (depth < depth_count && depth < memory.count && memory.frame[depth] == frame_at(depth)) {
        node = memory.node[depth];
        ++depth;
    }
    for (; depth < depth_count; ++depth) {
        const uint64_t frame = frame_at(depth);
        const uint32_t next = session->stacks.intern(node, frame, [] { return 0u; });
        if (next == 0) {
            count_up(&session->ring.header->stacks_without_room);
            memory.count = 0;
            return 0;
        }
        node = next;
        if (depth < kRememberedFrames) {
            memory.frame[depth] = frame;
            memory.node[depth] = node;
        }
    }
    memory.count = depth_count < kRememberedFrames ? depth_count : kRememberedFrames;
    return node;
}

}  // namespace fragtrace::preload
