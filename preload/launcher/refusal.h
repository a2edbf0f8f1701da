// A run that cannot start: one line on standard error and an exit code.
#pragma once

#include <string>
#include <string_view>

namespace fragtrace::launcher {

inline constexpr int kBadUsage = 2;
inline constexpr int kCannotRun = 126;
inline constexpr int kNotFound = 127;

struct Refusal {
    int exit_code;
    std::string text;
};

[[noreturn]] void refuse_usage(std::string_view text);  // kBadUsage, with a hint to --help

// Writes one line to standard error, after "fragtrace: ".
void say(std::string_view text);
// Writes the whole text to standard error. Returns false if nobody reads it.
bool write_error(std::string_view text);

// Writes to standard output, at once. Throws a Refusal if that fails.
void print_output(std::string_view text);

}  // namespace fragtrace::launcher
