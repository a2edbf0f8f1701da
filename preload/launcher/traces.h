// The traces of a run in its folder.
#pragma once

#include <ctime>
#include <filesystem>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace fragtrace::launcher {

// Creates the folder if it is missing. Returns its absolute path, because the program may change
// its current folder before its first CUDA call. Throws a Refusal if the folder cannot be created
// or written to.
std::string prepare_folder(const std::string& name);

// Returns the current time by the clock of the folder's file system, which may be another
// machine's.
timespec folder_time(const std::string& folder);

// Returns the traces written since then. The ones of `process` come first, its newest part before
// its other parts. The ones of other processes follow, largest first.
std::vector<std::string> find_traces(const std::string& folder,
                                     const timespec& since,
                                     pid_t process);

enum class TraceOwner { kProcess, kPartOfProcess, kOther };

// Determines the owner from the name of a trace: NAME.PID.ftrace, NAME.PID.N.ftrace or
// NAME.PID.partN.ftrace. `part` becomes N.
TraceOwner owner_of(std::string_view file_name, pid_t process, unsigned long* part);

// Returns an argument as a user would type it, quoted for a shell.
std::string shell_word(std::string_view word);

// Returns the path as a user in `folder` would type it, quoted for a shell.
std::string shell_path(std::string_view path, std::string_view folder);

}  // namespace fragtrace::launcher
