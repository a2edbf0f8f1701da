#include "launcher/clean.h"

#include <fragtrace/format.h>
#include <fragtrace/printable.h>

#include "launcher/command_line.h"
#include "launcher/refusal.h"
#include "launcher/traces.h"
#include "vgpu/common/shared_file.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <vector>

namespace fragtrace::launcher {
namespace {

constexpr const char* kCleanText =
    R"(Lists and removes what recorded processes that are gone have left: rings, which hold a killed
process's last events, temporary files of parts, and shared memory of virtual GPUs. Looks into each
FOLDER; without one into /dev/shm, $TMPDIR, /tmp, $FRAGTRACE_RING_DIRECTORY and the current folder.
Nothing of another user and nothing of a process that runs is touched, nor a ring of another container
that was in use within a day; what is younger than --age is
listed and stays: the next report of its trace takes a ring's events over.

Examples
  fragtrace clean --dry-run            what is there
  fragtrace clean                      remove what is older than a day
  fragtrace clean --age 0 traces/      remove all that is in a folder of traces
)";

struct Leftover {
    std::string name;
    std::uint64_t bytes = 0;  // size on disk
    double age_s = 0;         // time since the last write
};

bool read_number(std::string_view text, long* number) {
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), *number);
    return failed == std::errc() && end == text.data() + text.size();
}

// Returns the process id in "fragtrace-UID-PID-SESSION.ring" or in
// "PROGRAM.HOST[.rankR].PID[.N].partK.ftrace.tmp"; 0 for other names. HOST is no number, so of two
// numbers the first one is the process id.
long process_in(std::string_view name) {
    const auto cut_end = [&name](std::string_view end) {
        const bool there = name.ends_with(end);
        name.remove_suffix(there ? end.size() : 0);
        return there;
    };
    long number = 0;
    if (name.starts_with("fragtrace-") && cut_end(".ring")) {
        const std::size_t session = name.rfind('-');
        const std::size_t process = name.rfind('-', session - 1);
        return read_number(name.substr(process + 1, session - process - 1), &number) ? number : 0;
    }
    if (!cut_end(".ftrace.tmp")) {
        return 0;
    }
    long process = 0;
    while (name.find('.') != std::string_view::npos) {
        const std::size_t dot = name.rfind('.');
        if (read_number(name.substr(dot + 1), &number)) {
            process = number;
        } else if (process != 0) {
            return process;
        }
        name = name.substr(0, dot);
    }
    return process;
}

// Reads the value of a fact of a ring; empty = it has none.
std::string fact_of(int ring, const RingHeader& header, const std::string& key) {
    constexpr std::uint64_t kFirstFacts_bytes = 64 << 10;
    std::string facts(std::min<std::uint64_t>(header.facts_bytes, kFirstFacts_bytes), '\0');
    const ssize_t size =
        pread(ring, facts.data(), facts.size(), static_cast<off_t>(header.facts_offset));
    facts.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    const std::string begin = '\n' + key + '\t';
    const std::size_t at = facts.find(begin);
    return at == std::string::npos
               ? ""
               : facts.substr(at + begin.size(), facts.find('\n', at + 1) - at - begin.size());
}

// Whether the process of another PID namespace may run: its drain was there within a day.
bool may_run_in_container(int ring, const RingHeader& header) {
    constexpr std::uint64_t kDay_ns = 86'400'000'000'000;
    char own[64] = {};
    const ssize_t size = readlink("/proc/self/ns/pid", own, sizeof own - 1);
    std::ifstream boot_file("/proc/sys/kernel/random/boot_id");
    std::string boot;
    std::getline(boot_file, boot);
    const std::string name_space = fact_of(ring, header, "host.pid_namespace");
    const std::string started = fact_of(ring, header, "host.boot_id");
    if (name_space.empty() || size <= 0 || "pid:[" + name_space + "]" == own) {
        return false;
    }
    if (!boot.empty() && !started.empty() && boot != started) {
        return false;  // it ended with its boot: rings lie on file systems of one machine
    }
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const std::uint64_t now_ns = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
                                 static_cast<std::uint64_t>(now.tv_nsec);
    return header.alive_ns + kDay_ns > now_ns;
}

// Whether the process of a ring or of a temporary file may run where kill() does not reach it: in
// another container, or on another host that shares this folder.
bool may_run_elsewhere(int folder, const char* name) {
    const int file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) {
        return false;
    }
    RingHeader ring = {};
    TraceHeader trace = {};
    utsname host = {};
    bool may_run = false;
    if (pread(file, &ring, sizeof ring, 0) == static_cast<ssize_t>(sizeof ring) &&
        memcmp(ring.magic, kRingMagic, sizeof ring.magic) == 0) {
        may_run = may_run_in_container(file, ring);
    } else if (pread(file, &trace, sizeof trace, 0) == static_cast<ssize_t>(sizeof trace) &&
               memcmp(trace.magic, kTraceMagic, sizeof trace.magic) == 0 && uname(&host) == 0) {
        may_run = strncmp(trace.host, host.nodename, sizeof trace.host - 1) != 0;
    }
    close(file);
    return may_run;
}

bool runs(long process) {
    return process > 0 && (kill(static_cast<pid_t>(process), 0) == 0 || errno == EPERM);
}

// All calls use the open folder. So even if somebody replaces a file between check and removal,
// only a file in this folder with a leftover's name can be removed.
class Folder {
  public:
    explicit Folder(const std::string& path) : path_(path), folder_(opendir(path.c_str())) {}

    ~Folder() {
        if (folder_ != nullptr) {
            closedir(folder_);
        }
    }

    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    [[nodiscard]] std::vector<Leftover> leftovers() const {
        std::vector<Leftover> found;
        timespec now = {};
        clock_gettime(CLOCK_REALTIME, &now);
        while (const dirent* entry = folder_ == nullptr ? nullptr : readdir(folder_)) {
            const long process = process_in(entry->d_name);
            struct stat file = {};
            const bool left_over =
                process != 0 ? !runs(process) && !may_run_elsewhere(dirfd(folder_), entry->d_name)
                             : vgpu::is_left_over(dirfd(folder_), entry->d_name, false);
            if (left_over && look_at(entry->d_name, &file)) {
                found.push_back({entry->d_name,
                                 static_cast<std::uint64_t>(file.st_blocks) * 512,
                                 difftime(now.tv_sec, file.st_mtim.tv_sec)});
            }
        }
        std::sort(found.begin(), found.end(), [](const Leftover& left, const Leftover& right) {
            return left.name < right.name;
        });
        return found;
    }

    // Returns false with errno. If somebody else removed it meanwhile, that is a success too.
    [[nodiscard]] bool remove(const Leftover& leftover) const {
        struct stat file = {};
        const char* name = leftover.name.c_str();
        if (!look_at(name, &file)) {
            return true;
        }
        if (vgpu::is_shared_file(name)) {  // a process may have opened it meanwhile
            errno = EBUSY;
            return vgpu::is_left_over(dirfd(folder_), name, true);
        }
        return unlinkat(dirfd(folder_), name, 0) == 0 || errno == ENOENT;
    }

    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    bool look_at(const char* name, struct stat* file) const {
        return fstatat(dirfd(folder_), name, file, AT_SYMLINK_NOFOLLOW) == 0 &&
               S_ISREG(file->st_mode) && file->st_uid == geteuid();
    }

    std::string path_;
    DIR* folder_;
};

std::string age_text(double seconds) {
    return seconds < 120      ? fmt::format("{:.0f} s", seconds)
           : seconds < 7200   ? fmt::format("{:.0f} min", seconds / 60)
           : seconds < 172800 ? fmt::format("{:.0f} h", seconds / 3600)
                              : fmt::format("{:.0f} days", seconds / 86400);
}

// Reads a number with s, min, h or d. Returns -1 for anything else.
double read_age(const std::string& text) {
    char* end = nullptr;
    const double number = strtod(text.c_str(), &end);
    const std::string unit = end;
    const double seconds = unit.empty() || unit == "s"    ? 1
                           : unit == "min" || unit == "m" ? 60
                           : unit == "h"                  ? 3600
                           : unit == "d"                  ? 86400
                                                          : -1;
    return end == text.c_str() || !(number >= 0) || seconds < 0 ? -1 : number * seconds;
}

}  // namespace

int clean(int argc, char** argv) {
    CLI::App app(kCleanText, "fragtrace clean");
    std::string age = "1d";
    bool dry_run = false;
    std::vector<std::string> paths;
    app.add_option("--age", age, "leave what was written since: a number with s, min, h or d")
        ->capture_default_str();
    app.add_flag("--dry-run", dry_run, "list it and remove nothing");
    app.add_option("FOLDER", paths, "where to look");
    if (!read_options(&app, argc, argv)) {
        print_help(app);
        return 0;
    }
    const double least_age_s = read_age(age);
    if (least_age_s < 0) {
        throw Refusal{
            kBadUsage,
            "--age cannot be '" + printable(age) + "': give a number with s, min, h or d"};
    }
    for (const std::string& path : paths) {
        if (access(path.c_str(), R_OK | X_OK) != 0) {
            throw Refusal{kBadUsage, printable(path) + ": " + strerror(errno)};
        }
    }
    if (paths.empty()) {
        paths = {"/dev/shm", "/tmp", "."};
        for (const char* variable : {"TMPDIR", "FRAGTRACE_RING_DIRECTORY"}) {
            if (const char* value = getenv(variable); value != nullptr && *value != '\0') {
                paths.emplace_back(value);
            }
        }
    }
    std::set<std::pair<dev_t, ino_t>> seen;
    std::uint64_t gone_bytes = 0;
    std::uint64_t left_bytes = 0;
    std::size_t gone = 0;
    std::size_t left = 0;
    int exit_code = 0;
    for (const std::string& path : paths) {
        struct stat status = {};
        if (stat(path.c_str(), &status) != 0 ||
            !seen.emplace(status.st_dev, status.st_ino).second) {
            continue;
        }
        const Folder folder(path);
        for (const Leftover& leftover : folder.leftovers()) {
            const bool goes = leftover.age_s >= least_age_s;
            const char* what = !goes ? "stays" : dry_run ? "would go" : "removed";
            if (goes && !dry_run && !folder.remove(leftover)) {
                what = strerror(errno);
                exit_code = 1;
            }
            fmt::print("{}  {:.1f} MiB, {} old: {}\n",
                       printable(folder.path() + "/" + leftover.name),
                       static_cast<double>(leftover.bytes) / (1 << 20),
                       age_text(leftover.age_s),
                       what);
            (goes ? gone : left) += 1;
            (goes ? gone_bytes : left_bytes) += leftover.bytes;
        }
    }
    fmt::print("{} {}, {:.1f} MiB; {} younger, {:.1f} MiB, {}\n",
               gone,
               dry_run ? "would go" : "removed",
               static_cast<double>(gone_bytes) / (1 << 20),
               left,
               static_cast<double>(left_bytes) / (1 << 20),
               left == 1 ? "stays" : "stay");
    print_output("");  // all of the list
    return exit_code;
}

}  // namespace fragtrace::launcher
