// The recorder's settings: the environment variables of options.def, read when the session starts.
//
// They are not read in the library's constructor: a Python script may set os.environ before its
// first use of CUDA, and those settings must count.
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
    uint64_t size_limit_bytes;  // of all parts of the trace together; 0 = one part without a limit
    bool in_parts;              // write parts from the start; otherwise once half of the limit is
                                // reached
    uint64_t keep_free_bytes;   // space of the file system that must stay free
    uint32_t keep_free_percent;
    uint64_t min_block_bytes;  // smaller blocks are not recorded
    uint32_t stack_depth;
    uint32_t ring_events;  // a power of two
    uint32_t compression_level;
    char output[kMaxPathBytes];  // directory, perhaps with patterns; empty = current directory
    char ring_directory[kMaxPathBytes];  // empty = chosen by the recorder
    char rejected[128];                  // name of the first setting that could not be understood
};

// Reads all options. An option with an invalid value keeps its default, and `rejected` names it.
void read_options(Options* options);

// Sets one option as if it were in the environment. Returns false if the value is invalid, and true
// for variables that are not in the table.
bool set_option(Options* options, const char* variable, const char* value);

// Returns whether read_options would accept this value. The launcher checks it before it starts a
// program.
bool option_accepts(const char* variable, const char* value);

// Options that matter before a session exists, read directly from the environment.
bool option_off();
bool option_nvtx();
bool option_starts_stopped();
uint32_t option_start_after_s();  // 0 = at once

}  // namespace fragtrace::preload
