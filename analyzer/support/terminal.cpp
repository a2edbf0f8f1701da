#include "analyzer/support/terminal.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kDefaultWidth = 100;
constexpr std::size_t kLargestWidth = 110;

bool everywhere = false;  // Progress::show_everywhere

bool wants_colors(int file_descriptor, ColorChoice choice) {
    if (choice != ColorChoice::kAuto) {
        return choice == ColorChoice::kAlways;
    }
    const char* no_color = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    return isatty(file_descriptor) != 0 && (no_color == nullptr || *no_color == '\0') &&
           term != nullptr && std::string_view(term) != "dumb";
}

const char* escape_of(Style style) {
    switch (style) {
        case Style::kPlain:
            return "";
        case Style::kBold:
            return "\033[1m";
        case Style::kDim:
            return "\033[2m";
        case Style::kRed:
            return "\033[1;31m";
        case Style::kGreen:
            return "\033[32m";
        case Style::kYellow:
            return "\033[33m";
        case Style::kOrange:
            return "\033[38;5;208m";
    }
    return "";
}

}  // namespace

std::string printable(std::string_view text) {
    std::string result(text);
    for (char& character : result) {
        if (static_cast<unsigned char>(character) < 0x20 || character == 0x7f) {
            character = '?';
        }
    }
    return result;
}

std::string shell_quoted(std::string_view path) {
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=:,@%";
    if (!path.empty() && path.find_first_not_of(kPlain) == std::string_view::npos) {
        return std::string(path);
    }
    std::string result = "'";
    for (const char character : path) {
        result += character == '\'' ? std::string("'\\''") : std::string(1, character);
    }
    return result + "'";
}

Terminal::Terminal(int file_descriptor, ColorChoice choice)
    : colors_(wants_colors(file_descriptor, choice)), width_(kDefaultWidth) {
    winsize size{};
    if (ioctl(file_descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col != 0) {
        width_ = std::clamp<std::size_t>(size.ws_col, 60, kLargestWidth);
    }
}

std::string Terminal::styled(Style style, std::string_view text) const {
    if (!colors_ || style == Style::kPlain) {
        return std::string(text);
    }
    return fmt::format("{}{}\033[0m", escape_of(style), text);
}

void Progress::show_everywhere() {
    everywhere = true;
}

Progress::Progress(std::string_view label)
    : label_(label), in_place_(isatty(STDERR_FILENO) != 0), lines_(everywhere && !in_place_) {}

Progress::~Progress() {
    if (shown_) {
        fmt::print(stderr, "\r\033[K");
        std::fflush(stderr);
    }
}

void Progress::show_line(std::size_t done, std::size_t all) {
    const std::size_t quarters = 4 * done / all;
    if (quarters != quarters_) {
        quarters_ = quarters;
        fmt::print(stderr, "{} {}/{}\n", label_, done, all);
        std::fflush(stderr);
    }
}

void Progress::show(std::size_t done, std::size_t all) {
    if (lines_ && all != 0) {
        show_line(done, all);
    }
    if (!in_place_ || all == 0) {
        return;
    }
    constexpr std::size_t kBarWidth = 30;
    const std::size_t filled = kBarWidth * done / all;
    fmt::print(stderr,
               "\r\033[K{} [{}{}] {}/{}",
               label_,
               std::string(filled, '#'),
               std::string(kBarWidth - filled, ' '),
               done,
               all);
    std::fflush(stderr);
    shown_ = true;
}

}  // namespace fragtrace::analyzer
