// Line tables written by hand, from the descriptions of their formats.
#include "stacks/python_lines.h"

#include "stacks/python_layout.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <string>
#include <vector>

using fragtrace::preload::line_in_line_table;
using fragtrace::preload::line_in_lnotab;
using fragtrace::preload::line_in_location_table;

TEST_CASE("short, one-line, long and missing entries of a location table are read") {
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

TEST_CASE("the line table of Python 3.10 is read") {
    const std::vector<uint8_t> table = {4, 0, 6, 1, 2, 0x80, 8, 0xff};
    const auto line = [&](int lasti) {
        return line_in_line_table(table.data(), table.size(), 10, lasti);
    };
    CHECK(line(0) == 10);
    CHECK(line(4) == 11);
    CHECK(line(10) == 0);
    CHECK(line(12) == 10);
}

TEST_CASE("the lnotab of Python 3.8 and 3.9 is read") {
    const std::vector<uint8_t> table = {0, 1, 6, 1, 50, 0xff, 255, 0, 45, 3};
    const auto line = [&](int lasti) {
        return line_in_lnotab(table.data(), table.size(), 10, lasti);
    };
    CHECK(line(0) == 11);
    CHECK(line(6) == 12);
    CHECK(line(56) == 11);
    CHECK(line(400) == 14);
}

TEST_CASE("unknown interpreters are refused with a reason") {
    const auto reason_for = [](const char* version, const void* published) {
        fragtrace::preload::PythonLayout layout;
        const char* reason = "accepted";
        const bool known = fragtrace::preload::python_layout(version, published, &layout, &reason);
        return std::string(known ? "accepted" : reason);
    };
    const std::string unknown = "off: this version of Python is not known";
    const std::string free_threaded = "off: free-threaded Python is not known";
    CHECK(reason_for("3.11.2 (main, Apr 28 2025, 14:11:48) [GCC 12.2.0]", nullptr) == "accepted");
    CHECK(reason_for("3.13.0 experimental free-threading build (main)", nullptr) == free_threaded);
    CHECK(reason_for("3.14.0 free-threading build (main)", nullptr) == free_threaded);
    CHECK(reason_for("2.7.18 (default)", nullptr) == unknown);
    CHECK(reason_for("3.7.16 (default)", nullptr) == unknown);
    CHECK(reason_for("3.99.0 (main)", nullptr) == unknown);
    // A table of offsets of another version, or of a free-threaded interpreter.
    uint64_t published[128] = {};
    std::memcpy(published, "xdebugpy", 8);
    published[1] = 0x030d00f0;
    CHECK(reason_for("3.14.0 (main)", published) == unknown);
    published[2] = 1;
    CHECK(reason_for("3.13.0 (main)", published) == unknown);
}
