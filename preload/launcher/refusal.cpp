#include "launcher/refusal.h"

#include <cerrno>
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
    write_error("fragtrace: " + one_line(text) + "\n");
}

std::string one_line(std::string_view text) {
    std::string line(text);
    for (char& c : line) {
        if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') {
            c = '?';
        }
    }
    return line;
}

}  // namespace fragtrace::launcher
