#include <fragtrace/sizes.h>

#include "common/config.h"
#include "recorder/options.h"

#include <catch2/catch.hpp>

#include <string>
#include <string_view>

using namespace fragtrace;

namespace {

SizeText read(std::string_view text, uint64_t* bytes) {
    return read_size(text.data(), text.size(), bytes);
}

}  // namespace

TEST_CASE("decimal units are powers of 1000, binary units and letters are powers of 1024") {
    struct Row {
        const char* text;
        uint64_t bytes;
    };

    constexpr Row kRows[] = {
        {"0", 0},
        {"1", 1},
        {"1B", 1},
        {"1K", 1024},
        {"1KiB", 1024},
        {"1KB", 1000},
        {"2M", 2u << 20},
        {"2MiB", 2u << 20},
        {"2MB", 2'000'000},
        {"3G", uint64_t{3} << 30},
        {"3GiB", uint64_t{3} << 30},
        {"3GB", 3'000'000'000},
        {"4T", uint64_t{4} << 40},
        {"4TiB", uint64_t{4} << 40},
        {"4TB", 4'000'000'000'000},
        {"64 mib", 64u << 20},
        {"64gb", 64'000'000'000},
        {"1.5GiB", uint64_t{3} << 29},
        {"0.1GB", 100'000'000},
        {"1.000000001GB", 1'000'000'001},
        {"0.9999999999999999999999GiB", (1u << 30) - 1},
        {"1.GiB", 1u << 30},
        {"1048576T", uint64_t{1} << 60},
        {"1152921504606846976", uint64_t{1} << 60},
    };
    for (const Row& row : kRows) {
        CAPTURE(row.text);
        uint64_t bytes = 77;
        CHECK(read(row.text, &bytes) == SizeText::kRead);
        CHECK(bytes == row.bytes);
    }
}

TEST_CASE("text that is not a size is refused and changes nothing") {
    struct Row {
        const char* text;
        SizeText result;
    };

    constexpr Row kRows[] = {
        {"", SizeText::kNoNumber},
        {"GiB", SizeText::kNoNumber},
        {" 1GiB", SizeText::kNoNumber},
        {"-1GiB", SizeText::kNoNumber},
        {"+1GiB", SizeText::kNoNumber},
        {".5GiB", SizeText::kNoNumber},
        {"nan", SizeText::kNoNumber},
        {"1e9", SizeText::kUnknownUnit},
        {"0x10", SizeText::kUnknownUnit},
        {"1GiBs", SizeText::kUnknownUnit},
        {"1 Gi", SizeText::kUnknownUnit},
        {"1GiB ", SizeText::kUnknownUnit},
        {"1,5GiB", SizeText::kUnknownUnit},
        {"1.5.5GiB", SizeText::kUnknownUnit},
        {"1PiB", SizeText::kUnknownUnit},
        {"1048577T", SizeText::kTooLarge},
        {"99999999999999999999999999", SizeText::kTooLarge},
        {"18446744073709551617", SizeText::kTooLarge},
    };
    for (const Row& row : kRows) {
        CAPTURE(row.text);
        uint64_t bytes = 77;
        CHECK(read(row.text, &bytes) == row.result);
        CHECK(bytes == 77);
    }
    uint64_t bytes = 0;
    CHECK(read_size("1GiB", 2, &bytes) == SizeText::kRead);  // never reads beyond the given length
    CHECK(bytes == 1u << 30);
    CHECK(read(std::string_view("1G\0B", 4), &bytes) == SizeText::kUnknownUnit);
}

TEST_CASE("virtual GPU cards and recorder limits use the same size format") {
    for (const char* text : {"1GB", "1GiB", "1G", "2.5 GB", "1073741824"}) {
        CAPTURE(text);
        uint64_t bytes = 0;
        REQUIRE(read(text, &bytes) == SizeText::kRead);
        const vgpu::Config config = vgpu::parse_config(text, nullptr);
        REQUIRE(config.status == vgpu::Config::kValid);
        CHECK(config.card.total_bytes == bytes);
        CHECK(preload::option_accepts("FRAGTRACE_SIZE_LIMIT", text));
        CHECK(preload::option_accepts("FRAGTRACE_FLIGHT", text));
        CHECK(preload::option_accepts("FRAGTRACE_MIN_BYTES", text));
    }
    const vgpu::Config huge = vgpu::parse_config("99999999999999999999GiB", nullptr);
    CHECK(std::string(huge.problem).find("at most 1 TiB") != std::string::npos);
}

TEST_CASE("part of a card's name is answered with the cards that it could be") {
    const std::string problem = vgpu::parse_config("a100,count=2", nullptr).problem;
    CHECK(problem.find("'a100' could be A100-40GB or A100-80GB;") != std::string::npos);
    const std::string other = vgpu::parse_config("B1000", nullptr).problem;
    CHECK(other.find("neither a size nor a card (the cards: P100-16GB") != std::string::npos);
}
