// Impossible events are left out, whether they come from a file or a ring.
#include "analyzer/trace/possible_event.h"

#include "analyzer/trace/event_stream.h"
#include "analyzer/trace/reader.h"
#include "tests/support/trace_writer.h"

#include <catch2/catch.hpp>

#include <bit>
#include <limits>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::TemporaryFolder;
using fragtrace::testing::TraceWriter;

TEST_CASE("only sizes and addresses up to the largest device are possible") {
    const std::uint64_t most = kMostDeviceBytes;
    CHECK(is_possible(EventKind::kDeviceAlloc, 0x7f0000000000, most, 0));
    CHECK(!is_possible(EventKind::kDeviceAlloc, 0x7f0000000000, most + 1, 0));
    CHECK(!is_possible(EventKind::kDeviceAlloc, kUnknown64 - 4095, 4096, 0));
    CHECK(!is_possible(EventKind::kMap, 0, kUnknown64, 7));
    CHECK(is_possible(EventKind::kBlockAlloc, 0x1000, kUnknown64, 512));
    CHECK(!is_possible(EventKind::kBlockAlloc, 0x1000, 512, kUnknown64));
    CHECK(is_possible(EventKind::kImport, kUnknown64, kUnknown64, 1));
    CHECK(!is_possible(EventKind::kMemoryInfo, 0, 0, most + 1));
    CHECK(is_possible(EventKind::kProgramBlockAlloc, 0x1000, kUnknown64, 512));
    CHECK(!is_possible(EventKind::kProgramBlockAlloc, 0x1000, 512, most + 1));
    // A failed request may have any size.
    CHECK(is_possible(EventKind::kProgramRequestFailed, 0, kUnknown64, 0));
    CHECK(is_possible(EventKind::kAllocRefused, 0, kUnknown64, 2));
    CHECK(is_possible(EventKind::kBlockOutOfMemory, 0, kUnknown64, kUnknown64));
    const auto fraction = [](double value) {
        return is_possible(EventKind::kMemoryFraction, 0, std::bit_cast<std::uint64_t>(value), 0);
    };
    CHECK(fraction(0));
    CHECK(fraction(1));
    CHECK(!fraction(-0.1));
    CHECK(!fraction(1.1));
    CHECK(!fraction(std::numeric_limits<double>::quiet_NaN()));
    CHECK(!fraction(std::numeric_limits<double>::infinity()));
}

TEST_CASE("impossible events of a trace are left out and counted") {
    TemporaryFolder folder;
    TraceWriter trace;
    trace.device_alloc(0x1000000, 1 << 20, true);
    trace.device_alloc(kUnknown64 - 10, 1 << 20, true);
    trace.block_alloc(0x1000000, 512, kUnknown64);
    trace.end(EndReason::kNormal);
    trace.save(folder.file("t.ftrace"));
    const auto timeline = read_trace(folder.file("t.ftrace"));
    REQUIRE(timeline.ok());
    REQUIRE(timeline->events.size() == 3);
    CHECK(timeline->events.kind(0) == EventKind::kDeviceAlloc);
    CHECK(timeline->events.kind(1) == EventKind::kNone);
    CHECK(timeline->events.kind(2) == EventKind::kNone);
    REQUIRE(!timeline->damage.notes.empty());
    CHECK(timeline->damage.notes[0].find("2 events are left out") != std::string::npos);
    auto stream = EventStream::open(folder.file("t.ftrace"));
    REQUIRE(stream.ok());
    std::size_t possible = 0;
    stream->for_each([&](EventIndex, const Event& event, const EventRecord&) {
        possible += event.kind != EventKind::kNone ? 1 : 0;
    });
    CHECK(possible == 1);
}
