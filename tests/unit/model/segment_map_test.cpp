// Compares SegmentMap with a plain map of the same segments.
#include "analyzer/model/segment_map.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>

using namespace fragtrace::analyzer;

namespace {

using Plain = std::map<DeviceAddress, std::uint64_t>;  // bytes by address

Plain plain(const SegmentMap& map) {
    Plain result;
    for (const RecordedSegment& segment : map.segments()) {
        CHECK((result.empty() || std::prev(result.end())->first < segment.address));
        result.emplace(segment.address, segment.size_bytes);
    }
    CHECK(result.size() == map.segments().size());
    return result;
}

constexpr auto kNothingActive = [](DeviceAddress, DeviceAddress) { return std::uint64_t{0}; };

}  // namespace

TEST_CASE("segments in any number and order are found, cut and removed by address") {
    const int order = GENERATE(range(0, 3));  // ascending, descending, shuffled
    CAPTURE(order);
    constexpr std::uint64_t kCount = 3000;
    std::vector<DeviceAddress> addresses;
    for (std::uint64_t i = 1; i <= kCount; ++i) {
        addresses.push_back(0x1000 * (order == 1 ? kCount - i + 1 : i));
    }
    std::mt19937 random(7);
    if (order == 2) {
        std::shuffle(addresses.begin(), addresses.end(), random);
    }
    SegmentMap map;
    Plain expected;
    for (const DeviceAddress address : addresses) {
        CHECK(!map.overlaps(address, 0x800));
        CHECK(map.add({.address = address, .size_bytes = 0x800})->address == address);
        expected[address] = 0x800;
    }
    CHECK(plain(map) == expected);
    CHECK(map.at_or_before(0xfff) == nullptr);
    for (const DeviceAddress address : addresses) {
        CHECK(map.find(address + 0x7ff)->address == address);
        CHECK(map.find(address + 0x800) == nullptr);
        CHECK(map.at_or_before(address + 0xfff)->address == address);
        CHECK(map.overlaps(address - 1, 2));
    }
    for (std::size_t i = 0; i < addresses.size(); i += 2) {  // whole segments and parts
        const DeviceAddress address = addresses[i];
        const bool whole = i % 4 == 0;
        const DeviceAddress from = whole ? address : address + 0x100;
        const DeviceAddress to = whole ? address + 0x800 : address + 0x200;
        CHECK(map.cut(from, to, kNothingActive) == to - from);
        expected.erase(address);
        if (!whole) {
            expected[address] = 0x100;
            expected[address + 0x200] = 0x600;
        }
    }
    CHECK(plain(map) == expected);
    std::uint64_t held = 0;
    for (const auto& [address, size_bytes] : expected) {
        held += size_bytes;
    }
    CHECK(map.cut(0, ~DeviceAddress{0}, kNothingActive) == held);
    CHECK(map.segments().empty());
    CHECK(map.find(0x1000) == nullptr);
}

TEST_CASE("mapped ranges join their neighbours across the whole map") {
    constexpr std::uint64_t kPage = 0x1000;
    constexpr std::uint64_t kPages = 2000;
    SegmentMap map;
    const auto page = [](std::uint64_t number) {
        return RecordedSegment{
            .address = kPage * (number + 1), .size_bytes = kPage, .page_bytes = kPage};
    };
    for (std::uint64_t i = 0; i < kPages; i += 2) {
        map.add(page(i));
    }
    CHECK(map.segments().size() == kPages / 2);
    for (std::uint64_t i = 1; i < kPages; i += 2) {
        const RecordedSegment* joined = map.add(page(i));
        CHECK(joined->address <= page(i).address);
        CHECK(joined->end() >= page(i).end());
    }
    CHECK(plain(map) == Plain{{kPage, kPage * kPages}});
}

TEST_CASE("a range that joins two others has the sum of their used bytes") {
    SegmentMap map;
    const auto range = [](DeviceAddress address, std::uint64_t active_bytes) {
        RecordedSegment segment = {.address = address, .size_bytes = 0x1000};
        segment.page_bytes = 0x1000;
        segment.reservation = 0x1000;
        segment.active_bytes = active_bytes;
        return segment;
    };
    map.add(range(0x1000, 3));
    map.add(range(0x3000, 5));
    map.add(range(0x2000, 0));
    const RecordedSegment* joined = map.find(0x2500);
    REQUIRE(joined != nullptr);
    CHECK(joined->size_bytes == 0x3000);
    CHECK(joined->active_bytes == 8);
}
