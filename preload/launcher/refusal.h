// A run that cannot begin: one line on standard error and an exit code.
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

[[noreturn]] void refuse_usage(std::string_view text);  // kBadUsage, and a hint to --help

// One line on standard error, with our name in front.
void say(std::string_view text);
// Writes all of it to standard error; false where nobody reads.
bool write_error(std::string_view text);

// Bytes that would leave the line or control a terminal are shown as '?'.
std::string one_line(std::string_view text);

}  // namespace fragtrace::launcher
