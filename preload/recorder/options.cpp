#include "recorder/options.h"

#include <fragtrace/sizes.h>

#include "recorder/output_pattern.h"
#include "system/environment.h"
#include "system/thread_state.h"

#include <initializer_list>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

namespace fragtrace::preload {
namespace {

constexpr uint64_t kLeastSizeLimit_bytes = 1u << 20;
constexpr uint64_t kFlightSize_bytes = 64u << 20;
constexpr uint64_t kSizeLimit_bytes = uint64_t{20} << 30;
constexpr uint32_t kKeepFree_percent = 10;
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

bool parse_size(const char* value, uint64_t* result) {
    return read_size(value, strlen(value), result) == SizeText::kRead;
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
    return is_pattern(value) && parse_path(value, options->output);
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
    options->in_parts = limit != 0;
    return true;
}

// Accepts a size, or a share with a percent sign.
bool set_keep_free(Options* options, const char* value) {
    char digits[8];
    const size_t size = strlen(value);
    if (size == 0 || value[size - 1] != '%') {
        options->keep_free_percent = 0;
        return parse_size(value, &options->keep_free_bytes);
    }
    if (size > sizeof digits) {
        return false;
    }
    memcpy(digits, value, size - 1);
    digits[size - 1] = '\0';
    options->keep_free_bytes = 0;
    return parse_number(digits, 0, 99, &options->keep_free_percent);
}

// Accepts a switch, or the maximum size of the last events.
bool set_flight(Options* options, const char* value) {
    if (parse_switch(value, &options->flight)) {
        options->size_limit_bytes = options->flight ? kFlightSize_bytes : options->size_limit_bytes;
        options->in_parts = options->in_parts || options->flight;
        return true;
    }
    options->flight = set_size_limit(options, value) && options->size_limit_bytes != 0;
    return options->flight;
}

bool parse_signal(const char* value, int* result) {
    // Signals whose default action is useless for a program that does not handle them.
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
    return parse_signal(value, &options->control_signal);
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

constexpr Row kRows[] = {
#define FT_OPTION(variable, setter, ...) {variable, setter},
#include "recorder/options.def"
#undef FT_OPTION
};

// An empty value counts as unset.
bool is_set(const char* value) {
    return value != nullptr && *value != '\0';
}

void set_defaults(Options* options) {
    memset(options, 0, sizeof *options);
    options->native_stacks = true;
    options->python_stacks = true;
    options->follow_fork = true;
    options->stack_depth = kMaxStackDepth;
    options->ring_events = 65536;
    options->compression_level = 3;
    options->size_limit_bytes = kSizeLimit_bytes;
    options->keep_free_percent = kKeepFree_percent;
}

}  // namespace

void read_options(Options* options) {
    set_defaults(options);
    for (const Row& row : kRows) {
        const char* value = variable(row.name);
        if (is_set(value) && !row.set(options, value) && options->rejected[0] == '\0') {
            strncpy(options->rejected, row.name, sizeof options->rejected - 1);
        }
    }
}

bool set_option(Options* options, const char* variable, const char* value) {
    for (const Row& row : kRows) {
        if (strcmp(row.name, variable) == 0) {
            return !is_set(value) || row.set(options, value);
        }
    }
    return true;
}

bool option_accepts(const char* variable, const char* value) {
    Options options;
    set_defaults(&options);
    return set_option(&options, variable, value);
}

bool option_off() {
    bool off = false;
    const char* value = variable("FRAGTRACE_OFF");
    return value != nullptr && parse_switch(value, &off) && off;
}

bool option_nvtx() {
    bool on = true;
    const char* value = variable("FRAGTRACE_NVTX");
    return value == nullptr || *value == '\0' || !parse_switch(value, &on) || on;
}

bool option_starts_stopped() {
    bool on = true;
    const char* value = variable("FRAGTRACE_START");
    return value != nullptr && *value != '\0' && parse_switch(value, &on) && !on;
}

uint32_t option_start_after_s() {
    uint32_t seconds = 0;
    const char* value = variable("FRAGTRACE_START_AFTER");
    return value != nullptr && parse_number(value, 0, kMostStartAfter_s, &seconds) ? seconds : 0;
}

}  // namespace fragtrace::preload
