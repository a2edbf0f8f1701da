#include "launcher/traces.h"

#include <fragtrace/printable.h>

#include "launcher/refusal.h"
#include "recorder/output_pattern.h"
#include "recorder/safe_names.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <tuple>
#include <unistd.h>

namespace fragtrace::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".ftrace";
constexpr std::size_t kMostFolders = 100'000;

struct FoundTrace {
    TraceOwner owner;
    unsigned long part;
    off_t size_bytes;
    std::string path;
};

bool is_before(const timespec& left, const timespec& right) {
    return std::tie(left.tv_sec, left.tv_nsec) < std::tie(right.tv_sec, right.tv_nsec);
}

bool read_number(std::string_view text, unsigned long* number) {
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), *number);
    return failed == std::errc() && end == text.data() + text.size() && !text.empty();
}

// The name of this host, as names of traces have it.
std::string host_in_names() {
    utsname host = {};
    char name[128];
    preload::Text text(name, sizeof name);
    preload::add_host(&text, uname(&host) == 0 ? host.nodename : "");
    return name;
}

// Returns whether a text is PROGRAM.HOST or PROGRAM.HOST.rankN.
bool ends_with_host(std::string_view text, std::string_view host) {
    const std::size_t dot = text.rfind('.');
    unsigned long rank = 0;
    if (dot != std::string_view::npos && text.substr(dot).starts_with(".rank") &&
        read_number(text.substr(dot + 5), &rank)) {
        text.remove_suffix(text.size() - dot);
    }
    return text.size() > host.size() && text.ends_with(host) &&
           text[text.size() - host.size() - 1] == '.';
}

struct PathPart {
    std::string plain;  // without patterns
    std::string glob;   // for fnmatch()
    bool has_pattern = false;
};

// Reads a pattern as the parts of a path. The setting was checked before.
std::vector<PathPart> parts_of(const std::string& pattern) {
    std::vector<PathPart> parts(1);
    const char* at = pattern.c_str();
    for (preload::PatternPiece piece{}; preload::next_piece(&at, &piece);) {
        if (piece.kind != 0) {
            parts.back().has_pattern = true;
            parts.back().glob += '*';
            continue;
        }
        for (const char c : std::string_view(piece.text, piece.size)) {
            if (c == '/') {
                parts.emplace_back();
            } else {
                parts.back().plain += c;
                parts.back().glob += std::string_view("*?[\\").find(c) == std::string_view::npos
                                         ? std::string(1, c)
                                         : std::string{'\\', c};
            }
        }
    }
    return parts;
}

// Returns the folders that the processes of a run may have used.
std::vector<std::string> folders_of(const Output& output) {
    std::vector<std::string> folders = {output.folder};
    if (output.pattern.empty()) {
        return folders;
    }
    for (const PathPart& part : parts_of(output.pattern)) {
        std::vector<std::string> below;
        for (const std::string& folder : folders) {
            if (!part.has_pattern) {
                below.push_back(folder + '/' + part.plain);
                continue;
            }
            std::error_code failed;
            for (fs::directory_iterator entry(folder, failed), end;
                 !failed && entry != end && below.size() < kMostFolders;
                 entry.increment(failed)) {
                std::error_code unreadable;
                if (fnmatch(part.glob.c_str(), entry->path().filename().c_str(), FNM_PERIOD) == 0 &&
                    entry->is_directory(unreadable)) {
                    below.push_back(entry->path());
                }
            }
        }
        folders = std::move(below);
    }
    return folders;
}

// Opens a file without a name, or one whose name is removed at once. Returns -1 if that fails.
int open_temporary(const std::string& folder) {
    const int file = open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (file >= 0) {
        return file;
    }
    std::string name = folder + "/.fragtrace-XXXXXX";
    const int named = mkostemp(name.data(), O_CLOEXEC);
    if (named >= 0) {
        unlink(name.c_str());
    }
    return named;
}

}  // namespace

std::string Output::setting() const {
    std::string text;
    for (const char c : folder) {
        text += c == '%' ? "%%" : std::string(1, c);
    }
    return pattern.empty() ? text : text + '/' + pattern;
}

std::string Output::name() const {
    return pattern.empty() ? folder : folder + '/' + pattern;
}

std::string Output::shell_glob() const {
    constexpr std::string_view kQuoted = " \t\n'\"$`&|;<>()!#~{}";
    std::string text;
    for (const PathPart& part : parts_of(pattern)) {
        text += '/';
        for (const char c : part.glob) {
            text += kQuoted.find(c) == std::string_view::npos ? std::string(1, c)
                                                              : std::string{'\\', c};
        }
    }
    return text + "/*.ftrace";
}

Output split_output(const std::string& pattern) {
    Output output;
    std::size_t at = 0;  // where the rest of the pattern begins
    for (const PathPart& part : parts_of(pattern)) {
        if (part.has_pattern) {
            output.pattern = pattern.substr(at);
            break;
        }
        output.folder += part.plain + '/';
        at = pattern.find('/', at) + 1;
    }
    output.folder = output.folder.empty() ? "." : output.folder;
    return output;
}

Output prepare_output(const std::string& pattern) {
    if (!preload::is_pattern(pattern.c_str())) {
        refuse_usage("the folder cannot be " + printable(pattern) +
                     ": a percent sign begins %h, %p, %r, %q{VARIABLE} or %%");
    }
    Output output = split_output(pattern);
    output.folder = prepare_folder(output.folder);
    return output;
}

std::string prepare_folder(const std::string& name) {
    std::error_code failed;
    fs::path folder = name;
    fs::create_directories(folder, failed);
    if (!fs::is_directory(folder, failed)) {
        refuse_usage("cannot make the folder " + printable(name));
    }
    if (name.find("..") != std::string::npos) {
        folder = fs::canonical(folder, failed);
    }
    folder = (fs::absolute(folder, failed) / "").lexically_normal().parent_path();
    if (access(folder.c_str(), W_OK | X_OK) != 0) {
        refuse_usage("cannot write into the folder " + printable(folder.native()));
    }
    return folder;
}

timespec folder_time(const std::string& folder) {
    struct stat status = {};
    const int file = open_temporary(folder);
    if (file < 0 || fstat(file, &status) != 0) {
        clock_gettime(CLOCK_REALTIME_COARSE, &status.st_mtim);
    }
    if (file >= 0) {
        close(file);
    }
    return status.st_mtim;
}

TraceOwner owner_of(std::string_view file_name,
                    std::string_view host,
                    pid_t process,
                    unsigned long* part) {
    *part = 0;
    if (!file_name.ends_with(kEnding)) {
        return TraceOwner::kOther;
    }
    file_name.remove_suffix(kEnding.size());
    const std::string mark = '.' + std::to_string(process);
    const auto belongs = [&](std::string_view name) {
        return name.ends_with(mark) &&
               ends_with_host(name.substr(0, name.size() - mark.size()), host);
    };
    if (belongs(file_name)) {
        return TraceOwner::kProcess;
    }
    const std::size_t dot = file_name.rfind('.');
    if (dot == std::string_view::npos || !belongs(file_name.substr(0, dot))) {
        return TraceOwner::kOther;
    }
    std::string_view last = file_name.substr(dot + 1);
    const bool is_part = last.starts_with("part");
    last.remove_prefix(is_part ? 4 : 0);
    if (!read_number(last, part)) {
        return TraceOwner::kOther;
    }
    return is_part ? TraceOwner::kPartOfProcess : TraceOwner::kProcess;
}

namespace {

void find_in_folder(const std::string& folder,
                    const timespec& since,
                    pid_t process,
                    std::vector<FoundTrace>* found) {
    const std::string host = host_in_names();
    std::error_code failed;
    for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
         entry.increment(failed)) {
        const std::string path = entry->path();
        const std::string name = entry->path().filename();
        struct stat status = {};
        if (!name.ends_with(kEnding) || stat(path.c_str(), &status) != 0 ||
            !S_ISREG(status.st_mode)) {
            continue;
        }
        FoundTrace trace = {TraceOwner::kOther, 0, status.st_size, path};
        trace.owner = owner_of(name, host, process, &trace.part);
        // Clocks of file systems may be coarse. A trace of another process with exactly this time
        // is older than the run, because processes take longer to start.
        const bool old = is_before(status.st_mtim, since);
        const bool same_time = !old && !is_before(since, status.st_mtim);
        if (!old && (trace.owner != TraceOwner::kOther || !same_time)) {
            found->push_back(trace);
        }
    }
}

}  // namespace

std::vector<std::string> find_traces(const Output& output, const timespec& since, pid_t process) {
    std::vector<FoundTrace> found;
    for (const std::string& folder : folders_of(output)) {
        find_in_folder(folder, since, process, &found);
    }
    std::sort(found.begin(), found.end(), [](const FoundTrace& left, const FoundTrace& right) {
        if (left.owner != right.owner) {
            return left.owner < right.owner;
        }
        if (left.owner == TraceOwner::kPartOfProcess && left.part != right.part) {
            return left.part > right.part;
        }
        return std::tie(right.size_bytes, left.path) < std::tie(left.size_bytes, right.path);
    });
    std::vector<std::string> paths;
    paths.reserve(found.size());
    for (FoundTrace& trace : found) {
        paths.push_back(std::move(trace.path));
    }
    return paths;
}

std::string shell_path(std::string_view path, std::string_view folder) {
    if (path.size() > folder.size() + 1 && path.starts_with(folder) && path[folder.size()] == '/') {
        path.remove_prefix(folder.size() + 1);
    }
    return path.starts_with('-') ? shell_quoted("./" + std::string(path)) : shell_quoted(path);
}

}  // namespace fragtrace::launcher
