// What became of a process whose trace has no end: killed, or another program by exec. An exec
// keeps pid and start time, so the trace of the program that followed stands beside this one.
#include "analyzer/support/input_file.h"
#include "analyzer/trace/ring.h"

#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <system_error>

namespace fragtrace::analyzer {
namespace {

bool follows(const TraceHeader& later, const TraceHeader& trace) {
    return std::memcmp(later.magic, trace.magic, sizeof trace.magic) == 0 &&
           later.pid == trace.pid && later.process_start_ticks == trace.process_start_ticks &&
           later.start_monotonic_ns > trace.start_monotonic_ns;
}

}  // namespace

bool called_exec(const std::string& path, const TraceHeader& trace) {
    if (trace.pid == 0 || trace.process_start_ticks == 0) {
        return false;
    }
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    const std::string pid_part = fmt::format(".{}.", trace.pid);
    std::error_code failed;
    std::filesystem::directory_iterator entry(folder.empty() ? "." : folder, failed);
    for (; !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
        const std::string name = entry->path().filename();
        if (!name.ends_with(".ftrace") || name.find(pid_part) == std::string::npos) {
            continue;
        }
        const Result<InputFile> file = InputFile::open(entry->path());
        TraceHeader later = {};
        if (file.ok() && file->read_at(0, &later, sizeof later) == sizeof later &&
            follows(later, trace)) {
            return true;
        }
    }
    return false;
}

}  // namespace fragtrace::analyzer
