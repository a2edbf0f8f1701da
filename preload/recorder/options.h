// The recorder's settings: the variables of options.def, read when the session starts.
//
// Not read in the constructor: a Python script may set os.environ before it first uses CUDA, and
// those settings have to count.
#pragma once

#include <stdint.h>

namespace fragtrace::preload {

inline constexpr uint32_t kMaxPathBytes = 4096;

struct Options {
    bool off;
    bool native_stacks;
    bool python_stacks;
    bool follow_fork;
    bool stacks_while_stopped;
    bool flight;                // keep a copy of the trace at each out-of-memory
    int control_signal;         // 0 = none
    uint64_t size_limit_bytes;  // of the trace's parts together; 0 = one part without a limit
    bool in_parts;              // from the start; else once half the limit is reached
    uint64_t keep_free_bytes;   // of the file system, never taken
    uint32_t keep_free_percent;
    uint64_t min_block_bytes;  // smaller blocks are not recorded
    uint32_t stack_depth;
    uint32_t ring_events;  // a power of two
    uint32_t compression_level;
    char output[kMaxPathBytes];          // directory; empty = current directory
    char ring_directory[kMaxPathBytes];  // empty = chosen by the recorder
    char rejected[128];                  // name of the first setting that could not be understood
};

// Reads all options; what cannot be understood keeps its default and is named in `rejected`.
void read_options(Options* options);

// Sets one of them as if the environment had it; false where it cannot be understood, true for
// variables that are not in the table.
bool set_option(Options* options, const char* variable, const char* value);

// What read_options would do with this value. The launcher asks it before it starts a program.
bool option_accepts(const char* variable, const char* value);

// Those that matter before a session exists, straight from the environment.
bool option_off();
bool option_nvtx(const char* value);  // which the caller has read: it stands in front of getenv
bool option_starts_stopped();
uint32_t option_start_after_s();  // 0 = at once

}  // namespace fragtrace::preload
