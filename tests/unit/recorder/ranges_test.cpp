// Ranges of the program: each begin has its end, however many ranges are open.
#include "recorder/ranges.h"

#include "recorder/recorder.h"
#include "trace_dump.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace fragtrace;
using namespace fragtrace::test;
namespace preload = fragtrace::preload;

namespace {

// Thread and number of the text.
using Range = std::pair<uint32_t, uint64_t>;

std::vector<Range> ranges_of(const Dump& dump, EventKind kind) {
    std::vector<Range> ranges;
    for (const EventRecord& event : dump.events) {
        if (event.kind == kind) {
            ranges.emplace_back(event.thread, event.size);
        }
    }
    return ranges;
}

void begin_nested(int ranges) {
    for (int i = 0; i < ranges; ++i) {
        preload::begin_range(RangeKind::kApi, 0, ("phase " + std::to_string(i % 1000)).c_str());
    }
}

void end_nested(int ranges) {
    for (int i = 0; i < ranges; ++i) {
        preload::end_range(RangeKind::kApi, 0);
    }
}

}  // namespace

TEST_CASE("300 nested ranges end in reverse order, begun before or during the recording") {
    constexpr int kRanges = 300;
    for (const bool before : {false, true}) {
        const Folder folder;
        in_child(folder.path(), [before] {
            if (!before) {
                preload::record(make_event(1, 1));
            }
            begin_nested(kRanges);
            preload::record(make_event(2, 1));
            end_nested(kRanges);
        });
        Dump dump = read_trace(folder.traces().at(0));
        const std::vector<Range> begins = ranges_of(dump, EventKind::kRangeBegin);
        const std::vector<Range> ends = ranges_of(dump, EventKind::kRangeEnd);
        REQUIRE(begins.size() == kRanges);
        CHECK(dump.facts["text." + std::to_string(begins.back().second)] == "phase 299");
        CHECK(std::vector<Range>(ends.rbegin(), ends.rend()) == begins);
        CHECK(!dump.facts.contains("ranges.without_room"));
    }
}

TEST_CASE("ranges that 300 threads have open at once all end") {
    constexpr uint32_t kThreads = 300;
    const Folder folder;
    in_child(folder.path(), [] {
        preload::record(make_event(1, 1));
        std::atomic<uint32_t> begun = 0;
        std::vector<std::thread> threads;
        for (uint32_t i = 0; i < kThreads; ++i) {
            threads.emplace_back([&begun] {
                begin_nested(1);
                ++begun;
                begun.notify_all();
                for (uint32_t now = begun; now < kThreads; now = begun) {
                    begun.wait(now);
                }
                end_nested(1);
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
    });
    const Dump dump = read_trace(folder.traces().at(0));
    std::vector<Range> begins = ranges_of(dump, EventKind::kRangeBegin);
    std::vector<Range> ends = ranges_of(dump, EventKind::kRangeEnd);
    CHECK(begins.size() == kThreads);
    std::sort(begins.begin(), begins.end());
    std::sort(ends.begin(), ends.end());
    CHECK(ends == begins);
    CHECK(!dump.facts.contains("ranges.without_room"));
}

TEST_CASE("ranges beyond the largest table are counted, and the others still end") {
    constexpr int kMostOpen = 16384;
    const Folder folder;
    in_child(folder.path(), [] {
        preload::record(make_event(1, 1));
        begin_nested(kMostOpen + 5);
        end_nested(kMostOpen + 5);
    });
    Dump dump = read_trace(folder.traces().at(0));
    CHECK(ranges_of(dump, EventKind::kRangeBegin).size() == kMostOpen + 5);
    CHECK(ranges_of(dump, EventKind::kRangeEnd).size() == kMostOpen);
    CHECK(dump.facts["ranges.without_room"] == "5");
}
