#include "stack_python.h"

#include <fragtrace/codec.h>

#include "drain.h"
#include "facts.h"
#include "python_layout.h"
#include "session.h"
#include "thread_state.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

namespace fragtrace::preload {
namespace {

enum InterpreterState : uint32_t {
    kNotFound = 0,
    kUnchecked = 1,  // found; the first thread with frames checks the layout
    kChecking = 2,
    kUsable = 3,
    kUnusable = 4,
};

struct Interpreter {
    uint32_t state;
    void* (*thread_state)();  // PyGILState_GetThisThreadState: of this thread, needs no GIL
    int (*is_initialized)();  // 0 from the start of the finalisation, which frees thread states
    PythonLayout layout;
    PythonTypes types;
    char version[16];
    ModuleVersion looked_at;
};

Interpreter g_python;

// A code object as it was when first seen. Objects are freed and their addresses reused - a script
// that executes generated code gets the same addresses for code, name and file again and again -
// so the key holds a fingerprint of what they say, too.
struct KnownCode {
    const void* code;
    uint64_t fingerprint;
    uint64_t id_plus_one;  // stored last; 0 = free
};

constexpr uint32_t kKnownCodes = 65536;
constexpr uint32_t kMostKnownCodes = kKnownCodes / 4 * 3;
constexpr uint32_t kUnknownCode = ~uint32_t{0};
constexpr size_t kMaxFunction_bytes = 512;
constexpr size_t kMaxFile_bytes = 1024;

KnownCode* g_codes;
Lock g_codes_lock;

uint32_t hash_of(const KnownCode& key) {
    uint64_t hash = reinterpret_cast<uint64_t>(key.code) * 0x9e3779b97f4a7c15u;
    hash ^= key.fingerprint;
    hash ^= hash >> 31;
    return static_cast<uint32_t>(hash * 0x94d049bb133111ebu >> 40);
}

bool same_code(const KnownCode& a, const KnownCode& b) {
    return a.code == b.code && a.fingerprint == b.fingerprint;
}

// The entry of a code object, or the free one where it belongs.
KnownCode* find_code(const KnownCode& key) {
    for (uint32_t at = hash_of(key);; ++at) {
        KnownCode* entry = &g_codes[at & (kKnownCodes - 1)];
        if (load_acquire(&entry->id_plus_one) == 0 || same_code(*entry, key)) {
            return entry;
        }
    }
}

// Copies names into the ring; kUnknownCode without room.
uint32_t append_code(Session* session, const KnownCode& key) {
    RingHeader* header = session->ring.header;
    if (header->code_count >= kMostKnownCodes) {
        return kUnknownCode;
    }
    const PythonLayout& layout = g_python.layout;
    const auto copy = [&](uint32_t field, char* to, size_t capacity) {
        const auto* text = python_field<const void*>(key.code, field);
        return python_field<const void*>(text, kObjectType) == g_python.types.text
                   ? copy_python_text(layout, text, to, capacity)
                   : 0;
    };
    char function[kMaxFunction_bytes];
    char file[kMaxFile_bytes];
    const auto first_line = python_field<int32_t>(key.code, layout.code_first_line);
    CodeRecord record{};
    record.id = header->code_count;
    record.first_line = first_line < 0 ? 0 : static_cast<uint32_t>(first_line);
    record.function = function;
    record.file = file;
    record.function_bytes = copy(layout.code_name, function, sizeof function);
    record.file_bytes = copy(layout.code_file, file, sizeof file);
    ByteWriter out(session->ring.code + header->code_bytes,
                   kCodeCapacity_bytes - header->code_bytes);
    if (!encode_code(record, &out)) {
        return kUnknownCode;
    }
    ++header->code_count;
    store_release(&header->code_bytes, header->code_bytes + static_cast<uint32_t>(out.size()));
    return record.id;
}

uint32_t code_id(Session* session, const KnownCode& key) {
    KnownCode* entry = find_code(key);
    const uint64_t known = load_acquire(&entry->id_plus_one);
    if (known != 0) {
        return static_cast<uint32_t>(known - 1);
    }
    // A new code object: rare, so the other threads that meet new ones may wait for a moment.
    if (!g_codes_lock.lock_within(10 * kMillisecond_ns)) {
        return kUnknownCode;
    }
    entry = find_code(key);  // somebody may have been faster
    auto id = static_cast<uint32_t>(entry->id_plus_one - 1);
    if (entry->id_plus_one == 0) {
        id = append_code(session, key);
        if (id != kUnknownCode) {
            entry->code = key.code;
            entry->fingerprint = key.fingerprint;
            store_release(&entry->id_plus_one, uint64_t{id} + 1);
        }
    }
    g_codes_lock.unlock();
    return id;
}

void say_python(Session* session, const char* status) {
    add_session_fact(session, "stacks.python", status);
    wake_drain(session);
}

// Where the function lies that runs Python frames, for a reader that lacks this interpreter.
void say_evaluator(Session* session) {
    Dl_info info{};
    const ElfW(Sym)* symbol = nullptr;
    const void* evaluator = dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault");
    if (evaluator != nullptr &&
        dladdr1(evaluator,
                &info,
                reinterpret_cast<void**>(const_cast<ElfW(Sym)**>(&symbol)),
                RTLD_DL_SYMENT) != 0 &&
        symbol != nullptr) {
        char range[48];
        Text text(range, sizeof range);
        text.add_number(reinterpret_cast<uintptr_t>(evaluator)).add(" ");
        text.add_number(symbol->st_size);
        add_session_fact(session, "python.evaluator", range);
    }
}

bool find_interpreter(Session* session) {
    const auto version = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "Py_GetVersion"));
    if (version == nullptr) {
        return false;
    }
    const auto thread_state =
        reinterpret_cast<void* (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState"));
    const auto is_initialized =
        reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "Py_IsInitialized"));
    g_python.types = {dlsym(RTLD_DEFAULT, "PyCode_Type"),
                      dlsym(RTLD_DEFAULT, "PyUnicode_Type"),
                      dlsym(RTLD_DEFAULT, "PyBytes_Type")};
    const char* text = version();
    const char* blank = strchr(text, ' ');
    Text(g_python.version, sizeof g_python.version)
        .add(text, blank == nullptr ? strlen(text) : static_cast<size_t>(blank - text));
    add_session_fact(session, "python.version", g_python.version);
    say_evaluator(session);
    const char* reason = "off: the interpreter hides what is needed";
    if (thread_state == nullptr || is_initialized == nullptr || g_python.types.code == nullptr ||
        g_python.types.text == nullptr || g_python.types.bytes == nullptr ||
        !python_layout(text, dlsym(RTLD_DEFAULT, "_PyRuntime"), &g_python.layout, &reason)) {
        say_python(session, reason);
        store_release(&g_python.state, static_cast<uint32_t>(kUnusable));
        return true;
    }
    g_python.thread_state = thread_state;
    g_python.is_initialized = is_initialized;
    // Said until a thread with frames comes; also where it never does because the place is wrong.
    say_python(session, "off: no thread had Python frames yet");
    store_release(&g_python.state, static_cast<uint32_t>(kUnchecked));
    return true;
}

// By the first thread that has frames; the others have none until it is done.
bool check_interpreter(Session* session, const void* thread) {
    uint32_t state = kUnchecked;
    if (!__atomic_compare_exchange_n(
            &g_python.state, &state, kChecking, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
        return state == kUsable;
    }
    const LayoutCheck result = check_layout(g_python.layout, g_python.types, thread);
    switch (result) {
        case LayoutCheck::kRight:
            say_python(session, "on");
            store_release(&g_python.state, static_cast<uint32_t>(kUsable));
            break;
        case LayoutCheck::kWrong:
            say_python(session, "off: the interpreter's frames are not where they should be");
            store_release(&g_python.state, static_cast<uint32_t>(kUnusable));
            break;
        case LayoutCheck::kNoFrames:
            store_release(&g_python.state, static_cast<uint32_t>(kUnchecked));
            break;
    }
    return result == LayoutCheck::kRight;
}

struct PythonFrame {
    const void* code;
    int32_t place;  // lasti * 2, + 1 for an entry frame

    [[nodiscard]] int32_t lasti() const { return place >> 1; }
};

// The innermost `limit` frames of the thread, innermost first.
uint32_t walk(Session* session, const void* thread, PythonFrame* frames, uint32_t limit) {
    const PythonLayout& layout = g_python.layout;
    const void* frame = python_field<const void*>(thread, layout.thread_frame);
    if (layout.frame_in_cframe >= 0 && frame != nullptr) {
        frame = python_field<const void*>(frame, static_cast<uint32_t>(layout.frame_in_cframe));
    }
    uint32_t count = 0;
    while (frame != nullptr && count < limit) {
        const void* previous = python_field<const void*>(frame, layout.frame_previous);
        if (layout.frame_owner == 0 ||
            python_field<uint8_t>(frame, layout.frame_owner) < kOwnedByCStack) {
            const void* code = frame_code(layout, frame);
            if (code == nullptr ||
                python_field<const void*>(code, kObjectType) != g_python.types.code) {
                count_up(&session->ring.header->python_walk_failures);
                break;
            }
            const int lasti = frame_lasti(layout, frame, code);
            // A frame that is still being set up has no place in its function yet.
            const int first = layout.code_first_traceable == 0
                                  ? -1
                                  : python_field<int>(code, layout.code_first_traceable) * 2;
            if (lasti >= first) {
                const int entry = is_entry_frame(layout, frame, previous) ? 1 : 0;
                frames[count++] = {code, lasti * 2 + entry};
            }
        }
        frame = previous;
    }
    return count;
}

uint32_t intern_frame(Session* session,
                      uint32_t parent,
                      const PythonFrame& frame,
                      const KnownCode& key) {
    const uint32_t id = code_id(session, key);
    if (id == kUnknownCode) {
        count_up(&session->ring.header->python_walk_failures);
        return 0;
    }
    const uint64_t word = kPythonFrame | ((frame.place & 1) != 0 ? kPythonEntry : 0) |
                          (uint64_t{id} << 32) | static_cast<uint32_t>(frame.lasti());
    const uint32_t node = session->stacks.intern(
        parent, word, [&frame] { return code_line(g_python.layout, frame.code, frame.lasti()); });
    if (node == 0) {
        count_up(&session->ring.header->stacks_without_room);
    }
    return node;
}

// Once per thread: threads of a framework, such as those of a backward pass, have no frames.
void count_thread_without_python(Session* session) {
    if (!t_thread.counted_without_python) {
        t_thread.counted_without_python = true;
        count_up(&session->threads_without_python);
    }
}

KnownCode key_of(const void* code) {
    const PythonLayout& layout = g_python.layout;
    const auto* name = python_field<const void*>(code, layout.code_name);
    const auto* file = python_field<const void*>(code, layout.code_file);
    const uint64_t hash =
        text_fingerprint(layout, name) * 0xd6e8feb86659fd93u +
        text_fingerprint(layout, file) * 0x94d049bb133111ebu +
        python_field<uint64_t>(code, layout.code_line_table) * 0xff51afd7ed558ccdu;
    return {code, hash + (uint64_t{python_field<uint32_t>(code, layout.code_first_line)} << 32), 0};
}

}  // namespace

void start_python_stacks(Session* session) {
    if (!session->options.python_stacks) {
        add_session_fact(session, "stacks.python", "off: FRAGTRACE_STACKS");
        return;
    }
    g_codes = static_cast<KnownCode*>(map_private(kKnownCodes * sizeof *g_codes));
    if (g_codes == nullptr) {
        add_session_fact(session, "stacks.python", "off: out of memory");
        return;
    }
    const uint32_t state = load_acquire(&g_python.state);
    if (state == kUsable) {  // checked before a fork
        add_session_fact(session, "python.version", g_python.version);
        say_evaluator(session);
        add_session_fact(session, "stacks.python", "on");
    } else if (state == kNotFound && !find_interpreter(session)) {
        add_session_fact(session, "stacks.python", "off: no interpreter in the process");
    }
    g_python.looked_at = module_version();
}

void look_for_python(Session* session) {
    if (g_codes == nullptr || load_acquire(&g_python.state) != kNotFound ||
        g_python.looked_at.added == session->modules_written.added) {
        return;
    }
    g_python.looked_at = session->modules_written;
    find_interpreter(session);
}

uint32_t python_stack(Session* session) {
    const uint32_t state = load_acquire(&g_python.state);
    if ((state != kUsable && state != kUnchecked) || g_codes == nullptr) {
        return 0;
    }
    // Afterwards the thread's state is freed memory, or another library's: its key may be reused.
    if (g_python.is_initialized() == 0) {
        return 0;
    }
    const void* thread = g_python.thread_state();
    if (thread == nullptr) {
        count_thread_without_python(session);
        return 0;
    }
    if (state != kUsable && !check_interpreter(session, thread)) {
        return 0;
    }
    PythonFrame frames[kMaxStackDepth];
    const uint32_t count = walk(session, thread, frames, session->options.stack_depth);
    if (count == 0) {
        count_thread_without_python(session);
    }

    // Outermost first, reusing the nodes of this thread's previous stack as far as it is the same.
    PythonMemory& memory = t_thread.python;
    uint32_t node = 0;
    bool same = true;
    for (uint32_t depth = 0; depth < count; ++depth) {
        const PythonFrame& frame = frames[count - 1 - depth];
        const KnownCode key = key_of(frame.code);
        if (same && depth < memory.count && memory.code[depth] == key.code &&
            memory.place[depth] == frame.place && memory.fingerprint[depth] == key.fingerprint) {
            node = memory.node[depth];
            continue;
        }
        same = false;
        node = intern_frame(session, node, frame, key);
        if (node == 0) {
            memory.count = 0;
            return 0;
        }
        if (depth < kRememberedFrames) {
            memory.code[depth] = key.code;
            memory.fingerprint[depth] = key.fingerprint;
            memory.place[depth] = frame.place;
            memory.node[depth] = node;
        }
    }
    memory.count = count < kRememberedFrames ? count : kRememberedFrames;
    return node;
}

void forget_python_codes() {
    unmap(g_codes, kKnownCodes * sizeof *g_codes);
    g_codes = nullptr;
    g_codes_lock.reset();
    if (g_python.state == kChecking) {
        g_python.state = kUnchecked;
    }
}

}  // namespace fragtrace::preload
