#include "options.h"

#include "sys.h"
#include "thread_state.h"

#include <initializer_list>
#include <stdlib.h>
#include <string.h>

namespace fragtrace::preload {
namespace {

bool parse_switch(const char* value, bool* result) {
    for (const char* word : {"1", "on", "yes", "true"}) {
        if (strcmp(value, word) == 0) {
            *result = true;
            return true;
        }
    }
    for (const char* word : {"", "0", "off", "no", "false"}) {
        if (strcmp(value, word) == 0) {
            *result = false;
            return true;
        }
    }
    return false;
}

bool parse_number(const char* value, uint32_t low, uint32_t high, uint32_t* result) {
    uint64_t number = 0;
    if (*value == '\0') {
        return false;
    }
    for (; *value != '\0'; ++value) {
        if (*value < '0' || *value > '9' || number > high) {
            return false;
        }
        number = number * 10 + static_cast<uint64_t>(*value - '0');
    }
    if (number < low || number > high) {
        return false;
    }
    *result = static_cast<uint32_t>(number);
    return true;
}

bool parse_path(const char* value, char* result) {
    const size_t size = strlen(value);
    if (size >= kMaxPathBytes) {
        return false;
    }
    memcpy(result, value, size + 1);
    return true;
}

bool set_output(Options* options, const char* value) {
    return parse_path(value, options->output);
}

bool set_ring_directory(Options* options, const char* value) {
    return parse_path(value, options->ring_directory);
}

bool set_off(Options* options, const char* value) {
    return parse_switch(value, &options->off);
}

bool set_follow_fork(Options* options, const char* value) {
    return parse_switch(value, &options->follow_fork);
}

bool set_stacks(Options* options, const char* value) {
    const bool all = strcmp(value, "all") == 0;
    const bool native = strcmp(value, "native") == 0;
    const bool python = strcmp(value, "python") == 0;
    if (!all && !native && !python && strcmp(value, "none") != 0) {
        return false;
    }
    options->native_stacks = all || native;
    options->python_stacks = all || python;
    return true;
}

bool set_stack_depth(Options* options, const char* value) {
    return parse_number(value, 1, kMaxStackDepth, &options->stack_depth);
}

bool set_ring_events(Options* options, const char* value) {
    uint32_t wanted = 0;
    if (!parse_number(value, 64, 1u << 24, &wanted)) {
        return false;
    }
    uint32_t power = 64;
    while (power < wanted) {
        power *= 2;
    }
    options->ring_events = power;
    return true;
}

bool set_compression(Options* options, const char* value) {
    return parse_number(value, 0, 19, &options->compression_level);
}

struct Row {
    const char* name;
    bool (*set)(Options* options, const char* value);
};

// The one place where a setting is named. docs/trace-format.md and README.md describe them.
constexpr Row kRows[] = {
    {"FRAGTRACE_OUTPUT", set_output},
    {"FRAGTRACE_OFF", set_off},
    {"FRAGTRACE_STACKS", set_stacks},
    {"FRAGTRACE_STACK_DEPTH", set_stack_depth},
    {"FRAGTRACE_RING_EVENTS", set_ring_events},
    {"FRAGTRACE_RING_DIRECTORY", set_ring_directory},
    {"FRAGTRACE_COMPRESSION", set_compression},
    {"FRAGTRACE_FOLLOW_FORK", set_follow_fork},
};

}  // namespace

void read_options(Options* options) {
    memset(options, 0, sizeof *options);
    options->native_stacks = true;
    options->python_stacks = true;
    options->follow_fork = true;
    options->stack_depth = 48;
    options->ring_events = 65536;
    options->compression_level = 3;
    for (const Row& row : kRows) {
        const char* value = getenv(row.name);
        if (value != nullptr && !row.set(options, value) && options->rejected[0] == '\0') {
            Text(options->rejected, sizeof options->rejected).add(row.name);
        }
    }
}

bool option_off() {
    bool off = false;
    const char* value = getenv("FRAGTRACE_OFF");
    return value != nullptr && parse_switch(value, &off) && off;
}

}  // namespace fragtrace::preload
