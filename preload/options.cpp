#include "options.h"

#include "sys.h"
#include "thread_state.h"

#include <initializer_list>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

namespace fragtrace::preload {
namespace {

constexpr uint64_t kLeastSizeLimit_bytes = 1u << 20;
constexpr uint64_t kFlightSize_bytes = 64u << 20;
constexpr uint32_t kMostStartAfter_s = 100'000'000;

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

// Bytes, or a number with KiB, MiB, GiB or TiB behind it.
bool parse_size(const char* value, uint64_t* result) {
    constexpr uint64_t kMost = uint64_t{1} << 22;  // TiB of them still fit 64 bits

    constexpr struct {
        const char* unit;
        uint32_t shift;
    } kUnits[] = {{"", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};

    uint64_t number = 0;
    const char* at = value;
    for (; *at >= '0' && *at <= '9' && number < uint64_t{1} << 58; ++at) {
        number = number * 10 + static_cast<uint64_t>(*at - '0');
    }
    for (const auto& row : kUnits) {
        if (at != value && strcmp(at, row.unit) == 0 && (row.shift == 0 || number <= kMost)) {
            *result = number << row.shift;
            return true;
        }
    }
    return false;
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

bool set_min_bytes(Options* options, const char* value) {
    return parse_size(value, &options->min_block_bytes);
}

bool set_size_limit(Options* options, const char* value) {
    uint64_t limit = 0;
    if (!parse_size(value, &limit) || (limit != 0 && limit < kLeastSizeLimit_bytes)) {
        return false;
    }
    options->size_limit_bytes = limit;
    return true;
}

// A switch, or the size that the last events may take.
bool set_flight(Options* options, const char* value) {
    if (parse_switch(value, &options->flight)) {
        options->size_limit_bytes = options->flight ? kFlightSize_bytes : options->size_limit_bytes;
        return true;
    }
    options->flight = set_size_limit(options, value) && options->size_limit_bytes != 0;
    return options->flight;
}

bool parse_signal(const char* value, int* result) {
    // Signals whose default is of no use to a program that does not handle them.
    constexpr struct {
        const char* name;
        int number;
    } kSignals[] = {{"HUP", SIGHUP},
                    {"USR1", SIGUSR1},
                    {"USR2", SIGUSR2},
                    {"URG", SIGURG},
                    {"WINCH", SIGWINCH},
                    {"IO", SIGIO},
                    {"PWR", SIGPWR}};

    const char* name = strncmp(value, "SIG", 3) == 0 ? value + 3 : value;
    for (const auto& row : kSignals) {
        if (strcmp(name, row.name) == 0) {
            *result = row.number;
            return true;
        }
    }
    return false;
}

bool set_signal(Options* options, const char* value) {
    return *value == '\0' || parse_signal(value, &options->control_signal);
}

bool set_nvtx(Options* /*options*/, const char* value) {
    bool on = true;
    return parse_switch(value, &on);
}

bool set_start(Options* /*options*/, const char* value) {
    bool on = false;
    return parse_switch(value, &on);
}

bool set_stopped_stacks(Options* options, const char* value) {
    return parse_switch(value, &options->stacks_while_stopped);
}

bool set_start_after(Options* /*options*/, const char* value) {
    uint32_t seconds = 0;
    return parse_number(value, 0, kMostStartAfter_s, &seconds);
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
    {"FRAGTRACE_NVTX", set_nvtx},
    {"FRAGTRACE_START", set_start},
    {"FRAGTRACE_START_AFTER", set_start_after},
    {"FRAGTRACE_STOPPED_STACKS", set_stopped_stacks},
    {"FRAGTRACE_SIGNAL", set_signal},
    {"FRAGTRACE_MIN_BYTES", set_min_bytes},
    {"FRAGTRACE_SIZE_LIMIT", set_size_limit},
    {"FRAGTRACE_FLIGHT", set_flight},
};

}  // namespace

void read_options(Options* options) {
    memset(options, 0, sizeof *options);
    options->native_stacks = true;
    options->python_stacks = true;
    options->follow_fork = true;
    options->stack_depth = kMaxStackDepth;
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

bool option_nvtx(const char* value) {
    bool on = true;
    return value == nullptr || *value == '\0' || !parse_switch(value, &on) || on;
}

bool option_starts_stopped() {
    bool on = true;
    const char* value = getenv("FRAGTRACE_START");
    return value != nullptr && *value != '\0' && parse_switch(value, &on) && !on;
}

uint32_t option_start_after_s() {
    uint32_t seconds = 0;
    const char* value = getenv("FRAGTRACE_START_AFTER");
    return value != nullptr && parse_number(value, 0, kMostStartAfter_s, &seconds) ? seconds : 0;
}

}  // namespace fragtrace::preload
