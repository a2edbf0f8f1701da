#include "analyzer/trace/traced_process.h"

#include "analyzer/support/input_file.h"
#include "analyzer/support/look_at.h"
#include "analyzer/trace/absorb_ring.h"
#include "analyzer/trace/builder.h"
#include "analyzer/trace/chunk_scanner.h"
#include "analyzer/trace/process_end.h"
#include "analyzer/trace/ring_reader.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <sstream>
#include <system_error>
#include <unistd.h>
#include <unordered_map>
#include <vector>

namespace fragtrace::analyzer {
namespace {

using Facts = std::map<std::string, std::string>;

// The target of a link in /proc/self; empty = there is none.
std::string link_of_this_process(const char* path) {
    std::array<char, 64> target = {};
    const ssize_t size = readlink(path, target.data(), target.size());
    return size > 0 ? std::string(target.data(), static_cast<std::size_t>(size)) : "";
}

// The facts of the start of a recording: those of its first chunks or, as long as the file has
// none, of its ring.
Facts first_facts(const std::string& path, const InputFile& file, const TraceHeader& trace) {
    constexpr int kFirstChunks = 8;
    TimelineBuilder builder(file.size());
    ChunkScanner scanner(file, trace.header_bytes, true);
    Chunk chunk;
    for (int i = 0; i < kFirstChunks && scanner.next(&chunk); ++i) {
        if (chunk.header.type == ChunkType::kEvents) {
            break;
        }
        if (chunk.header.type == ChunkType::kFacts) {
            builder.add_chunk(chunk);
        }
    }
    if (builder.facts().empty()) {
        builder.add_facts(read_ring(path, trace, true).facts);
    }
    return builder.facts();
}

// Whether process ids of a trace with these facts are those of this process. nullopt: the trace
// does not say.
std::optional<bool> has_ids_of_here(const Facts& facts, const TraceHeader& trace) {
    const auto name_space = facts.find(kPidNamespaceFact);
    if (name_space == facts.end()) {
        return std::nullopt;
    }
    const auto boot = facts.find(kBootFact);
    const std::string host(trace.host, strnlen(trace.host, sizeof trace.host));
    const bool same_boot = boot == facts.end() ? host == this_host() : boot->second == this_boot();
    return same_boot && name_space->second == this_pid_namespace();
}

// The text of /proc/PID/stat; empty if it cannot be read. /proc may be that of another PID
// namespace.
std::string stat_of(std::uint32_t pid) {
    if (link_of_this_process("/proc/self") != std::to_string(getpid())) {
        return "";
    }
    std::ifstream stat(fmt::format("/proc/{}/stat", pid));
    return {std::istreambuf_iterator<char>(stat), {}};
}

// Whether a process with this pid and this start time exists here.
ProcessState state_here(std::uint32_t pid, std::uint64_t start_ticks) {
    if (pid == 0 || pid > INT_MAX) {
        return ProcessState::kGone;
    }
    const std::string text = stat_of(pid);
    const std::size_t name_end = text.rfind(')');  // the name may contain any character
    if (name_end == std::string::npos) {
        const bool exists = kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM;
        return exists ? ProcessState::kUnknown : ProcessState::kGone;
    }
    std::istringstream fields(text.substr(name_end + 1));
    std::string field;
    constexpr int kState = 3;
    constexpr int kStartTime = 22;
    for (int number = kState; number <= kStartTime && fields >> field; ++number) {
        if (number == kState && (field == "Z" || field == "X")) {
            return ProcessState::kGone;
        }
    }
    return field == std::to_string(start_ticks) ? ProcessState::kRuns : ProcessState::kGone;
}

// An exec keeps host, pid and start time. The trace of the later program is therefore in the same
// folder.
bool may_follow(const TraceHeader& later, const TraceHeader& trace) {
    return std::memcmp(later.magic, trace.magic, sizeof trace.magic) == 0 &&
           later.pid == trace.pid && later.process_start_ticks == trace.process_start_ticks &&
           std::memcmp(later.host, trace.host, sizeof trace.host) == 0 &&
           later.start_monotonic_ns > trace.start_monotonic_ns;
}

// Whether the facts of two traces name different PID namespaces or boots.
bool are_elsewhere(const Facts& one, const Facts& other) {
    const auto differ = [&](const char* key) {
        const auto of_one = one.find(key);
        const auto of_other = other.find(key);
        return of_one != one.end() && of_other != other.end() && of_one->second != of_other->second;
    };
    return differ(kPidNamespaceFact) || differ(kBootFact);
}

// The names of a folder's traces with `.PID.` in them. A folder is listed once for all traces, and
// again after it has changed. Thread-safe.
std::vector<std::string> traces_of_process(const std::filesystem::path& folder, std::uint32_t pid) {
    struct Listed {
        std::filesystem::path folder;
        std::filesystem::file_time_type changed;
        std::unordered_map<std::string, std::vector<std::string>> by_number;
    };

    static std::mutex mutex;
    static Listed listed;
    const std::lock_guard lock(mutex);
    std::error_code failed;
    const auto changed = std::filesystem::last_write_time(folder, failed);
    if (failed || listed.folder != folder || listed.changed != changed) {
        listed = {.folder = folder, .changed = changed, .by_number = {}};
        std::filesystem::directory_iterator entry(folder, failed);
        for (; !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
            const std::string name = entry->path().filename();
            if (!name.ends_with(".ftrace")) {
                continue;
            }
            for (std::size_t begin = name.find('.'); begin != std::string::npos;) {
                const std::size_t end = name.find('.', ++begin);
                const std::string part = name.substr(begin, end - begin);
                if (part.find_first_not_of("0123456789") == std::string::npos) {
                    listed.by_number[part].push_back(name);
                }
                begin = end;
            }
        }
    }
    const auto found = listed.by_number.find(std::to_string(pid));
    return found == listed.by_number.end() ? std::vector<std::string>() : found->second;
}

// Whether this process became another program by exec.
bool called_exec(const std::string& path, const TraceHeader& trace, const Facts& facts) {
    if (trace.pid == 0 || trace.process_start_ticks == 0) {
        return false;
    }
    // Processes of many hosts may have one number, but few on one host that have no end.
    constexpr std::size_t kMostTraces = 32;
    const std::filesystem::path parent = std::filesystem::path(path).parent_path();
    const std::filesystem::path folder = parent.empty() ? "." : parent;
    std::vector<std::string> names = traces_of_process(folder, trace.pid);
    const std::string host(trace.host, strnlen(trace.host, sizeof trace.host));
    std::stable_partition(names.begin(), names.end(), [&host](const std::string& name) {
        return name.find(host) != std::string::npos;
    });
    names.resize(std::min(names.size(), kMostTraces));
    for (const std::string& name : names) {
        const std::string other = folder / name;
        const Result<InputFile> file = InputFile::open(other);
        TraceHeader later = {};
        if (file.ok() && file->read_at(0, &later, sizeof later) == sizeof later &&
            may_follow(later, trace) && !are_elsewhere(facts, first_facts(other, *file, later))) {
            return true;
        }
    }
    return false;
}

}  // namespace

ProcessState process_state(const std::string& path,
                           const InputFile& file,
                           const TraceHeader& trace) {
    if (has_ids_of_here(first_facts(path, file, trace), trace) == false) {
        return ProcessState::kUnknown;
    }
    const ProcessState state = state_here(trace.pid, trace.process_start_ticks);
    if (state != ProcessState::kRuns) {
        return state;
    }
    const std::string ring(trace.ring_path, strnlen(trace.ring_path, sizeof trace.ring_path));
    const Result<InputFile> ring_file =
        ring.starts_with('/') ? look_at(ring) : Error{ErrorCode::kInput, "no absolute path"};
    std::ifstream maps(fmt::format("/proc/{}/maps", trace.pid));
    if (!ring_file.ok() || !maps) {
        return ProcessState::kRuns;
    }
    std::string line;
    bool any = false;
    while (std::getline(maps, line)) {
        std::istringstream fields(line);
        std::string skipped;
        std::uint64_t inode = 0;
        fields >> skipped >> skipped >> skipped >> skipped >> inode;
        any = true;
        if (inode == ring_file->inode()) {
            return ProcessState::kRuns;
        }
    }
    // If the map is not readable, assume that it runs.
    return any ? ProcessState::kGone : ProcessState::kRuns;
}

bool is_known_gone(const TraceHeader& trace,
                   ProcessState state,
                   const std::map<std::string, std::string>& facts) {
    const std::string host(trace.host, strnlen(trace.host, sizeof trace.host));
    return state == ProcessState::kGone &&
           has_ids_of_here(facts, trace).value_or(host == this_host());
}

Ending ending_without_mark(const std::string& path,
                           const TraceHeader& trace,
                           ProcessState state,
                           const std::map<std::string, std::string>& facts,
                           bool ring_lost) {
    if (state == ProcessState::kRuns) {
        return Ending::kRunning;
    }
    // A process that lives on without its ring became another program.
    const bool lives = state == ProcessState::kGone && is_known_gone(trace, state, facts) &&
                       state_here(trace.pid, trace.process_start_ticks) == ProcessState::kRuns;
    if (lives || facts.contains(kNextProgramFact) || called_exec(path, trace, facts)) {
        return Ending::kExec;
    }
    const bool has_ended = (is_known_gone(trace, state, facts) && !ring_lost) ||
                           facts.contains(kSignalFact) || was_absorbed(facts);
    return has_ended ? Ending::kKilled : Ending::kNotRecorded;
}

std::string this_host() {
    std::array<char, sizeof TraceHeader::host> name = {};
    return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string this_pid_namespace() {
    // "pid:[4026531836]"
    const std::string link = link_of_this_process("/proc/self/ns/pid");
    const std::size_t begin = link.find('[');
    return begin == std::string::npos ? "" : link.substr(begin + 1, link.find(']') - begin - 1);
}

std::string this_boot() {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string id;
    std::getline(file, id);
    return id;
}

}  // namespace fragtrace::analyzer
