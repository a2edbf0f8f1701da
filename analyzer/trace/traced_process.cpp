#include "analyzer/trace/traced_process.h"

#include "analyzer/support/input_file.h"
#include "analyzer/trace/absorb_ring.h"
#include "analyzer/trace/process_end.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <unistd.h>

namespace fragtrace::analyzer {
namespace {

// Whether a process with this pid and this start time exists.
bool same_process(std::uint32_t pid, std::uint64_t start_ticks) {
    std::ifstream stat(fmt::format("/proc/{}/stat", pid));
    const std::string text{std::istreambuf_iterator<char>(stat), {}};
    const std::size_t name_end = text.rfind(')');  // the name may contain any character
    if (name_end == std::string::npos) {
        return false;
    }
    std::istringstream fields(text.substr(name_end + 1));
    std::string field;
    constexpr int kState = 3;
    constexpr int kStartTime = 22;
    for (int number = kState; number <= kStartTime && fields >> field; ++number) {
        if (number == kState && (field == "Z" || field == "X")) {
            return false;
        }
    }
    return field == std::to_string(start_ticks);
}

// An exec keeps host, pid and start time. The trace of the later program is therefore in the same
// folder.
bool follows(const TraceHeader& later, const TraceHeader& trace) {
    return std::memcmp(later.magic, trace.magic, sizeof trace.magic) == 0 &&
           later.pid == trace.pid && later.process_start_ticks == trace.process_start_ticks &&
           std::memcmp(later.host, trace.host, sizeof trace.host) == 0 &&
           later.start_monotonic_ns > trace.start_monotonic_ns;
}

// Whether this process became another program by exec.
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

}  // namespace

bool process_runs(const TraceHeader& trace) {
    if (trace.pid == 0 || !same_process(trace.pid, trace.process_start_ticks)) {
        return false;
    }
    const std::string ring(trace.ring_path, strnlen(trace.ring_path, sizeof trace.ring_path));
    const Result<InputFile> file = InputFile::open(ring.empty() ? "/dev/null" : ring);
    std::ifstream maps(fmt::format("/proc/{}/maps", trace.pid));
    if (!file.ok() || !maps) {
        return true;
    }
    std::string line;
    bool any = false;
    while (std::getline(maps, line)) {
        std::istringstream fields(line);
        std::string skipped;
        std::uint64_t inode = 0;
        fields >> skipped >> skipped >> skipped >> skipped >> inode;
        any = true;
        if (inode == file->inode()) {
            return true;
        }
    }
    return !any;  // if the map is not readable, assume that it runs
}

Ending ending_without_mark(const std::string& path,
                           const TraceHeader& trace,
                           bool runs,
                           const std::map<std::string, std::string>& facts) {
    if (runs) {
        return Ending::kRunning;
    }
    if (called_exec(path, trace)) {
        return Ending::kExec;
    }
    const std::string host(trace.host, strnlen(trace.host, sizeof trace.host));
    const bool has_ended =
        host == this_host() || facts.contains(kSignalFact) || was_absorbed(facts);
    return has_ended ? Ending::kKilled : Ending::kNotRecorded;
}

std::string this_host() {
    std::array<char, sizeof TraceHeader::host> name = {};
    return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace fragtrace::analyzer
