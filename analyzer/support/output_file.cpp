#include "analyzer/support/output_file.h"

#include "analyzer/support/input_file.h"
#include "analyzer/support/terminal.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

namespace fragtrace::analyzer {
namespace {

bool g_replaces_any = false;
// The temporary file's name, for signal handlers. It is complete before the flag is set.
char g_unfinished[PATH_MAX + 64];
std::atomic<bool> g_is_unfinished = false;
// The files in an unfinished folder. The folder's name is in g_unfinished.
std::atomic<const std::vector<std::string>*> g_unfinished_files = nullptr;

Error failed(const std::string& path, const char* what) {
    return {ErrorCode::kOutput, fmt::format("{}: cannot {}: {}", path, what, std::strerror(errno))};
}

Error refused(const std::string& path, std::string_view why) {
    return {ErrorCode::kOutput, fmt::format("{}: {}", path, why)};
}

Error is_a_folder(const std::string& path) {
    return refused(path, "cannot be written: it is a folder. Name a file in it.");
}

Status write_standard_output(std::string_view content) {
    // In a JSON text the escapes mean the same characters.
    const std::string shown = isatty(STDOUT_FILENO) != 0 ? shown_text(content) : std::string();
    if (!shown.empty()) {
        content = shown;
    }
    if (std::fwrite(content.data(), 1, content.size(), stdout) != content.size()) {
        return failed("standard output", "write");
    }
    return flush_standard_output();
}

// Whether a JSON text has the number of one of our schemas.
bool has_schema(std::string_view json) {
    constexpr std::string_view kKey = "\"schema\":";
    for (std::size_t at = json.find(kKey); at != std::string_view::npos; at = json.find(kKey, at)) {
        at = json.find_first_not_of(' ', at + kKey.size());
        if (at != std::string_view::npos && json[at] >= '0' && json[at] <= '9') {
            return true;
        }
    }
    return false;
}

// Whether an earlier fraganalyze wrote this file, or the file is empty.
bool is_ours(const std::string& path) {
    constexpr std::size_t kPart = 64 << 10;
    const Result<InputFile> file = InputFile::open(path);
    if (!file.ok()) {
        return false;
    }
    const auto part = [&file](std::uint64_t offset) {
        std::string text(kPart, '\0');
        text.resize(file->read_at(offset, text.data(), text.size()));
        return text;
    };
    const std::string first = part(0);
    const std::string last = part(file->size() - std::min<std::uint64_t>(file->size(), kPart));
    const auto has = [](const std::string& text, std::string_view word) {
        return text.find(word) != std::string::npos;
    };
    const std::string line = first.substr(0, first.find('\n'));
    return first.empty() || (first[0] == '{' && (has_schema(first) || has_schema(last))) ||
           has(first, " - fragtrace</title>") || line == "id,lower,upper,size,offset" ||
           (first.starts_with("FTRACE\r\n") && has(first, "trace.anonymized"));
}

// In a folder where others can write, only this user's own links are followed. Another user's link
// could redirect the output.
bool may_follow(const std::string& path, const struct stat& link) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    struct stat shared = {};
    if (stat(folder.empty() ? "." : folder.c_str(), &shared) != 0) {
        return false;
    }
    const bool open_to_all = (shared.st_mode & (S_IWGRP | S_IWOTH)) != 0;
    return !open_to_all || link.st_uid == geteuid();
}

// An output that is open. `name` is empty if it is not a regular file.
struct OpenOutput {
    int descriptor;
    std::string name;
};

// Writes the content. Errors of the file itself: kOutput, from errno.
using Fill = std::function<Status(const OpenOutput&)>;

Status write_special(const std::string& path, const Fill& fill) {
    // A rename cannot replace a device or a pipe, so this writes to it directly.
    const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_TRUNC);
    if (file < 0) {
        return failed(path, "open");
    }
    const Status filled = fill({file, ""});
    if (close(file) != 0 && filled) {
        return failed(path, "write");
    }
    return filled;
}

// Creates a file that does not exist yet, also not as a symbolic link.
int create_file(const std::string& path) {
    return open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
}

// Calls `create` (a file or a folder) with the temporary name of `path`. A process with this id may
// have been killed before it removed its file, or runs on another host that sees this folder: then
// the name gets a number.
int create_temporary(const std::string& path,
                     std::string* temporary,
                     const std::function<int(const std::string&)>& create) {
    constexpr int kMostNumber = 99;
    int created = -1;
    for (int number = 0; number <= kMostNumber; ++number) {
        *temporary = number == 0 ? fmt::format("{}.{}.tmp", path, getpid())
                                 : fmt::format("{}.{}.{}.tmp", path, getpid(), number);
        created = create(*temporary);
        if (created >= 0 || errno != EEXIST) {
            break;
        }
    }
    if (created >= 0 && temporary->size() < sizeof g_unfinished) {
        temporary->copy(g_unfinished, temporary->size());
        g_unfinished[temporary->size()] = '\0';
    }
    return created;
}

// Gives a new file or folder the mode of the one that it replaces, and its owner if this user may.
// Errors are in errno.
bool keep_mode(int descriptor, const struct stat& before) {
    // Only root may change the owner. The mode is set afterwards, because fchown() clears some of
    // its bits.
    [[maybe_unused]] const int given = fchown(descriptor, before.st_uid, before.st_gid);
    return fchmod(descriptor, before.st_mode & 07777) == 0;
}

// Closes a file, after its content has reached the disk. Errors are in errno.
bool finish_file(int file, bool written) {
    const bool kept = written && fsync(file) == 0;
    const int code = errno;
    const bool closed = close(file) == 0;
    errno = kept ? errno : code;
    return kept && closed;
}

// Writes a temporary file in the same folder and renames it. `before` is the file that is replaced.
Status write_regular(const std::string& path,
                     const std::optional<struct stat>& before,
                     const Fill& fill) {
    std::string temporary;
    const int file = create_temporary(path, &temporary, create_file);
    if (file < 0) {
        return failed(path, "create");
    }
    g_is_unfinished = temporary.size() < sizeof g_unfinished;
    const auto give_up = [&](const char* what) -> Status {
        Error error = failed(path, what);
        g_is_unfinished = false;
        unlink(temporary.c_str());
        return error;
    };
    if (before && !keep_mode(file, *before)) {
        const Status failure = give_up("set the mode of");
        close(file);
        return failure;
    }
    const Status filled = fill({file, temporary});
    if (!finish_file(file, filled.ok())) {
        const Status failure = give_up("write");
        return filled ? failure : filled;
    }
    if (std::rename(temporary.c_str(), path.c_str()) != 0) {
        return give_up("replace");
    }
    g_is_unfinished = false;
    return Ok{};
}

}  // namespace

bool write_all(int descriptor, std::string_view content) {
    while (!content.empty()) {
        const ssize_t count = write(descriptor, content.data(), content.size());
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return false;
        }
        content.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
}

void replace_any_file() {
    g_replaces_any = true;
}

void remove_unfinished_output() {
    if (const std::vector<std::string>* files = g_unfinished_files) {
        for (const std::string& file : *files) {
            unlink(file.c_str());
        }
        rmdir(g_unfinished);
    } else if (g_is_unfinished) {
        unlink(g_unfinished);
    }
}

Status flush_standard_output() {
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
        return Error{ErrorCode::kOutput,
                     fmt::format("standard output: cannot be written: {}. Part of the result is "
                                 "missing.",
                                 std::strerror(errno))};
    }
    return Ok{};
}

Status write_text(std::string_view text) {
    const auto columns = Terminal(STDOUT_FILENO, ColorChoice::kNever).columns();
    const std::string shown = shown_text(text);
    return write_standard_output(columns ? wrapped(shown, *columns) : shown);
}

namespace {

// Finds out what `path` is, and writes to it.
Status write_to(const std::string& path, const Fill& fill) {
    struct stat link = {};
    struct stat existing = {};
    if (lstat(path.c_str(), &link) != 0) {
        return write_regular(path, std::nullopt, fill);
    }
    std::string target = path;
    if (S_ISLNK(link.st_mode)) {
        if (!may_follow(path, link)) {
            return refused(path,
                           "is another user's symbolic link in a shared folder, and is not "
                           "followed. Name another file.");
        }
        std::error_code error;
        target = std::filesystem::weakly_canonical(path, error).string();
        if (error) {
            return refused(path, "is a symbolic link that leads nowhere. Name another file.");
        }
        if (stat(target.c_str(), &existing) != 0) {
            return write_regular(target, std::nullopt, fill);
        }
    } else {
        existing = link;
    }
    if (S_ISDIR(existing.st_mode)) {
        return is_a_folder(path);
    }
    if (!S_ISREG(existing.st_mode)) {
        return write_special(target, fill);
    }
    if (was_read(existing.st_dev, existing.st_ino)) {
        return refused(path, "is a file that this command reads. Name another file.");
    }
    if (!g_replaces_any && !is_ours(target)) {
        return refused(path,
                       "exists, and fraganalyze did not write it. Name another file, or add "
                       "--force to replace it.");
    }
    return write_regular(target, existing, fill);
}

// Calls `write` with a stream of its own, and closes it.
Status write_stream(const std::string& path,
                    int descriptor,
                    const std::function<Status(std::FILE*)>& write) {
    const int own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    std::FILE* stream = own < 0 ? nullptr : fdopen(own, "w");
    if (stream == nullptr) {
        const Error failure = failed(path, "open");
        if (own >= 0) {
            close(own);
        }
        return failure;
    }
    Status written = write(stream);
    const bool failed_before = std::ferror(stream) != 0;
    if (std::fclose(stream) != 0 || failed_before) {
        return written ? Status(failed(path, "write")) : written;
    }
    return written;
}

}  // namespace

Status check_output(const std::string& path) {
    struct stat existing = {};
    if (path == "-") {
        return Ok{};
    }
    if (stat(path.c_str(), &existing) == 0) {
        return S_ISDIR(existing.st_mode) ? Status(is_a_folder(path)) : Ok{};
    }
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    return access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) == 0 ? Status(Ok{})
                                                                           : failed(path, "create");
}

Status write_output(const std::string& path, std::string_view content) {
    if (path == "-") {
        return write_standard_output(content);
    }
    return write_to(path, [&](const OpenOutput& output) -> Status {
        return write_all(output.descriptor, content) ? Status(Ok{}) : failed(path, "write");
    });
}

Status write_output(const std::string& path, const std::function<Status(std::FILE*)>& write) {
    if (path == "-") {
        if (const Status flushed = flush_standard_output(); !flushed) {
            return flushed;
        }
        return write_stream("standard output", STDOUT_FILENO, write);
    }
    return write_to(path, [&](const OpenOutput& output) {
        return write_stream(path, output.descriptor, write);
    });
}

Status write_output_by_name(const std::string& path,
                            const std::function<Status(const std::string& name)>& write) {
    if (path == "-") {
        return refused("standard output", "cannot take this format, which needs a file");
    }
    return write_to(path, [&](const OpenOutput& output) -> Status {
        return output.name.empty() ? Status(refused(path, "must be a regular file"))
                                   : write(output.name);
    });
}

namespace {

// Whether the folder has only regular files with these names. Errors are in errno: it cannot be
// read.
bool has_only(const std::string& folder, const std::vector<NamedOutput>& files) {
    std::error_code error;
    const std::filesystem::directory_iterator entries(folder, error);
    return !error && std::all_of(begin(entries), end(entries), [&](const auto& entry) {
        return entry.symlink_status().type() == std::filesystem::file_type::regular &&
               std::any_of(files.begin(), files.end(), [&](const NamedOutput& file) {
                   return entry.path().filename() == file.name;
               });
    });
}

// While it lives, a signal or a failure removes the folder and its files.
class UnfinishedFolder {
  public:
    UnfinishedFolder(const std::string& folder, const std::vector<NamedOutput>& files)
        : folder_(folder) {
        for (const NamedOutput& file : files) {
            paths_.push_back(folder + "/" + file.name);
        }
        if (folder.size() < sizeof g_unfinished) {
            g_unfinished_files = &paths_;
        }
    }

    ~UnfinishedFolder() {
        g_unfinished_files = nullptr;
        for (const std::string& path : paths_) {
            unlink(path.c_str());
        }
        rmdir(folder_.c_str());
    }

    UnfinishedFolder(const UnfinishedFolder&) = delete;
    UnfinishedFolder& operator=(const UnfinishedFolder&) = delete;

    [[nodiscard]] const std::vector<std::string>& paths() const { return paths_; }

  private:
    std::string folder_;
    std::vector<std::string> paths_;
};

// Writes a file that does not exist yet. `former` is the file that it replaces, if there is one.
bool write_new_file(const std::string& path, std::string_view content, const std::string& former) {
    struct stat before = {};
    const bool replaces = lstat(former.c_str(), &before) == 0 && S_ISREG(before.st_mode);
    const int file = create_file(path);
    return file >= 0 &&
           finish_file(file, (!replaces || keep_mode(file, before)) && write_all(file, content));
}

bool keep_mode_of_folder(const std::string& folder, const struct stat& before) {
    const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor < 0) {
        return false;
    }
    const bool kept = keep_mode(descriptor, before);
    close(descriptor);
    return kept;
}

}  // namespace

Status write_output_folder(const std::string& path, const std::vector<NamedOutput>& files) {
    if (path == "-") {
        return Error{ErrorCode::kUsage,
                     "several files cannot go to standard output. Name a folder."};
    }
    const std::string target = path.substr(0, path.find_last_not_of('/') + 1);
    struct stat existing = {};
    const bool exists = lstat(target.c_str(), &existing) == 0;
    if (exists && !S_ISDIR(existing.st_mode)) {
        return refused(path, "exists and is not a folder. Name another folder.");
    }
    if (exists && !has_only(target, files)) {
        return refused(path,
                       "is a folder with files that fraganalyze did not write. Name another "
                       "folder.");
    }
    // The files may be private: a folder that keeps a mode is closed to others until it has it.
    const mode_t mode = exists ? 0700 : 0777;
    std::string temporary;
    if (create_temporary(target, &temporary, [mode](const std::string& name) {
            return mkdir(name.c_str(), mode);
        }) != 0) {
        return failed(path, "create");
    }
    const UnfinishedFolder unfinished(temporary, files);
    for (std::size_t i = 0; i < files.size(); ++i) {
        const std::string former = target + "/" + files[i].name;
        if (!write_new_file(unfinished.paths()[i], files[i].content, former)) {
            return failed(unfinished.paths()[i], "write");
        }
    }
    if (exists && !keep_mode_of_folder(temporary, existing)) {
        return failed(path, "set the mode of");
    }
    // After an exchange, the temporary folder has the former files.
    if (exists &&
        renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) {
        return Ok{};
    }
    // Some file systems cannot exchange. A rename replaces only an empty folder.
    if (exists) {
        for (const NamedOutput& file : files) {
            unlink((target + "/" + file.name).c_str());
        }
    }
    if (std::rename(temporary.c_str(), target.c_str()) != 0) {
        return failed(path, "replace");
    }
    return Ok{};
}

}  // namespace fragtrace::analyzer
