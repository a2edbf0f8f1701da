#include "analyzer/commands/first_screen.h"

#include "analyzer/report/text/first_screen.h"
#include "analyzer/support/terminal.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <string_view>
#include <unistd.h>

namespace fragtrace::analyzer {
namespace {

// In events. The report of a shorter trace is ready before anyone has read these lines.
constexpr std::size_t kLong = 1'000'000;

}  // namespace

void FirstScreen::show(const Analysis& analysis) {
    const bool waits = isatty(STDERR_FILENO) != 0 && analysis.timeline.events.size() >= kLong;
    if (!waits && !always_) {
        return;
    }
    const std::string text =
        first_screen_text(analysis, Terminal(STDERR_FILENO, ColorChoice::kNever));
    print_to_stderr(text);
    lines_ = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

void FirstScreen::clear() {
    if (lines_ != 0 && moves_cursor(STDOUT_FILENO) && moves_cursor(STDERR_FILENO)) {
        print_to_stderr(fmt::format("\033[{}A\r\033[J", lines_));
    }
    lines_ = 0;
}

}  // namespace fragtrace::analyzer
