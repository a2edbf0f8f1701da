// Text from a trace reaches a terminal or a shell as text, never as a command.
#include "analyzer/support/terminal.h"

#include "analyzer/support/threads.h"

#include <catch2/catch.hpp>

#include <array>
#include <atomic>
#include <cstdio>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using namespace std::string_literals;

namespace {

// Reads the text back like a shell that knows $'...'.
std::string read_back(const std::string& quoted) {
    std::string result;
    FILE* shell = popen(("bash -c " + shell_quoted("printf %s " + quoted)).c_str(), "r");
    REQUIRE(shell != nullptr);
    std::array<char, 256> buffer = {};
    for (std::size_t read = 0; (read = fread(buffer.data(), 1, buffer.size(), shell)) != 0;) {
        result.append(buffer.data(), read);
    }
    REQUIRE(pclose(shell) == 0);
    return result;
}

}  // namespace

TEST_CASE("control characters and invalid UTF-8 are not shown") {
    CHECK(printable("a\x1b[31m\n\x7f") == "a\\u001b[31m\\n\\u007f");
    CHECK(printable("a\xc2\x9b"
                    "31m") == "a\\u009b31m");  // U+009B: control sequence introducer
    CHECK(printable("a\x9b"
                    "31m") == "a?31m");         // the same on a Latin-1 terminal
    CHECK(printable("\xe0\x82\x9b") == "???");  // the same, written too long
    CHECK(printable("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80") ==
          "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
    CHECK(printable("cut \xe2\x82") == "cut ??");
    CHECK(printable("\xed\xa0\x80") == "???");       // half of a surrogate pair
    CHECK(printable("\xf4\x90\x80\x80") == "????");  // beyond Unicode
}

TEST_CASE("control and direction characters are shown as escapes") {
    CHECK(with_escapes("a\xe2\x80\xae"
                       "b\x1b[31m\n\t\x7f") == "a\\u202eb\\u001b[31m\n\t\\u007f");
    CHECK(with_escapes("\xc2\x9b|\xd8\x9c|\xe2\x81\xa6") == "\\u009b|\\u061c|\\u2066");
    CHECK(with_escapes(std::string("\0", 1)) == "\\u0000");
    // Other text, and what is not valid UTF-8, stays.
    for (const std::string& text :
         {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80 \xe2\x80\xa6"s, "\xff\xe2\x82"s, "\xc2"s, ""s}) {
        CHECK(with_escapes(text) == text);
    }
}

TEST_CASE("characters that change the writing direction or break lines are not shown") {
    CHECK(
        printable("a\xd8\x9c|\xe2\x80\x8e|\xe2\x80\xa8|\xe2\x80\xae|\xe2\x81\xa6|\xe2\x81\xa9|b") ==
        "a\\u061c|\\u200e|\\u2028|\\u202e|\\u2066|\\u2069|b");
    CHECK(printable("\xe2\x80\xa6 \xe2\x80\x93") == "\xe2\x80\xa6 \xe2\x80\x93");  // ... and -
}

TEST_CASE("output keeps line ends and our own styles, no other control characters") {
    const Terminal colors(1, ColorChoice::kAlways);
    const std::string own = colors.styled(Style::kRed, "out of memory") + "\n\tnext\n";
    CHECK(shown_text(own) == own);
    CHECK(shown_text("\x1b[8mhidden\x1b]0;title\x07\r\xe2\x80\xae") ==
          "\\u001b[8mhidden\\u001b]0;title\\u0007\\u000d\\u202e");
}

TEST_CASE("a quoted path is read back by the shell and harmless to the terminal") {
    CHECK(shell_quoted("out/train.1.ftrace") == "out/train.1.ftrace");
    CHECK(shell_quoted("my run") == "'my run'");
    CHECK(shell_quoted("a\x1b[31m") == "$'a\\033[31m'");
    for (const std::string& path : {"my run"s,
                                    "it's"s,
                                    "back\\slash"s,
                                    "a\x1b]0;title\x07'q\\n"s,
                                    "new\nline 7"s,
                                    "\xc2\x9b"
                                    "1m"s,
                                    "\xc3\xa4 \xff"s}) {
        CAPTURE(path);
        const std::string quoted = shell_quoted(path);
        CHECK(printable(quoted) == quoted);
        CHECK(read_back(quoted) == path);
    }
}

TEST_CASE("a line longer than the terminal continues below its last column") {
    CHECK(wrapped("one two three", 13) == "one two three");
    CHECK(wrapped("one two three\n", 12) == "one two\nthree\n");
    CHECK(wrapped("  verdict    one two three\nnext\n", 21) ==
          "  verdict    one two\n             three\nnext\n");
    CHECK(wrapped("  - one two three", 11) == "  - one two\n    three");
    CHECK(wrapped("  one two three", 10) == "  one two\n  three");
    // The column begins too far to the right to be used as indentation.
    CHECK(wrapped("  a           b c d", 16) == "  a           b\n  c d");
    CHECK(wrapped("one     two", 6) == "one\ntwo");
}

TEST_CASE("wrapping keeps long words whole and counts characters, not styles or bytes") {
    CHECK(wrapped("a/very/long/path b", 6) == "a/very/long/path\nb");
    // A smaller indent than that of the column of text.
    CHECK(wrapped("name  some text", 12) == "name  some\n      text");
    CHECK(wrapped("name  some longest", 12) == "name  some\n     longest");
    CHECK(wrapped("name  some/long/word", 10) == "name\nsome/long/word");
    CHECK(wrapped("\xc3\xa4\xc3\xa4 \xc3\xa4", 4) == "\xc3\xa4\xc3\xa4 \xc3\xa4");
    const Terminal colours(1, ColorChoice::kAlways);
    const std::string bold = colours.styled(Style::kBold, "one two");
    CHECK(wrapped(bold + " three", 13) == bold + " three");
    CHECK(wrapped(bold + " three", 12) == bold + "\nthree");
    CHECK(wrapped("", 40).empty());
    CHECK(wrapped("\n\n", 40) == "\n\n");
}

TEST_CASE("wrapped text keeps all words and no line is too long") {
    const std::string text =
        "  setting                     outcome      reserved  class\n"
        "  expandable_segments:True    fits         60 MiB    exact until its out-of-memory\n"
        "  - device 0: replays on other cards give driver requests whole pages of 2 MiB\n";
    for (std::size_t width = 30; width < 100; ++width) {
        CAPTURE(width);
        const std::string lines = wrapped(text, width);
        std::istringstream all(text);
        std::istringstream after(lines);
        const std::istream_iterator<std::string> end;
        CHECK(std::vector<std::string>(std::istream_iterator<std::string>(all), end) ==
              std::vector<std::string>(std::istream_iterator<std::string>(after), end));
        std::istringstream each(lines);
        for (std::string line; std::getline(each, line);) {
            CHECK(line.size() <= width);
        }
    }
}

TEST_CASE("work on several threads is completed, and an exception of one reaches the caller") {
    std::atomic<std::size_t> next{0};
    std::atomic<std::size_t> done{0};
    on_threads(8, [&] {
        while (next++ < 1000) {
            ++done;
        }
    });
    CHECK(done == 1000);
    std::atomic<int> calls{0};
    CHECK_THROWS_AS(on_threads(4,
                               [&] {
                                   if (++calls == 3) {
                                       throw std::bad_alloc();
                                   }
                               }),
                    std::bad_alloc);
    CHECK(calls == 4);
    on_threads(0, [&] { ++calls; });
    CHECK(calls == 5);
    CHECK(processors() >= 1);
}
