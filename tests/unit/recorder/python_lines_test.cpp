// Line tables written by hand, from the formats' descriptions.
#include "python_lines.h"

#include <catch2/catch.hpp>

#include <vector>

using fragtrace::preload::line_in_line_table;
using fragtrace::preload::line_in_lnotab;
using fragtrace::preload::line_in_location_table;

TEST_CASE("location table: short, one-line, long and missing entries") {
    const std::vector<uint8_t> table = {
        0x80 | (10 << 3) | 0,
        1,
        2,  // one unit, same line, two columns
        0x80 | (11 << 3) | 1,
        1,
        2,  // two units, next line
        0x80 | (13 << 3) | 0,
        0x40 | 24,
        1,                     // one unit, +44: varint 88 = 24 + 64 * 1
        0x80 | (15 << 3) | 0,  // one unit without a line
        0x80 | (14 << 3) | 7,
        5,
        0,
        1,
        1,  // eight units, -2
        0x80 | (3 << 3) | 0,
        0x11,  // short form: same line
    };
    const auto line = [&](int lasti) {
        return line_in_location_table(table.data(), table.size(), 100, lasti);
    };
    CHECK(line(-2) == 100);
    CHECK(line(0) == 100);
    CHECK(line(2) == 101);
    CHECK(line(4) == 101);
    CHECK(line(6) == 145);
    CHECK(line(8) == 0);
    CHECK(line(10) == 143);
    CHECK(line(24) == 143);
    CHECK(line(26) == 143);
    CHECK(line(28) == 0);
}

TEST_CASE("line table of 3.10") {
    const std::vector<uint8_t> table = {4, 0, 6, 1, 2, 0x80, 8, 0xff};
    const auto line = [&](int lasti) {
        return line_in_line_table(table.data(), table.size(), 10, lasti);
    };
    CHECK(line(0) == 10);
    CHECK(line(4) == 11);
    CHECK(line(10) == 0);
    CHECK(line(12) == 10);
}

TEST_CASE("lnotab of 3.8 and 3.9") {
    const std::vector<uint8_t> table = {0, 1, 6, 1, 50, 0xff, 255, 0, 45, 3};
    const auto line = [&](int lasti) {
        return line_in_lnotab(table.data(), table.size(), 10, lasti);
    };
    CHECK(line(0) == 11);
    CHECK(line(6) == 12);
    CHECK(line(56) == 11);
    CHECK(line(400) == 14);
}
