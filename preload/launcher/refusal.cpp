#include "launcher/refusal.h"

#include <fragtrace/printable.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <unistd.h>

namespace fragtrace::launcher {

void refuse_usage(std::string_view text) {
    throw Refusal{kBadUsage, std::string(text) + " (fragtrace --help)"};
}

bool write_error(std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
        if (written >= 0) {
            text.remove_prefix(static_cast<std::size_t>(written));
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

void say(std::string_view text) {
    write_error("fragtrace: " + printable(text) + "\n");
}

void print_output(std::string_view text) {
    const bool written = fwrite(text.data(), 1, text.size(), stdout) == text.size();
    if (!written || fflush(stdout) != 0) {
        const std::string why = strerror(errno);
        clearerr(stdout);
        throw Refusal{kBadUsage, "standard output: cannot be written: " + why};
    }
}

}  // namespace fragtrace::launcher
