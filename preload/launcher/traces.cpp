#include "launcher/traces.h"

#include "launcher/refusal.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

namespace fragtrace::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".ftrace";

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

std::string prepare_folder(const std::string& name) {
    std::error_code failed;
    fs::path folder = name;
    fs::create_directories(folder, failed);
    if (!fs::is_directory(folder, failed)) {
        refuse_usage("cannot make the folder " + one_line(name));
    }
    if (name.find("..") != std::string::npos) {
        folder = fs::canonical(folder, failed);
    }
    folder = (fs::absolute(folder, failed) / "").lexically_normal().parent_path();
    if (access(folder.c_str(), W_OK | X_OK) != 0) {
        refuse_usage("cannot write into the folder " + one_line(folder.native()));
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

TraceOwner owner_of(std::string_view file_name, pid_t process, unsigned long* part) {
    *part = 0;
    if (!file_name.ends_with(kEnding)) {
        return TraceOwner::kOther;
    }
    file_name.remove_suffix(kEnding.size());
    const std::string mark = '.' + std::to_string(process);
    if (file_name.ends_with(mark)) {
        return TraceOwner::kProcess;
    }
    const std::size_t dot = file_name.rfind('.');
    if (dot == std::string_view::npos || !file_name.substr(0, dot).ends_with(mark)) {
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

std::vector<std::string> find_traces(const std::string& folder,
                                     const timespec& since,
                                     pid_t process) {
    std::vector<FoundTrace> found;
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
        trace.owner = owner_of(name, process, &trace.part);
        // Clocks of file systems may be coarse. A trace of another process with exactly this time
        // is older than the run, because processes take longer to start.
        const bool old = is_before(status.st_mtim, since);
        const bool same_time = !old && !is_before(since, status.st_mtim);
        if (!old && (trace.owner != TraceOwner::kOther || !same_time)) {
            found.push_back(trace);
        }
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

std::string shell_word(std::string_view word) {
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) {
        return std::string(word);
    }
    constexpr char kDigits[] = "01234567";
    const bool controls = std::any_of(word.begin(), word.end(), [](char c) {
        return static_cast<unsigned char>(c) < ' ' || c == '\x7f';
    });
    std::string text = controls ? "$'" : "'";
    for (const char c : word) {
        const auto byte = static_cast<unsigned char>(c);
        if (controls && (byte < ' ' || byte == 0x7f)) {
            text += {'\\', kDigits[byte >> 6], kDigits[byte >> 3 & 7], kDigits[byte & 7]};
        } else if (c == '\'') {
            text += controls ? "\\'" : "'\\''";
        } else if (controls && c == '\\') {
            text += "\\\\";
        } else {
            text += c;
        }
    }
    return text + '\'';
}

std::string shell_path(std::string_view path, std::string_view folder) {
    if (path.size() > folder.size() + 1 && path.starts_with(folder) && path[folder.size()] == '/') {
        path.remove_prefix(folder.size() + 1);
    }
    return path.starts_with('-') ? shell_word("./" + std::string(path)) : shell_word(path);
}

}  // namespace fragtrace::launcher
