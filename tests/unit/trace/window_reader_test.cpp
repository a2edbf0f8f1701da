// A long trace that is read in part: in each window, everything is as in the whole trace.
#include "analyzer/trace/window_reader.h"

#include "analyzer/model/recorded_state.h"
#include "analyzer/trace/reader.h"
#include "tests/support/made_up_traces.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using namespace fragtrace::testing;

namespace {

constexpr DeviceId kDevice = 0;

Timeline read_part(const std::string& path, const std::vector<EventWindow>& windows) {
    Result<EventStream> stream = EventStream::open(path);
    REQUIRE(stream.ok());
    return read_windows(&*stream, windows);
}

bool same_event(const Event& a, const Event& b) {
    return a.kind == b.kind && a.address == b.address && a.size_bytes == b.size_bytes &&
           a.extra == b.extra && a.device == b.device && a.flags == b.flags &&
           a.time_ns == b.time_ns;
}

void check_same_memory(const RecordedState& part, const RecordedState& whole) {
    const MemoryTotals& a = part.totals(kDevice);
    const MemoryTotals& b = whole.totals(kDevice);
    REQUIRE(a.requested == b.requested);
    REQUIRE(a.allocated == b.allocated);
    REQUIRE(a.pending == b.pending);
    REQUIRE(a.reserved == b.reserved);
    REQUIRE(a.other == b.other);
    REQUIRE(a.blocks == b.blocks);
}

void check_same_map(const RecordedState& part, const RecordedState& whole) {
    const HeapSnapshot a = part.snapshot(kDevice);
    const HeapSnapshot b = whole.snapshot(kDevice);
    REQUIRE(a.segments.size() == b.segments.size());
    for (std::size_t i = 0; i < a.segments.size(); ++i) {
        REQUIRE(a.segments[i].address == b.segments[i].address);
        REQUIRE(a.segments[i].size_bytes == b.segments[i].size_bytes);
        REQUIRE(a.segments[i].private_pool == b.segments[i].private_pool);
        REQUIRE(a.segments[i].stream == b.segments[i].stream);
    }
    REQUIRE(a.blocks.size() == b.blocks.size());
    for (std::size_t i = 0; i < a.blocks.size(); ++i) {
        REQUIRE(a.blocks[i].address == b.blocks[i].address);
        REQUIRE(a.blocks[i].size_bytes == b.blocks[i].size_bytes);
        REQUIRE(a.blocks[i].requested_bytes == b.blocks[i].requested_bytes);
        REQUIRE(a.blocks[i].state == b.blocks[i].state);
    }
}

// Follows both timelines, and returns the number of events that are in both.
std::uint64_t compare_in_windows(const Timeline& part, const Timeline& whole) {
    const RecordedDevices devices(whole);
    RecordedState state(devices);
    RecordedState reference(devices);
    std::size_t pool_cursor = 0;
    std::size_t reference_pool_cursor = 0;
    std::uint64_t compared = 0;
    std::uint64_t left_out = 0;
    EventIndex next = 0;  // of the whole timeline
    std::size_t gap = 0;
    std::size_t checkpoint = 0;
    const auto follow_whole = [&] {
        reference.follow(whole.events[next], whole.event_pools.at(next, &reference_pool_cursor));
        ++next;
    };
    for (EventIndex i = 0; i < part.events.size(); ++i) {
        state.follow(part.events[i], part.event_pools.at(i, &pool_cursor));
        if (gap < part.gaps.size() && i >= part.gaps[gap].begin && i <= part.gaps[gap].end) {
            if (i == part.gaps[gap].end) {
                left_out += part.gaps[gap].left_out;
                for (std::uint64_t k = 0; k < part.gaps[gap].left_out; ++k) {
                    follow_whole();
                }
                ++gap;
            }
            continue;
        }
        if (checkpoint < part.checkpoints.size() && i >= part.checkpoints[checkpoint].begin) {
            if (i == part.checkpoints[checkpoint].end) {
                ++checkpoint;
                check_same_memory(state, reference);
                check_same_map(state, reference);
            }
            continue;
        }
        REQUIRE(same_event(part.events[i], whole.events[next]));
        follow_whole();
        check_same_memory(state, reference);
        ++compared;
    }
    check_same_map(state, reference);
    for (; gap < part.gaps.size(); ++gap) {  // the rest of the trace
        left_out += part.gaps[gap].left_out;
    }
    REQUIRE(compared + left_out == whole.events.size());
    REQUIRE(part.events_read() == compared);
    REQUIRE(part.recorded_events() == whole.events.size());
    return compared;
}

std::vector<EventWindow> random_windows(std::uint64_t events, std::mt19937* random) {
    std::vector<std::uint64_t> ends;
    const std::size_t windows = 1 + (*random)() % 3;
    while (ends.size() < 2 * windows) {
        ends.push_back((*random)() % (events + 1));
    }
    std::sort(ends.begin(), ends.end());
    std::vector<EventWindow> result;
    for (std::size_t i = 0; i < ends.size(); i += 2) {
        if (ends[i] < ends[i + 1] && (result.empty() || result.back().end < ends[i])) {
            result.push_back({ends[i], ends[i + 1]});
        }
    }
    return result;
}

}  // namespace

TEST_CASE("in each window, memory is the same as in the whole trace", "[windows]") {
    const TemporaryFolder folder;
    const std::string path = folder.file("t.ftrace");
    std::uint64_t compared = 0;
    for (unsigned seed = 1; seed <= 40; ++seed) {
        CAPTURE(seed);
        (seed % 2 == 0 ? private_pools_trace(seed) : expandable_trace(seed)).save(path);
        const Result<Timeline> whole = read_trace(path);
        REQUIRE(whole.ok());
        std::mt19937 random(seed);
        for (int round = 0; round < 5; ++round) {
            const auto windows = random_windows(whole->events.size(), &random);
            compared += compare_in_windows(read_part(path, windows), *whole);
        }
    }
    CHECK(compared > 40'000);
}

TEST_CASE("without windows, only the tables are read", "[windows]") {
    const TemporaryFolder folder;
    private_pools_trace(1).save(folder.file("t.ftrace"));
    const Timeline part = read_part(folder.file("t.ftrace"), {});
    CHECK(part.events_read() == 0);
    CHECK(part.events_in_file > 500);
}

TEST_CASE("one window with all events is the whole trace, without a gap", "[windows]") {
    const TemporaryFolder folder;
    const std::string path = folder.file("t.ftrace");
    private_pools_trace(2).save(path);
    const Result<Timeline> whole = read_trace(path);
    REQUIRE(whole.ok());
    const Timeline part = read_part(path, {{0, whole->events.size()}});
    CHECK(part.gaps.empty());
    CHECK(part.damage.notes == whole->damage.notes);
    CHECK(compare_in_windows(part, *whole) == whole->events.size());
}

TEST_CASE("a window waits until enough events are left out for its checkpoint", "[windows]") {
    const TemporaryFolder folder;
    TraceWriter trace;
    for (std::uint64_t i = 0; i < 50; ++i) {
        trace.device_alloc(0x100000 * (i + 1), 512, false);
    }
    for (std::uint64_t i = 0; i < 200; ++i) {
        trace.device_alloc(0x100000 * (100 + i), 512, false);
        trace.device_free(0x100000 * (100 + i), false);
    }
    trace.save(folder.file("t.ftrace"));
    const Timeline part = read_part(folder.file("t.ftrace"), {{0, 60}, {62, 300}, {301, 450}});
    REQUIRE(part.gaps.size() == 2);
    CHECK(part.gaps[0].left_out > 50);
    CHECK(part.gaps[0].left_out < 60);
    CHECK(part.gaps[1].left_out > 50);
    const Result<Timeline> whole = read_trace(folder.file("t.ftrace"));
    compare_in_windows(part, *whole);
    CHECK(part.damage.notes.empty());
}

TEST_CASE("no window begins while recording is stopped or within a checkpoint", "[windows]") {
    const TemporaryFolder folder;
    TraceWriter trace;
    const auto mark = [&trace](EventKind kind) {
        EventRecord event = trace.next();
        event.kind = kind;
        trace.event(event);
    };
    const auto churn = [&trace](int pairs) {
        for (int i = 0; i < pairs; ++i) {
            trace.device_alloc(0x900000, 512, false);
            trace.device_free(0x900000, false);
        }
    };
    trace.device_alloc(0x100000, 512, false);
    trace.device_alloc(0x200000, 512, false);
    churn(20);
    mark(EventKind::kRecordingStopped);  // event 42
    mark(EventKind::kRecordingStarted);
    mark(EventKind::kCheckpointBegin);
    trace.device_alloc(0x200000, 512, false);
    trace.device_alloc(0x300000, 512, false);
    mark(EventKind::kCheckpointEnd);  // event 47
    churn(20);
    trace.save(folder.file("t.ftrace"));
    for (std::uint64_t begin = 41; begin <= 47; ++begin) {
        CAPTURE(begin);
        for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{5}}) {
            std::vector<EventWindow> windows = {{begin, 60}};
            if (first != 0) {
                windows.insert(windows.begin(), {0, first});
            }
            const Timeline part = read_part(folder.file("t.ftrace"), windows);
            const bool has_stop = begin <= 42;
            // Before the window and after it, and that of the recording.
            REQUIRE(part.gaps.size() == (has_stop ? 3 : 2));
            RecordedState state{RecordedDevices(part)};
            for (EventIndex i = 0; i < part.events.size(); ++i) {
                state.follow(part.events[i], 0);
                if (!part.checkpoints.empty() && i == part.checkpoints.back().end) {
                    CHECK(state.totals(kDevice).own == 1024);
                }
            }
            REQUIRE(part.checkpoints.size() == (has_stop ? 2 : 1));
            CHECK(part.events[part.checkpoints[0].begin + 1].address ==
                  (has_stop ? 0x100000 : 0x200000));
        }
    }
    // A window that ends there keeps the checkpoint whole.
    for (std::uint64_t end = 43; end <= 47; ++end) {
        const Timeline part = read_part(folder.file("t.ftrace"), {{0, end}});
        CHECK(part.checkpoints.size() == (end < 45 ? 0 : 1));
        CHECK(part.damage.notes.empty());
    }
}
