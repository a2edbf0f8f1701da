#include "launcher/refusal.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
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

void print_output(std::string_view text) {
    const bool written = fwrite(text.data(), 1, text.size(), stdout) == text.size();
    if (!written || fflush(stdout) != 0) {
        const std::string why = strerror(errno);
        clearerr(stdout);
        throw Refusal{kBadUsage, "standard output: cannot be written: " + why};
    }
}

std::string one_line(std::string_view text) {
    // In UTF-8: the first bytes, and the range of the last one.
    struct Range {
        std::string_view begin;
        unsigned char first;
        unsigned char last;
    };

    constexpr Range kControls[] = {{"", 0x00, 0x1f},
                                   {"", 0x7f, 0x7f},
                                   {"\xc2", 0x80, 0x9f},
                                   {"\xd8", 0x9c, 0x9c},
                                   {"\xe2\x80", 0x8e, 0x8f},
                                   {"\xe2\x80", 0xaa, 0xae},
                                   {"\xe2\x81", 0xa6, 0xa9}};
    std::string line;
    while (!text.empty()) {
        const auto* const control =
            std::find_if(std::begin(kControls), std::end(kControls), [text](const Range& range) {
                const std::size_t at = range.begin.size();
                const auto last = static_cast<unsigned char>(at < text.size() ? text[at] : ' ');
                return text.starts_with(range.begin) && last >= range.first && last <= range.last;
            });
        const bool shown = control == std::end(kControls);
        line += shown ? text.front() : '?';
        text.remove_prefix(shown ? 1 : control->begin.size() + 1);
    }
    return line;
}

}  // namespace fragtrace::launcher
