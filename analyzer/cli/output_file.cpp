#include "analyzer/cli/output_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fragtrace::analyzer {
namespace {

Error failed(const std::string& path, const char* what) {
    return {ErrorCode::kOutput, fmt::format("{}: cannot {}: {}", path, what, std::strerror(errno))};
}

Status write_standard_output(std::string_view content) {
    if (std::fwrite(content.data(), 1, content.size(), stdout) != content.size() ||
        std::fflush(stdout) != 0) {
        return failed("standard output", "write");
    }
    return Ok{};
}

}  // namespace

Status write_output(const std::string& path, std::string_view content) {
    if (path == "-") {
        return write_standard_output(content);
    }

    struct stat existing {};

    if (stat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode)) {
        // A device or a pipe cannot be replaced by a rename: written to directly.
        std::FILE* file = S_ISDIR(existing.st_mode) ? nullptr : std::fopen(path.c_str(), "we");
        if (file == nullptr) {
            errno = S_ISDIR(existing.st_mode) ? EISDIR : errno;
            return failed(path, "open");
        }
        const bool written = std::fwrite(content.data(), 1, content.size(), file) == content.size();
        if (std::fclose(file) != 0 || !written) {
            return failed(path, "write");
        }
        return Ok{};
    }
    const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
    std::FILE* file = std::fopen(temporary.c_str(), "wxe");
    if (file == nullptr) {
        return failed(path, "create");
    }
    const bool written = std::fwrite(content.data(), 1, content.size(), file) == content.size();
    if (std::fclose(file) != 0 || !written) {
        const Error error = failed(path, "write");
        unlink(temporary.c_str());
        return error;
    }
    if (std::rename(temporary.c_str(), path.c_str()) != 0) {
        const Error error = failed(path, "replace");
        unlink(temporary.c_str());
        return error;
    }
    return Ok{};
}

}  // namespace fragtrace::analyzer
