#include "recorder/stack_python.h"

#include "recorder/drain_thread.h"
#include "recorder/python_code.h"
#include "recorder/session.h"
#include "recorder/trace_facts.h"
#include "system/loaded_objects.h"
#include "system/thread_state.h"

#include <link.h>
#include <string.h>

namespace fragtrace::preload {
namespace {

enum InterpreterState : uint32_t {
    kNotFound = 0,
    kUnchecked = 1,  // found; the first thread with Python frames checks the layout
    kChecking = 2,
    kUsable = 3,
    kUnusable = 4,
};

// How a frame shows that C code called the interpreter to run it.
enum class EntryMark {
    kEveryFrame,  // before 3.11: every frame is such an entry
    kInFrame,     // 3.11: a field of the frame
    kFrameBelow,  // since 3.12: a frame of the C stack is below it
};

struct Interpreter {
    uint32_t state;
    void* (*thread_state)();  // PyGILState_GetThisThreadState: returns this thread's state and
                              // needs no GIL
    int (*is_initialized)();  // 0 once finalisation has begun, which frees thread states
    PythonLayout layout;
    PythonTypes types;
    char version[16];
    ModuleVersion looked_at;
};

Interpreter g_python;

// Place of no frame: never equals a frame's place.
constexpr uint64_t kNoPlace = ~uint64_t{0};

EntryMark entry_mark() {
    if (every_frame_is_entry(g_python.layout)) {
        return EntryMark::kEveryFrame;
    }
    return g_python.layout.frame_is_entry != 0 ? EntryMark::kInFrame : EntryMark::kFrameBelow;
}

void say_python(Session* session, const char* status) {
    add_session_fact(session, "stacks.python", status);
    wake_drain(session);
}

// Not dlsym(): it would wait for another thread's dlopen(), and that may run long constructors.
void* find_symbol(const char* name) {
    return find_definition(first_object(), "", name);
}

// Records the address of the function that runs Python frames, for a reader without this
// interpreter's file.
void say_evaluator(Session* session) {
    constexpr const char* kName = "_PyEval_EvalFrameDefault";
    const void* evaluator = find_symbol(kName);
    const link_map* object = evaluator == nullptr ? nullptr : object_at(evaluator);
    if (object != nullptr) {
        char range[48];
        Text text(range, sizeof range);
        text.add_number(reinterpret_cast<uintptr_t>(evaluator)).add(" ");
        text.add_number(defined_symbol_bytes(object, kName));
        add_session_fact(session, "python.evaluator", range);
    }
}

bool find_interpreter(Session* session) {
    const auto version = reinterpret_cast<const char* (*)()>(find_symbol("Py_GetVersion"));
    if (version == nullptr) {
        return false;
    }
    const auto thread_state =
        reinterpret_cast<void* (*)()>(find_symbol("PyGILState_GetThisThreadState"));
    const auto is_initialized = reinterpret_cast<int (*)()>(find_symbol("Py_IsInitialized"));
    g_python.types = {
        find_symbol("PyCode_Type"), find_symbol("PyUnicode_Type"), find_symbol("PyBytes_Type")};
    const char* text = version();
    const char* blank = strchr(text, ' ');
    Text(g_python.version, sizeof g_python.version)
        .add(text, blank == nullptr ? strlen(text) : static_cast<size_t>(blank - text));
    add_session_fact(session, "python.version", g_python.version);
    say_evaluator(session);
    const char* reason = "off: the interpreter hides what is needed";
    if (thread_state == nullptr || is_initialized == nullptr || g_python.types.code == nullptr ||
        g_python.types.text == nullptr || g_python.types.bytes == nullptr ||
        !python_layout(text, find_symbol("_PyRuntime"), &g_python.layout, &reason)) {
        say_python(session, reason);
        store_release(&g_python.state, static_cast<uint32_t>(kUnusable));
        return true;
    }
    g_python.thread_state = thread_state;
    g_python.is_initialized = is_initialized;
    // Valid until a thread with frames comes. It stays if none comes because the frames are read at
    // a wrong place.
    say_python(session, "off: no thread had Python frames yet");
    store_release(&g_python.state, static_cast<uint32_t>(kUnchecked));
    return true;
}

// The first thread that has frames runs this check. Other threads get no Python stacks until it is
// done.
bool check_interpreter(Session* session, const void* thread) {
    uint32_t state = kUnchecked;
    if (!__atomic_compare_exchange_n(
            &g_python.state, &state, kChecking, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
        return state == kUsable;
    }
    const NoCancellation no_cancellation;
    const LayoutCheck result = check_layout(g_python.layout, g_python.types, thread);
    switch (result) {
        case LayoutCheck::kRight:
            watch_code_frees(g_python.types);
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

// A frame's address. The lowest bit means that the frame is an entry, as the frame below it showed.
using FrameWord = uintptr_t;

const void* frame_of(FrameWord word) {
    return reinterpret_cast<const void*>(word & ~FrameWord{1});
}

// Collects at most `limit` frames of the thread, starting with the innermost.
template <EntryMark kMark>
uint32_t collect_frames(const void* thread, FrameWord* frames, uint32_t limit) {
    const PythonLayout& layout = g_python.layout;
    const void* frame = python_field<const void*>(thread, layout.thread_frame);
    if (layout.frame_in_cframe >= 0 && frame != nullptr) {
        frame = python_field<const void*>(frame, static_cast<uint32_t>(layout.frame_in_cframe));
    }
    const uint32_t previous = layout.frame_previous;
    const uint32_t owner = layout.frame_owner;
    uint32_t count = 0;
    for (; frame != nullptr; frame = python_field<const void*>(frame, previous)) {
        if (kMark == EntryMark::kFrameBelow &&
            python_field<uint8_t>(frame, owner) >= kOwnedByCStack) {
            if (count != 0) {
                frames[count - 1] |= 1;
            }
            continue;
        }
        if (count == limit) {
            return count;
        }
        frames[count++] = reinterpret_cast<FrameWord>(frame);
    }
    if (count != 0) {
        frames[count - 1] |= 1;
    }
    return count;
}

// Combines the function, the position in it and the entry mark in one number. As long as no code
// object is freed, two frames have the same number only if all three are equal. Since 3.11 a
// frame's instruction pointer points into its code object, so it identifies both function and
// position.
template <EntryMark kMark>
uint64_t place_of(FrameWord word) {
    const PythonLayout& layout = g_python.layout;
    const void* frame = frame_of(word);
    const auto instruction = python_field<uint64_t>(frame, layout.frame_instruction);
    if (kMark == EntryMark::kEveryFrame) {
        constexpr int kPlaceBits = 20;  // an address has 47 bits, and its lowest three are 0
        const auto place = static_cast<uint32_t>(instruction) + 1;
        const auto code = python_field<uint64_t>(frame, layout.frame_code) >> 3;
        return place >> kPlaceBits == 0 ? code << kPlaceBits | place : kNoPlace;
    }
    const uint64_t marked =
        kMark == EntryMark::kInFrame ? python_field<uint8_t>(frame, layout.frame_is_entry) : 0;
    return instruction | marked | (word & 1);  // instructions have even addresses
}

// Sets `node` to the node of a frame that `parent` called. A frame that is still being set up has
// no position yet; its node is `parent`. Returns false without room or without a code object.
bool intern_frame(
    Session* session, uint32_t parent, const void* frame, bool entry, uint32_t* node) {
    const PythonLayout& layout = g_python.layout;
    const void* code = frame_code(layout, frame);
    const int lasti = frame_lasti(layout, frame, code);
    const int first = layout.code_first_traceable == 0
                          ? -1
                          : python_field<int>(code, layout.code_first_traceable) * 2;
    if (lasti < first) {
        *node = parent;
        return true;
    }
    const uint32_t number = python_code_number(session, layout, g_python.types, code);
    if (number == kUnknownCode) {
        count_up(&session->ring.header->stacks_without_room);
        return false;
    }
    const uint64_t word = kPythonFrame | (entry ? kPythonEntry : 0) | (uint64_t{number} << 32) |
                          static_cast<uint32_t>(lasti);
    *node = session->stacks.intern(parent, word, [&] { return code_line(layout, code, lasti); });
    if (*node == 0) {
        count_up(&session->ring.header->stacks_without_room);
    }
    return *node != 0;
}

bool has_code(const void* frame) {
    const void* code = frame_code(g_python.layout, frame);
    return code != nullptr && python_field<const void*>(code, kObjectType) == g_python.types.code;
}

// Counted once per thread: framework threads, such as those of a backward pass, have no Python
// frames.
void count_thread_without_python(Session* session) {
    if (!t_thread.counted_without_python) {
        t_thread.counted_without_python = true;
        count_up(&session->threads_without_python);
    }
}

// Interns frames from the outermost inwards. Reuses the nodes of this thread's previous stack as
// far as the frames are the same.
template <EntryMark kMark>
uint32_t stack_of(Session* session, const void* thread) {
    FrameWord frames[kMaxStackDepth];
    const uint32_t count = collect_frames<kMark>(thread, frames, session->options.stack_depth);
    if (count == 0) {
        count_thread_without_python(session);
    }
    PythonMemory& memory = t_thread.python;
    const uint64_t era = python_code_era();
    uint32_t known = era == 0 || memory.era != era ? 0 : memory.count;
    known = known < count ? known : count;
    const FrameWord* next = frames + count;  // one after the outermost remaining frame
    uint32_t depth = 0;
    while (depth < known && memory.place[depth] != kNoPlace &&
           place_of<kMark>(next[-1]) == memory.place[depth]) {
        --next;
        ++depth;
    }
    uint32_t node = depth == 0 ? 0 : memory.node[depth - 1];
    bool remembered = true;
    for (; next != frames; --next, ++depth) {
        const void* frame = frame_of(next[-1]);
        if (!has_code(frame)) {  // frames further inside may still be valid
            count_up(&session->ring.header->python_walk_failures);
            remembered = false;
            node = 0;
            continue;
        }
        const uint64_t place = place_of<kMark>(next[-1]);
        const uint32_t parent = node;
        const bool entry = kMark == EntryMark::kEveryFrame || (place & 1) != 0;
        if (!intern_frame(session, parent, frame, entry, &node)) {
            memory.count = 0;
            return 0;
        }
        if (depth < kRememberedFrames) {
            memory.place[depth] = node == parent ? kNoPlace : place;
            memory.node[depth] = node;
        }
    }
    memory.era = era;
    memory.count = !remembered ? 0 : count < kRememberedFrames ? count : kRememberedFrames;
    return node;
}

}  // namespace

void start_python_stacks(Session* session) {
    if (!session->options.python_stacks) {
        add_session_fact(session, "stacks.python", "off: FRAGTRACE_STACKS");
        return;
    }
    if (!map_python_codes()) {
        add_session_fact(session, "stacks.python", "off: out of memory");
        return;
    }
    const uint32_t state = load_acquire(&g_python.state);
    if (state == kUsable) {  // the layout was checked before a fork
        add_session_fact(session, "python.version", g_python.version);
        say_evaluator(session);
        add_session_fact(session, "stacks.python", "on");
    } else if (state == kNotFound && !find_interpreter(session)) {
        add_session_fact(session, "stacks.python", "off: no interpreter in the process");
    }
    g_python.looked_at = module_version();
}

void look_for_python(Session* session) {
    if (!session->options.python_stacks || load_acquire(&g_python.state) != kNotFound ||
        g_python.looked_at.added == session->modules_written.added) {
        return;
    }
    g_python.looked_at = session->modules_written;
    find_interpreter(session);
}

uint32_t python_stack(Session* session) {
    const uint32_t state = load_acquire(&g_python.state);
    if ((state != kUsable && state != kUnchecked) || !python_codes_mapped()) {
        return 0;
    }
    // After finalisation, the thread's state is freed memory, or memory of another library if its
    // key was reused.
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
    switch (entry_mark()) {
        case EntryMark::kEveryFrame:
            return stack_of<EntryMark::kEveryFrame>(session, thread);
        case EntryMark::kInFrame:
            return stack_of<EntryMark::kInFrame>(session, thread);
        case EntryMark::kFrameBelow:
            break;
    }
    return stack_of<EntryMark::kFrameBelow>(session, thread);
}

void forget_python() {
    forget_python_codes();
    if (g_python.state == kChecking) {
        g_python.state = kUnchecked;
    }
}

}  // namespace fragtrace::preload
