#include "analyzer/support/units.h"

#include <catch2/catch.hpp>

#include <fstream>
#include <sstream>

using namespace fragtrace::analyzer;

TEST_CASE("sizes are written with three digits and a binary unit") {
    CHECK(format_bytes(0) == "0 B");
    CHECK(format_bytes(512) == "512 B");
    CHECK(format_bytes(9 * kMiB) == "9 MiB");
    CHECK(format_bytes(1894 * kMiB) == "1.85 GiB");
    CHECK(format_bytes(1023 * kMiB) == "1023 MiB");
    CHECK(format_bytes(16 * kGiB) == "16 GiB");
    CHECK(format_bytes_difference(-static_cast<std::int64_t>(12 * kMiB)) == "-12 MiB");
    CHECK(format_bytes_difference(0) == "0 B");
    constexpr std::uint64_t kMost = ~std::uint64_t{0};
    CHECK(format_bytes_difference(0, kMost) == "+16384 PiB");
    CHECK(format_bytes_difference(kMost, 0) == "-16384 PiB");
    CHECK(format_bytes_difference(kMost, kMost) == "0 B");
    CHECK(format_count(47927) == "47,927");
    CHECK(format_count(999) == "999");
}

TEST_CASE("sizes are read in the usual notations") {
    CHECK(*parse_bytes("16GiB") == 16 * kGiB);
    CHECK(*parse_bytes("1894 MiB") == 1894 * kMiB);
    CHECK(*parse_bytes("24g") == 24 * kGiB);
    CHECK(*parse_bytes("0.5GiB") == 512 * kMiB);
    CHECK(*parse_bytes("1073741824") == kGiB);
    CHECK(*parse_bytes("24GB") == 24'000'000'000);
    CHECK(*parse_bytes("1.5 MB") == 1'500'000);
    for (const char* bad : {"", "GiB", "-1GiB", "16 parsecs", "1e400", "nan", "1025TiB"}) {
        CAPTURE(bad);
        const auto parsed = parse_bytes(bad);
        REQUIRE_FALSE(parsed.ok());
        CHECK(parsed.error().message.find('\n') == std::string::npos);
    }
}

TEST_CASE("times are written in the most readable unit") {
    CHECK(format_duration(12'000) == "12 us");
    CHECK(format_duration(350'000'000) == "350 ms");
    CHECK(format_duration(2'410'000'000) == "2.41 s");
    CHECK(format_duration(3'725'000'000'000) == "1 h 02 min");
}

// The page in the browser writes the same texts: viewer/test/format.test.ts reads the same list.
TEST_CASE("sizes, times and counts are written exactly as in the list") {
    std::ifstream list(FRAGTRACE_FORMATS);
    std::string line;
    std::size_t lines = 0;
    while (std::getline(list, line)) {
        std::istringstream columns(line);
        std::string kind;
        std::string number;
        std::string text;
        std::getline(columns, kind, '\t');
        std::getline(columns, number, '\t');
        std::getline(columns, text, '\t');
        const std::uint64_t value = std::stoull(number);
        CAPTURE(kind, value);
        CHECK((kind == "bytes"  ? format_bytes(value)
               : kind == "time" ? format_duration(value)
                                : format_count(value)) == text);
        ++lines;
    }
    CHECK(lines > 1000);
}
