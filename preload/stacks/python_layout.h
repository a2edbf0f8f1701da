// Locations of CPython's frames: offsets per minor version, and a check that they are right.
//
// The check reads a thread's frames through the kernel. So wrong offsets (an interpreter built in
// an unusual way) are detected and do not crash the process.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace fragtrace::preload {

struct PythonLayout {
    int minor;  // 3.minor
    // Offset of the innermost frame in the thread state. If frame_in_cframe >= 0, it is the offset
    // of a structure that points to that frame.
    uint32_t thread_frame;
    int32_t frame_in_cframe;
    uint32_t frame_code;
    uint32_t frame_previous;
    uint32_t frame_instruction;  // a pointer into the code, or an int before 3.11
    uint32_t frame_owner;        // 0 = no such field
    uint32_t frame_is_entry;     // 0 = no such field
    uint32_t code_first_line;
    uint32_t code_file;
    uint32_t code_name;  // the qualified name if the version has one
    uint32_t code_line_table;
    uint32_t code_instructions;     // 0 before 3.11
    uint32_t code_first_traceable;  // 0 = unknown
    uint32_t ascii_bytes;           // header sizes of the two kinds of strings
    uint32_t compact_bytes;
    uint32_t string_kind_shift;
};

// Addresses of the types, used to recognise objects.
struct PythonTypes {
    const void* code;
    const void* text;
    const void* bytes;
};

// Returns nullptr if the recorder knows this interpreter, otherwise the reason why it records no
// Python stacks there. `version` is the text of Py_GetVersion().
const char* why_python_is_unknown(const char* version);

// Returns false and a reason for unknown interpreters. `debug_offsets` is the start of _PyRuntime
// since 3.13, otherwise nullptr.
bool python_layout(const char* version,
                   const void* debug_offsets,
                   PythonLayout* layout,
                   const char** reason);

enum class LayoutCheck { kRight, kWrong, kNoFrames };

LayoutCheck check_layout(const PythonLayout& layout, const PythonTypes& types, const void* thread);

// Returns whether a byte can be stored at `at`, by storing the existing byte through the kernel.
bool can_be_written(void* at);

// ---- reading: `base` is an object whose layout was checked --------------------------------------

template <typename T>
T python_field(const void* base, uint32_t offset) {
    T value;
    __builtin_memcpy(&value, static_cast<const char*>(base) + offset, sizeof value);
    return value;
}

inline constexpr uint32_t kObjectType = 8;
inline constexpr uint32_t kObjectSize = 16;  // of objects of variable size
inline constexpr uint32_t kBytesData = 32;
inline constexpr uint32_t kTextLength = 16;
inline constexpr uint32_t kTextState = 32;
// Frames with this owner or a higher one belong to the C stack and have no function of the program.
inline constexpr uint8_t kOwnedByCStack = 3;

// Since 3.14, the code reference has a tag in its low bits.
inline const void* frame_code(const PythonLayout& layout, const void* frame) {
    const auto tagged = python_field<uintptr_t>(frame, layout.frame_code);
    return reinterpret_cast<const void*>(tagged & ~uintptr_t{7});
}

// Returns true if each call of the evaluator runs only one frame (before 3.11). Later interpreters
// run calls between Python functions in one evaluator call; only the first frame of that call is an
// entry.
inline bool every_frame_is_entry(const PythonLayout& layout) {
    return layout.frame_owner == 0;
}

// Returns the byte offset of the frame's current instruction; negative = not started.
int frame_lasti(const PythonLayout& layout, const void* frame, const void* code);

// Copies a str object as UTF-8, cut at a character boundary. Returns the number of bytes.
size_t copy_python_text(const PythonLayout& layout, const void* text, char* to, size_t capacity);

// Returns a hash of the function, file and lines of a code object.
uint64_t hash_of_code(const PythonLayout& layout, const PythonTypes& types, const void* code);

uint32_t code_line(const PythonLayout& layout, const void* code, int lasti);

}  // namespace fragtrace::preload
