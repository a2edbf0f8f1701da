// The traces of a run in its folder.
#pragma once

#include <ctime>
#include <filesystem>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace fragtrace::launcher {

// Where the processes of a run write their traces.
struct Output {
    std::string folder;   // absolute
    std::string pattern;  // the rest of the path, from the first part with a pattern on
                          // (recorder/output_pattern.h); empty = none

    // The value of FRAGTRACE_OUTPUT that names both.
    [[nodiscard]] std::string setting() const;
    // As a message names it: folder and pattern.
    [[nodiscard]] std::string name() const;
    // What follows the folder in an argument for a shell that expands to the traces.
    [[nodiscard]] std::string shell_glob() const;
};

// Splits a folder with patterns. `folder` stays relative if the pattern is.
Output split_output(const std::string& pattern);

// The same, and creates `folder` as prepare_folder() does. Throws a Refusal for a malformed
// pattern.
Output prepare_output(const std::string& pattern);

// Creates the folder if it is missing. Returns its absolute path, because the program may change
// its current folder before its first CUDA call. Throws a Refusal if the folder cannot be created
// or written to.
std::string prepare_folder(const std::string& name);

// Returns the current time by the clock of the folder's file system, which may be another
// machine's.
timespec folder_time(const std::string& folder);

// Returns the traces written since then. The ones of `process` come first, its newest part before
// its other parts. The ones of other processes follow, largest first.
std::vector<std::string> find_traces(const Output& output, const timespec& since, pid_t process);

enum class TraceOwner { kProcess, kPartOfProcess, kOther };

// Determines the owner from the name of a trace: BEGIN.PID.ftrace, BEGIN.PID.N.ftrace or
// BEGIN.PID.partN.ftrace, where BEGIN is PROGRAM.HOST or PROGRAM.HOST.rankK. `part` becomes N.
// `host` is as in the name.
TraceOwner owner_of(std::string_view file_name,
                    std::string_view host,
                    pid_t process,
                    unsigned long* part);

// Returns the path as a user in `folder` would type it, quoted for a shell.
std::string shell_path(std::string_view path, std::string_view folder);

}  // namespace fragtrace::launcher
