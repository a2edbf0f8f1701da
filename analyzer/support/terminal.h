// What standard output and standard error can show: colours, width, progress. Decided once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fragtrace::analyzer {

enum class ColorChoice { kAuto, kNever, kAlways };

enum class Style { kPlain, kBold, kDim, kRed, kGreen, kYellow, kOrange };

// Text of a trace as a terminal may be given it: without control characters (those of Unicode's
// second set, U+0080 to U+009F, and bytes that are no UTF-8 among them), which could move its
// cursor, change its state or break a line, and without those that turn the direction of writing.
// As many bytes as before.
std::string printable(std::string_view text);

// Whole lines of output: as printable(), but line ends, tabs and the styles of Terminal stay.
std::string shown_text(std::string_view text);

// Whole lines of output, wrapped at spaces to at most `width` columns. The rest of a line is
// indented to its last column of text in the left two thirds (after two or more spaces), else like
// the line itself, or like the text of a list's item. A longer word stays whole. Colours take no
// columns.
std::string wrapped(std::string_view text, std::size_t width);

// A path as a POSIX shell reads it back, and as a terminal may be given it.
std::string shell_quoted(std::string_view path);

// Text styles for one stream. With colours off every function returns its text unchanged.
class Terminal {
  public:
    // Colours are on for kAlways, or for kAuto when `file_descriptor` is a terminal that has them
    // and NO_COLOR is not set.
    Terminal(int file_descriptor, ColorChoice choice);

    [[nodiscard]] std::string styled(Style style, std::string_view text) const;

    [[nodiscard]] bool colors() const { return colors_; }

    // Columns to use: the terminal's, at most 110; 100 when it is not a terminal.
    [[nodiscard]] std::size_t width() const { return width_; }

    // Columns of the terminal; none when the output is a file or a pipe, whose lines stay whole.
    [[nodiscard]] std::optional<std::size_t> columns() const { return columns_; }

  private:
    bool colors_;
    std::size_t width_;
    std::optional<std::size_t> columns_;
};

// One line on standard error that is overwritten in place; silent unless that is a terminal, or
// shown everywhere: then a line for each quarter. Thread-safe only if the caller serialises calls.
class Progress {
  public:
    // From now on, in this process; before any other thread begins.
    static void show_everywhere();

    explicit Progress(std::string_view label);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void show(std::size_t done, std::size_t all);

  private:
    void show_line(std::size_t done, std::size_t all);

    std::string label_;
    bool in_place_;
    bool lines_;
    std::size_t quarters_ = 0;
    bool shown_ = false;
};

}  // namespace fragtrace::analyzer
