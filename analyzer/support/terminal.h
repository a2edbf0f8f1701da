// The capabilities of standard output and standard error: colours, width, progress. Determined
// once.
#pragma once

#include <fragtrace/printable.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fragtrace::analyzer {

enum class ColorChoice { kAuto, kNever, kAlways };

enum class Style { kPlain, kBold, kDim, kRed, kGreen, kYellow, kOrange };

// Like printable(), for a page: line ends, tabs and invalid UTF-8 stay.
std::string with_escapes(std::string_view text);

// Like printable(), for whole lines of output: line ends, tabs and the styles of Terminal stay.
std::string shown_text(std::string_view text);

// Wraps whole lines of output at spaces to at most `width` columns. Continuation lines are indented
// to the last column of text in the left two thirds (a column follows two or more spaces). Without
// such a column they are indented like the line itself, or like the text of a list item. The indent
// is smaller where a word would not fit otherwise. A word longer than the width stays whole.
// Colours take no columns.
std::string wrapped(std::string_view text, std::size_t width);

// Text styles for one stream. With colours off every function returns its text unchanged.
class Terminal {
  public:
    // Colours are on for kAlways, or for kAuto if `file_descriptor` is a terminal with colours and
    // NO_COLOR is not set.
    Terminal(int file_descriptor, ColorChoice choice);

    [[nodiscard]] std::string styled(Style style, std::string_view text) const;

    [[nodiscard]] bool colors() const { return colors_; }

    // Columns to use: the terminal's, but at least 60 and at most 110; 100 if it is not a terminal.
    [[nodiscard]] std::size_t width() const { return width_; }

    // Columns of the terminal, at least 40. Empty if the output is a file or a pipe, whose lines
    // are not wrapped.
    [[nodiscard]] std::optional<std::size_t> columns() const { return columns_; }

  private:
    bool colors_;
    std::size_t width_;
    std::optional<std::size_t> columns_;
};

// Whether the file is a terminal that understands escapes which move the cursor.
bool moves_cursor(int file_descriptor);

// Writes to standard error. A write that fails, to a closed or a full file, is ignored: there is no
// other place for messages.
void print_to_stderr(std::string_view text);

// A progress line on standard error that is overwritten in place. Without a terminal it prints
// nothing, or, after show_everywhere(), one line for each quarter. Thread-safe only if the caller
// serialises calls.
class Progress {
  public:
    // Applies to this process from now on. Call it before other threads start.
    static void show_everywhere();

    explicit Progress(std::string_view label);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void show(std::size_t done, std::size_t all);

    // The same for loops over events: shows one of 65,536 calls.
    void show_sometimes(std::size_t done, std::size_t all) {
        constexpr std::size_t kEvery = 65536;
        if (done % kEvery == 0) {
            show(done, all);
        }
    }

  private:
    void show_line(std::size_t done, std::size_t all);

    std::string label_;
    bool in_place_;
    bool lines_;
    std::size_t quarters_ = 0;
    bool shown_ = false;
};

}  // namespace fragtrace::analyzer
