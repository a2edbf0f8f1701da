// Rows of replays as text, in a file and on terminals.
#include "analyzer/report/text/whatif_rows.h"

#include "analyzer/support/terminal.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <sys/ioctl.h>
#include <unistd.h>
#include <vector>

using namespace fragtrace::analyzer;

namespace {

std::string on_terminal(const std::vector<WhatIfCells>& rows, unsigned short columns) {
    const int controller = posix_openpt(O_RDWR | O_NOCTTY);
    REQUIRE(grantpt(controller) == 0);
    REQUIRE(unlockpt(controller) == 0);
    const int terminal = open(ptsname(controller), O_RDWR | O_NOCTTY);
    REQUIRE(terminal >= 0);
    const winsize size = {24, columns, 0, 0};
    REQUIRE(ioctl(terminal, TIOCSWINSZ, &size) == 0);
    const std::string text =
        wrapped(whatif_rows(rows, Terminal(terminal, ColorChoice::kNever)), columns);
    close(terminal);
    close(controller);
    return text;
}

}  // namespace

TEST_CASE("rows of replays keep their figures on one line on a narrow terminal") {
    const std::vector<WhatIfCells> rows = {
        {"setting", "outcome", {"reserved", "difference"}, "class"},
        {"default settings", "fits, 12 retries", {"1 GiB", "as recorded"}, "exact"},
        {"expandable_segments:True,roundup_power2_divisions:4", "OOM", {"9.5 GiB", "+8 GiB"}, "x"}};
    const std::string wide =
        "  setting                                              outcome           reserved   "
        "difference  class\n"
        "  default settings                                     fits, 12 retries     1 GiB  as "
        "recorded  exact\n"
        "  expandable_segments:True,roundup_power2_divisions:4  OOM                9.5 GiB       "
        "+8 GiB  x\n";
    CHECK(on_terminal(rows, 120) == wide);
    CHECK(whatif_rows(rows, Terminal(-1, ColorChoice::kNever)) == wide);
    CHECK(on_terminal(rows, 80) ==
          "  setting                      outcome           reserved   difference  class\n"
          "  default settings             fits, 12 retries     1 GiB  as recorded  exact\n"
          "  expandable_segments:True,roundup_power2_divisions:4\n"
          "                               OOM                9.5 GiB       +8 GiB  x\n");
}
