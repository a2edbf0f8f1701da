// The traces that a run left in its folder.
#pragma once

#include <ctime>
#include <filesystem>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace fragtrace::launcher {

// Makes the folder where it is missing and returns its absolute path, since the program may change
// its folder before its first CUDA call. Throws a Refusal where it cannot be made or written into.
std::string prepare_folder(const std::string& name);

// The time now, by the clock of the folder's file system, which may be another machine's.
timespec folder_time(const std::string& folder);

// The traces that were written since then. Those of `process` come first, and its newest part
// before the other parts; then come those of other processes, the largest first.
std::vector<std::string> find_traces(const std::string& folder,
                                     const timespec& since,
                                     pid_t process);

enum class TraceOwner { kProcess, kPartOfProcess, kOther };

// Read from the name of a trace: NAME.PID.ftrace, NAME.PID.N.ftrace or NAME.PID.partN.ftrace.
// `part` gets N.
TraceOwner owner_of(std::string_view file_name, pid_t process, unsigned long* part);

// The path as a user would type it in `folder`, quoted for a shell.
std::string shell_path(std::string_view path, std::string_view folder);

}  // namespace fragtrace::launcher
