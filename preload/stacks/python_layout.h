// Where CPython keeps its frames: offsets per minor version, and the check that they are right.
//
// The check reads a thread's frames through the kernel, so that wrong offsets (an interpreter built
// in an unusual way) are found out rather than followed into a crash.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace fragtrace::preload {

struct PythonLayout {
    int minor;  // 3.minor
    // Thread state to innermost frame; by way of a structure in between where frame_in_cframe >= 0.
    uint32_t thread_frame;
    int32_t frame_in_cframe;
    uint32_t frame_code;
    uint32_t frame_previous;
    uint32_t frame_instruction;  // a pointer into the code, or an int before 3.11
    uint32_t frame_owner;        // 0 = there is none
    uint32_t frame_is_entry;     // 0 = there is none
    uint32_t code_first_line;
    uint32_t code_file;
    uint32_t code_name;  // the qualified one where there is one
    uint32_t code_line_table;
    uint32_t code_instructions;     // 0 before 3.11
    uint32_t code_first_traceable;  // 0 = unknown
    uint32_t ascii_bytes;           // sizes of the headers of the two kinds of strings
    uint32_t compact_bytes;
    uint32_t string_kind_shift;
};

// Addresses of the types, to recognise objects by.
struct PythonTypes {
    const void* code;
    const void* text;
    const void* bytes;
};

// False, with a reason, for interpreters that are not known. `debug_offsets` is the start of
// _PyRuntime from 3.13 on, else nullptr.
bool python_layout(const char* version,
                   const void* debug_offsets,
                   PythonLayout* layout,
                   const char** reason);

enum class LayoutCheck { kRight, kWrong, kNoFrames };

LayoutCheck check_layout(const PythonLayout& layout, const PythonTypes& types, const void* thread);

// Whether a byte can be stored there; says so by storing the one that it finds, through the kernel.
bool can_be_written(void* at);

// ---- reading; `base` is an object whose layout has been checked
// ----------------------------------

template <typename T>
T python_field(const void* base, uint32_t offset) {
    T value;
    __builtin_memcpy(&value, static_cast<const char*>(base) + offset, sizeof value);
    return value;
}

inline constexpr uint32_t kObjectType = 8;
inline constexpr uint32_t kObjectSize = 16;  // of variable-sized objects
inline constexpr uint32_t kBytesData = 32;
inline constexpr uint32_t kTextLength = 16;
inline constexpr uint32_t kTextState = 32;
// Frames with these owners or above belong to the C stack: no function of the program.
inline constexpr uint8_t kOwnedByCStack = 3;

// From 3.14 on the code reference carries a tag in its low bits.
inline const void* frame_code(const PythonLayout& layout, const void* frame) {
    const auto tagged = python_field<uintptr_t>(frame, layout.frame_code);
    return reinterpret_cast<const void*>(tagged & ~uintptr_t{7});
}

// True where each call of the evaluator runs one frame. Later interpreters run the calls between
// Python functions in one evaluator; the frame that it began with is an entry.
inline bool every_frame_is_entry(const PythonLayout& layout) {
    return layout.frame_owner == 0;
}

// Byte offset of the instruction that a frame is at; negative = not started.
int frame_lasti(const PythonLayout& layout, const void* frame, const void* code);

// Copies a str object as UTF-8, truncated at a character; the number of bytes.
size_t copy_python_text(const PythonLayout& layout, const void* text, char* to, size_t capacity);

// A number that differs for code objects that differ in function, file or lines.
uint64_t hash_of_code(const PythonLayout& layout, const PythonTypes& types, const void* code);

uint32_t code_line(const PythonLayout& layout, const void* code, int lasti);

}  // namespace fragtrace::preload
