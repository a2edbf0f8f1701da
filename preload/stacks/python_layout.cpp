#include "stacks/python_layout.h"

#include "stacks/python_lines.h"

#include <fcntl.h>
#include <initializer_list>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace fragtrace::preload {
namespace {

// clang-format off
constexpr PythonLayout kLayouts[] = {
    // minor thread cframe | code prev instr owner entry | line file name table instr traceable | ascii compact shift
    { 8,  24, -1,  32, 24, 104,  0,  0,  40, 104, 112, 120,   0,   0,  48, 72, 2},
    { 9,  24, -1,  32, 24, 104,  0,  0,  40, 104, 112, 120,   0,   0,  48, 72, 2},
    {10,  24, -1,  32, 24,  96,  0,  0,  40, 104, 112, 120,   0,   0,  48, 72, 2},
    {11,  56,  8,  32, 48,  56, 69, 68,  72, 112, 128, 136, 184, 168,  48, 72, 2},
    {12,  56,  0,   0,  8,  56, 70,  0,  68, 112, 128, 136, 192, 176,  40, 56, 2},
};

// clang-format on

// Since 3.13, the interpreter publishes its own offsets: 64-bit numbers after a cookie, the version
// and a flag for free-threaded builds. The numbers below are indexes in that list. Each structure
// begins with its size.
struct DebugOffsets {
    int minor;
    int thread;  // size of the thread state
    int frame;
    int code;
    int text;
    uint32_t string_kind_shift;
};

constexpr DebugOffsets kDebugOffsets[] = {
    {13, 19, 28, 34, 72, 2},
    {14, 22, 31, 39, 83, 2},
};

constexpr char kDebugCookie[8] = {'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y'};

bool layout_from_interpreter(int minor, const void* published, PythonLayout* layout) {
    const auto* words = static_cast<const uint64_t*>(published);
    for (const DebugOffsets& at : kDebugOffsets) {
        if (at.minor != minor || published == nullptr ||
            memcmp(published, kDebugCookie, sizeof kDebugCookie) != 0 || words[2] != 0 ||
            words[1] >> 16 != 0x300 + static_cast<uint64_t>(minor)) {
            continue;
        }
        const auto offset = [words](int index) { return static_cast<uint32_t>(words[index]); };
        layout->minor = minor;
        layout->thread_frame = offset(at.thread + 4);
        layout->frame_in_cframe = -1;
        layout->frame_previous = offset(at.frame + 1);
        layout->frame_code = offset(at.frame + 2);
        layout->frame_instruction = offset(at.frame + 3);
        layout->frame_owner = offset(at.frame + 5);
        layout->frame_is_entry = 0;
        layout->code_file = offset(at.code + 1);
        layout->code_name = offset(at.code + 3);
        layout->code_line_table = offset(at.code + 4);
        layout->code_first_line = offset(at.code + 5);
        layout->code_instructions = offset(at.code + 9);
        layout->code_first_traceable = 0;
        layout->ascii_bytes = 40;
        layout->compact_bytes = 56;
        layout->string_kind_shift = at.string_kind_shift;
        return true;
    }
    return false;
}

// Reads memory that may not be mapped: the kernel copies it into a pipe and reports a failure.
class CarefulReader {
  public:
    CarefulReader() : open_(pipe2(ends_, O_CLOEXEC | O_NONBLOCK) == 0) {}

    ~CarefulReader() {
        if (open_) {
            close(ends_[0]);
            close(ends_[1]);
        }
    }

    CarefulReader(const CarefulReader&) = delete;
    CarefulReader& operator=(const CarefulReader&) = delete;

    template <typename T>
    bool read(const void* base, uint32_t offset, T* value) const {
        const char* from = static_cast<const char*>(base) + offset;
        return open_ && write(ends_[1], from, sizeof *value) == sizeof *value &&
               ::read(ends_[0], value, sizeof *value) == sizeof *value;
    }

    [[nodiscard]] bool has_type(const void* object, const void* type) const {
        const void* found = nullptr;
        return object != nullptr && read(object, kObjectType, &found) && found == type;
    }

    bool can_write(void* at) const {
        return open_ && write(ends_[1], at, 1) == 1 && ::read(ends_[0], at, 1) == 1;
    }

  private:
    int ends_[2];
    bool open_;
};

// The memory layout of a str.
struct TextState {
    uint32_t bytes_each;  // per character
    bool compact;
    bool ascii;

    [[nodiscard]] bool readable() const {
        return compact && (bytes_each == 1 || bytes_each == 2 || bytes_each == 4);
    }
};

TextState state_of(const PythonLayout& layout, uint32_t word) {
    const uint32_t state = word >> layout.string_kind_shift;
    return {state & 7, (state & 8) != 0, (state & 16) != 0};
}

constexpr int kLongestLine = 1 << 26;
constexpr int64_t kLongestCode_bytes = 1 << 26;

bool check_text(const PythonLayout& layout,
                const PythonTypes& types,
                const CarefulReader& reader,
                const void* text) {
    uint32_t state = 0;
    return reader.has_type(text, types.text) && reader.read(text, kTextState, &state) &&
           state_of(layout, state).readable();
}

// Returns whether a str has one of these characters; `otherwise` if it is not short ASCII text.
bool holds(const PythonLayout& layout,
           const CarefulReader& reader,
           const void* text,
           const char* characters,
           bool otherwise) {
    constexpr int64_t kLooked_bytes = 256;
    uint32_t word = 0;
    int64_t length = 0;
    if (!reader.read(text, kTextState, &word) || !reader.read(text, kTextLength, &length) ||
        !state_of(layout, word).ascii || length > kLooked_bytes) {
        return otherwise;
    }
    for (uint32_t i = 0; i < length; ++i) {
        char character = '\0';
        if (reader.read(text, layout.ascii_bytes + i, &character) && character != '\0' &&
            strchr(characters, character) != nullptr) {
            return true;
        }
    }
    return false;
}

// Names and files are both strings in adjacent fields. Their text distinguishes them.
bool check_names(const PythonLayout& layout, const CarefulReader& reader, const void* code) {
    const void* file = nullptr;
    const void* name = nullptr;
    return reader.read(code, layout.code_file, &file) &&
           reader.read(code, layout.code_name, &name) && holds(layout, reader, file, "/.<", true) &&
           !holds(layout, reader, name, "/", false);
}

bool check_code(const PythonLayout& layout,
                const PythonTypes& types,
                const CarefulReader& reader,
                const void* frame,
                const void* code) {
    const void* file = nullptr;
    const void* name = nullptr;
    const void* table = nullptr;
    int first_line = -1;
    int64_t table_bytes = 0;
    if (!reader.read(code, layout.code_file, &file) || !check_text(layout, types, reader, file) ||
        !reader.read(code, layout.code_name, &name) || !check_text(layout, types, reader, name) ||
        !reader.read(code, layout.code_line_table, &table) ||
        !reader.has_type(table, types.bytes) || !reader.read(table, kObjectSize, &table_bytes) ||
        table_bytes < 0 || table_bytes > kLongestCode_bytes ||
        !reader.read(code, layout.code_first_line, &first_line) || first_line < 0 ||
        first_line > kLongestLine) {
        return false;
    }
    if (layout.code_instructions == 0) {
        int lasti = 0;
        return reader.read(frame, layout.frame_instruction, &lasti) && lasti >= -1 &&
               lasti < kLongestCode_bytes;
    }
    const char* instruction = nullptr;
    const char* begin = static_cast<const char*>(code) + layout.code_instructions;
    return reader.read(frame, layout.frame_instruction, &instruction) &&
           instruction - begin >= -2 && instruction - begin < kLongestCode_bytes;
}

size_t put_utf8(uint32_t point, char* to) {
    if (point < 0x80) {
        to[0] = static_cast<char>(point);
        return 1;
    }
    if (point < 0x800) {
        to[0] = static_cast<char>(0xc0 | (point >> 6));
        to[1] = static_cast<char>(0x80 | (point & 63));
        return 2;
    }
    if (point >= 0xd800 && point < 0xe000) {  // undecodable bytes of a file name
        to[0] = '?';
        return 1;
    }
    if (point < 0x10000) {
        to[0] = static_cast<char>(0xe0 | (point >> 12));
        to[1] = static_cast<char>(0x80 | ((point >> 6) & 63));
        to[2] = static_cast<char>(0x80 | (point & 63));
        return 3;
    }
    to[0] = static_cast<char>(0xf0 | ((point >> 18) & 7));
    to[1] = static_cast<char>(0x80 | ((point >> 12) & 63));
    to[2] = static_cast<char>(0x80 | ((point >> 6) & 63));
    to[3] = static_cast<char>(0x80 | (point & 63));
    return 4;
}

// The characters of a str; none for a kind of str that interpreters do not use for names.
struct Characters {
    const uint8_t* data;
    size_t count;
    uint32_t bytes_each;
};

Characters characters_of(const PythonLayout& layout, const void* text) {
    const auto length = python_field<int64_t>(text, kTextLength);
    const TextState state = state_of(layout, python_field<uint32_t>(text, kTextState));
    const auto* base = static_cast<const uint8_t*>(text);
    if (!state.readable() || length < 0) {
        return {base, 0, 1};
    }
    return {base + (state.ascii ? layout.ascii_bytes : layout.compact_bytes),
            static_cast<size_t>(length),
            state.bytes_each};
}

// Adds eight bytes per step; each step is a one-to-one function. The length is included, so that
// adjacent texts cannot be confused.
uint64_t add_to_hash(uint64_t hash, const uint8_t* bytes, size_t count) {
    hash = (hash ^ count) * 0x9e3779b97f4a7c15u;
    for (size_t at = 0; at < count; at += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, bytes + at, count - at < sizeof word ? count - at : sizeof word);
        hash = (hash ^ (hash >> 32) ^ word) * 0xd6e8feb86659fd93u;
    }
    return hash ^ (hash >> 29);
}

}  // namespace

const char* why_python_is_unknown(const char* version) {
    if (strstr(version, "free-threading") != nullptr) {
        return "off: free-threaded Python is not known";
    }
    if (strncmp(version, "3.", 2) == 0) {
        const int minor = atoi(version + 2);
        for (const PythonLayout& known : kLayouts) {
            if (known.minor == minor) {
                return nullptr;
            }
        }
        for (const DebugOffsets& known : kDebugOffsets) {
            if (known.minor == minor) {
                return nullptr;
            }
        }
    }
    return "off: this version of Python is not known";
}

bool python_layout(const char* version,
                   const void* debug_offsets,
                   PythonLayout* layout,
                   const char** reason) {
    const char* unknown = why_python_is_unknown(version);
    if (unknown != nullptr) {
        *reason = unknown;
        return false;
    }
    const int minor = atoi(version + 2);
    for (const PythonLayout& known : kLayouts) {
        if (known.minor == minor) {
            *layout = known;
            return true;
        }
    }
    *reason = "off: this version of Python is not known";
    return layout_from_interpreter(minor, debug_offsets, layout);
}

LayoutCheck check_layout(const PythonLayout& layout, const PythonTypes& types, const void* thread) {
    constexpr int kFramesChecked = 32;
    const CarefulReader reader;
    const void* frame = nullptr;
    if (!reader.read(thread, layout.thread_frame, &frame)) {
        return LayoutCheck::kWrong;
    }
    if (layout.frame_in_cframe >= 0 && frame != nullptr &&
        !reader.read(frame, static_cast<uint32_t>(layout.frame_in_cframe), &frame)) {
        return LayoutCheck::kWrong;
    }
    int good = 0;
    for (int i = 0; i < kFramesChecked && frame != nullptr; ++i) {
        uint8_t owner = 0;
        uintptr_t tagged = 0;
        if (!reader.read(frame, layout.frame_code, &tagged) ||
            (layout.frame_owner != 0 && !reader.read(frame, layout.frame_owner, &owner))) {
            return LayoutCheck::kWrong;
        }
        const void* code = reinterpret_cast<const void*>(tagged & ~uintptr_t{7});
        if (owner < kOwnedByCStack) {
            if (!reader.has_type(code, types.code) ||
                !check_code(layout, types, reader, frame, code) ||
                (good == 0 && !check_names(layout, reader, code))) {
                return LayoutCheck::kWrong;
            }
            ++good;
        }
        if (!reader.read(frame, layout.frame_previous, &frame)) {
            return LayoutCheck::kWrong;
        }
    }
    return good != 0 ? LayoutCheck::kRight : LayoutCheck::kNoFrames;
}

bool can_be_written(void* at) {
    return CarefulReader().can_write(at);
}

int frame_lasti(const PythonLayout& layout, const void* frame, const void* code) {
    if (layout.code_instructions == 0) {
        const int lasti = python_field<int>(frame, layout.frame_instruction);
        return layout.minor == 10 ? lasti * 2 : lasti;  // 3.10 counts instructions, not bytes
    }
    const char* begin = static_cast<const char*>(code) + layout.code_instructions;
    return static_cast<int>(python_field<const char*>(frame, layout.frame_instruction) - begin);
}

size_t copy_python_text(const PythonLayout& layout, const void* text, char* to, size_t capacity) {
    const Characters characters = characters_of(layout, text);
    size_t size = 0;
    for (size_t i = 0; i < characters.count && size + 4 <= capacity; ++i) {
        uint32_t point = 0;
        memcpy(&point, characters.data + i * characters.bytes_each, characters.bytes_each);
        size += put_utf8(point, to + size);
    }
    return size;
}

uint64_t hash_of_code(const PythonLayout& layout, const PythonTypes& types, const void* code) {
    uint64_t hash = python_field<uint32_t>(code, layout.code_first_line);
    for (const uint32_t field : {layout.code_name, layout.code_file}) {
        const auto* text = python_field<const void*>(code, field);
        if (python_field<const void*>(text, kObjectType) == types.text) {
            const Characters characters = characters_of(layout, text);
            hash = add_to_hash(hash, characters.data, characters.count * characters.bytes_each);
        }
    }
    const auto* table = python_field<const uint8_t*>(code, layout.code_line_table);
    return add_to_hash(
        hash, table + kBytesData, static_cast<size_t>(python_field<int64_t>(table, kObjectSize)));
}

uint32_t code_line(const PythonLayout& layout, const void* code, int lasti) {
    const auto* table = python_field<const uint8_t*>(code, layout.code_line_table);
    const int first_line = python_field<int>(code, layout.code_first_line);
    const auto size = static_cast<size_t>(python_field<int64_t>(table, kObjectSize));
    const uint8_t* data = table + kBytesData;
    if (layout.minor >= 11) {
        return line_in_location_table(data, size, first_line, lasti);
    }
    return layout.minor == 10 ? line_in_line_table(data, size, first_line, lasti)
                              : line_in_lnotab(data, size, first_line, lasti);
}

}  // namespace fragtrace::preload
