#include "analyzer/support/terminal.h"

#include "analyzer/support/in_program.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kDefaultWidth = 100;
constexpr std::size_t kLargestWidth = 110;
constexpr std::size_t kLeastColumns = 40;  // a narrower terminal wraps lines itself

bool everywhere = false;            // set by Progress::show_everywhere()
std::atomic<bool> nowhere = false;  // set by show_no_progress()

bool wants_colors(int file_descriptor, ColorChoice choice) {
    if (choice != ColorChoice::kAuto) {
        return choice == ColorChoice::kAlways;
    }
    const char* no_color = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    return isatty(file_descriptor) != 0 && (no_color == nullptr || *no_color == '\0') &&
           term != nullptr && std::string_view(term) != "dumb";
}

constexpr std::string_view kPlainAgain = "\033[0m";

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

// The length in bytes of a style of this program at the start of `text`, such as ESC [ 1 ; 3 1 m.
std::size_t style_bytes(std::string_view text) {
    for (const Style style :
         {Style::kBold, Style::kDim, Style::kRed, Style::kGreen, Style::kYellow, Style::kOrange}) {
        const std::string_view escape = escape_of(style);
        if (text.starts_with(escape)) {
            return escape.size();
        }
    }
    return text.starts_with(kPlainAgain) ? kPlainAgain.size() : 0;
}

std::size_t line_layout(std::string_view text) {
    return text[0] == '\n' || text[0] == '\t' ? 1 : 0;
}

}  // namespace

std::string with_escapes(std::string_view text) {
    return escaped(text, line_layout, [](char byte) { return byte; });
}

std::string shown_text(std::string_view text) {
    const auto kept = [](std::string_view rest) {
        return rest[0] == '\033' ? style_bytes(rest) : line_layout(rest);
    };
    return escaped(text, kept, [](char) { return '?'; });
}

namespace {

// Returns the bytes of the next unit of printed text and sets `columns`: a style takes 0 columns, a
// character 1.
std::size_t next_unit(std::string_view text, std::size_t* columns) {
    if (const std::size_t style = style_bytes(text); style != 0) {
        *columns = 0;
        return style;
    }
    *columns = 1;
    return std::max<std::size_t>(shown_bytes(text), 1);
}

// The indent of continuation lines: the last column of text in the left two thirds.
std::size_t hanging_indent(std::string_view line, std::size_t width) {
    std::size_t leading = 0;
    std::size_t found = 0;
    std::size_t spaces = 0;
    std::size_t column = 0;
    for (std::size_t at = 0; at < line.size() && column < width * 2 / 3;) {
        std::size_t columns = 0;
        const std::size_t bytes = next_unit(line.substr(at), &columns);
        if (columns != 0 && line[at] != ' ') {
            if (spaces == column) {
                leading = column;
            } else if (spaces >= 2) {
                found = column;
            }
            spaces = 0;
        } else {
            spaces += columns;
        }
        column += columns;
        at += bytes;
    }
    // A list item begins with "- ".
    const bool is_item = line.substr(std::min(leading, line.size())).starts_with("- ");
    return found != 0 ? found : leading + (is_item ? 2 : 0);
}

// The columns of the text up to its first space.
std::size_t word_columns(std::string_view text) {
    std::size_t sum = 0;
    for (std::size_t at = 0; at < text.size() && text[at] != ' ';) {
        std::size_t columns = 0;
        at += next_unit(text.substr(at), &columns);
        sum += columns;
    }
    return sum;
}

void append_wrapped(std::string_view line, std::size_t width, std::string* text) {
    const std::size_t usual_indent = hanging_indent(line, width);
    std::size_t column = 0;
    std::size_t spaces_at = 0;  // in `text`: last spaces between words, and their count
    std::size_t spaces = 0;
    std::size_t word_column = 0;  // where the word after them begins
    std::size_t word_at = 0;      // the same, in `line`
    bool words = false;           // whether this output line has a word yet
    for (std::size_t at = 0; at < line.size();) {
        std::size_t columns = 0;
        const std::size_t bytes = next_unit(line.substr(at), &columns);
        if (columns != 0 && line[at] == ' ') {
            if (words) {
                spaces = text->size() == spaces_at + spaces ? spaces + 1 : 1;
                spaces_at = text->size() + 1 - spaces;
                word_column = column + 1;
                word_at = at + 1;
            }
        } else if (columns != 0) {
            words = true;
            if (column >= width && spaces != 0) {
                const std::size_t needed = std::min(width, word_columns(line.substr(word_at)));
                const std::size_t indent = std::min(usual_indent, width - needed);
                text->replace(spaces_at, spaces, "\n" + std::string(indent, ' '));
                column = indent + column - word_column;
                spaces = 0;
            }
        }
        text->append(line.substr(at, bytes));
        column += columns;
        at += bytes;
    }
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t width) {
    std::string result;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        append_wrapped(text.substr(begin, end - begin), width, &result);
        result += end < text.size() ? "\n" : "";
        begin = end + 1;
    }
    return result;
}

Terminal::Terminal(int file_descriptor, ColorChoice choice)
    : colors_(wants_colors(file_descriptor, choice)), width_(kDefaultWidth) {
    winsize size{};
    if (ioctl(file_descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col != 0) {
        width_ = std::clamp<std::size_t>(size.ws_col, 60, kLargestWidth);
        columns_ = std::max<std::size_t>(size.ws_col, kLeastColumns);
    }
}

std::string Terminal::styled(Style style, std::string_view text) const {
    if (!colors_ || style == Style::kPlain) {
        return std::string(text);
    }
    return fmt::format("{}{}\033[0m", escape_of(style), text);
}

void print_to_stderr(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
}

void Progress::show_everywhere() {
    everywhere = true;
}

bool moves_cursor(int file_descriptor) {
    const char* term = std::getenv("TERM");
    return isatty(file_descriptor) != 0 && term != nullptr && std::string_view(term) != "dumb";
}

void show_no_progress() {
    nowhere = true;
}

Progress::Progress(std::string_view label)
    : label_(label),
      in_place_(!nowhere && moves_cursor(STDERR_FILENO)),
      lines_(everywhere && !in_place_) {}

Progress::~Progress() {
    if (shown_) {
        print_to_stderr("\r\033[K");
    }
}

void Progress::show_line(std::size_t done, std::size_t all) {
    const std::size_t quarters = 4 * done / all;
    if (quarters != quarters_) {
        quarters_ = quarters;
        print_to_stderr(fmt::format("{} {}/{}\n", label_, done, all));
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
    print_to_stderr(fmt::format("\r\033[K{} [{}{}] {}/{}",
                                label_,
                                std::string(filled, '#'),
                                std::string(kBarWidth - filled, ' '),
                                done,
                                all));
    shown_ = true;
}

}  // namespace fragtrace::analyzer
