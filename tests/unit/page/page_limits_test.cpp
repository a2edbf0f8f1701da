// Each way to need fewer rows, against brute force.
#include "analyzer/report/page/page_limits.h"

#include "analyzer/report/page/page_overview.h"
#include "sample.h"

#include <catch2/catch.hpp>

#include <random>

using namespace fragtrace::analyzer;
using namespace fragtrace::page_test;

TEST_CASE("a part that is too large is made again with fewer rows") {
    std::vector<std::size_t> tried;
    const auto made = within(1000, 600, 2, [&](std::size_t rows) {
        tried.push_back(rows);
        return std::string(rows * 5, 'x');
    });
    CHECK(made.size() <= 1000);
    CHECK(made.size() > 900);
    CHECK(tried.front() == 600);
    CHECK(tried.size() == 2);
    const auto least =
        within(10, 600, 2, [](std::size_t rows) { return std::string(100 + rows, 'x'); });
    CHECK(least.size() == 102);
}

TEST_CASE("the most of each part of the time is never below the value of any moment") {
    std::mt19937_64 random(1);
    for (int round = 0; round < 200; ++round) {
        constexpr std::uint64_t kEnd = 1000;
        BytesOverTime memory;
        std::uint64_t at_ns = random() % 300;
        for (int i = 0; i < 100 && at_ns < kEnd; ++i, at_ns += random() % (round + 2))
            memory.set(at_ns, random() % 50);
        const std::size_t parts = 1 + random() % 40;
        const std::uint64_t width_ns = kEnd / parts + 1;
        const BytesOverTime most = most_of_parts(memory, parts, kEnd);
        CHECK(most.time_ns.size() <= parts + 1);
        const auto value_at = [](const BytesOverTime& of, std::uint64_t time_ns) {
            const auto after = std::upper_bound(of.time_ns.begin(), of.time_ns.end(), time_ns);
            const auto place = after - of.time_ns.begin();
            return place == 0 ? 0 : of.bytes[static_cast<std::size_t>(place - 1)];
        };
        for (std::uint64_t part = 0; part * width_ns < kEnd; ++part) {
            // Exactly the most: values that changed at the same time count, too.
            std::uint64_t expected = part == 0 ? 0 : value_at(memory, part * width_ns - 1);
            for (std::size_t i = 0; i < memory.time_ns.size(); ++i) {
                if (memory.time_ns[i] / width_ns == part)
                    expected = std::max(expected, memory.bytes[i]);
            }
            REQUIRE(value_at(most, part * width_ns) == expected);
            REQUIRE(value_at(most, part * width_ns + width_ns - 1) == expected);
        }
    }
}

TEST_CASE("rows with most weight stay, in their order") {
    const std::vector<std::uint64_t> weights = {5, 9, 9, 1, 7};
    const auto keep = [&](std::size_t most) {
        return keep_rows(
            5,
            most,
            [](std::uint32_t row) { return row != 2; },
            [&](std::uint32_t row) { return weights[row]; });
    };
    CHECK(keep(5).rows == std::vector<std::uint32_t>{0, 1, 3, 4});
    const KeptRows kept = keep(2);
    CHECK(kept.rows == std::vector<std::uint32_t>{1, 4});
    CHECK(kept.places[4] == 1);
    CHECK_FALSE(kept.has(0));
    CHECK_FALSE(kept.has(2));
}

TEST_CASE("too many address ranges: the nearest become one, and addresses keep their order") {
    PageDevice device;
    std::mt19937_64 random(2);
    std::uint64_t address = 0x7000'0000'0000;
    std::uint64_t reserved = 0;
    for (int i = 0; i < 1000; ++i) {
        device.segments.push_back({.address = address, .size_bytes = kMiB});
        reserved += kMiB;
        address += kMiB + (i == 499 ? 1ull << 40 : 1 + random() % kMiB);
    }
    const AddressAxis all(device);
    CHECK(all.ranges().size() == 1000);
    CHECK(all.size_bytes() == reserved);
    const AddressAxis few(device, 10);
    CHECK(few.ranges().size() <= 10);
    CHECK(few.ranges().size() + few.joined() == 1000);
    CHECK(few.size_bytes() == reserved + few.joined_bytes());
    CHECK(few.joined_bytes() < kGiB);  // the large gap is not drawn
    for (std::size_t i = 1; i < device.segments.size(); ++i) {
        const std::uint64_t before = few.offset_of(device.segments[i - 1].address);
        REQUIRE(few.offset_of(device.segments[i].address) >= before + kMiB);
    }
}

TEST_CASE("too many changes of pools: the shortest times between them are left out") {
    std::vector<PagePool> pools(3);
    std::mt19937_64 random(3);
    for (PagePool& pool : pools) {
        std::uint64_t at_ns = 0;
        for (int i = 0; i < 1001; ++i)
            pool.changes_ns.push_back(at_ns += 1 + random() % (i % 10 == 0 ? 100'000 : 100));
    }
    const std::vector<PagePool> given = pools;
    CHECK(limit_changes(&pools, 5000) == 0);
    const std::size_t left = limit_changes(&pools, 900);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < pools.size(); ++i) {
        const auto& times = pools[i].changes_ns;
        kept += times.size();
        CHECK(times.size() % 2 == 1);  // the state at the end is the same
        CHECK(std::includes(
            given[i].changes_ns.begin(), given[i].changes_ns.end(), times.begin(), times.end()));
    }
    CHECK(kept <= 900);
    CHECK(kept > 200);
    CHECK(kept + left == 3003);
    limit_changes(&pools, 0);
    CHECK(pools[0].changes_ns.empty());
}

TEST_CASE("a map with half the columns and rows has the means") {
    CHECK(halved({10, 20, 0, 255, 30, 40, 0, 255}, 4, 2) == std::vector<std::uint8_t>{25, 128});
}

TEST_CASE("a long text is cut between characters, and says its length") {
    CHECK(shortened("abc", 3) == "abc");
    CHECK(shortened("abcdef", 3) == "abc... (cut: 6 bytes)");
    CHECK(shortened("ab\xc3\xa4"
                    "def",
                    3) == "ab... (cut: 7 bytes)");
    nlohmann::json value = {{"a", {std::string(2000, 'x')}}, {"b", 1}};
    shorten_texts(value, 10);
    CHECK(value["a"][0] == "xxxxxxxxxx... (cut: 2,000 bytes)");
}
