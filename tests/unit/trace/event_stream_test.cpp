// One pass over the events of a trace without keeping them in memory.
#include "analyzer/trace/event_stream.h"

#include "analyzer/trace/builder.h"
#include "analyzer/trace/reader.h"
#include "tests/unit/trace/killed.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using namespace fragtrace::testing;

namespace {

std::vector<Event> events_of(EventStream* stream) {
    std::vector<Event> events;
    stream->for_each([&events](std::uint64_t index, const Event& event, const EventRecord&) {
        REQUIRE(index == events.size());
        events.push_back(event);
    });
    return events;
}

}  // namespace

TEST_CASE("events in both file and ring are delivered once, and none is left out", "[stream]") {
    Killed killed(60);
    killed.save(45);
    Result<EventStream> stream = EventStream::open(killed.path);
    REQUIRE(stream.ok());
    for (int pass = 0; pass < 2; ++pass) {
        CHECK(events_of(&*stream).size() == 100);
        CHECK(stream->events_left_out() == 0);
    }
}

TEST_CASE("an event that is twice in the file is delivered once and counted", "[stream]") {
    const TemporaryFolder folder;
    TraceWriter trace;
    EventRecord event = trace.next();
    event.kind = EventKind::kMark;
    for (const std::uint64_t sequence : {1u, 2u, 2u, 3u}) {
        event.sequence = sequence;
        trace.event(event);
        trace.flush();
    }
    trace.save(folder.file("t.ftrace"));
    Result<EventStream> stream = EventStream::open(folder.file("t.ftrace"));
    REQUIRE(stream.ok());
    CHECK(events_of(&*stream).size() == 3);
    CHECK(stream->events_left_out() == 1);
}

TEST_CASE("times never decrease in event order, for both readers", "[stream]") {
    const TemporaryFolder folder;
    const std::string path = folder.file("t.ftrace");
    TraceWriter trace;
    EventRecord event = trace.next();
    event.kind = EventKind::kMark;
    constexpr std::uint64_t kFar = std::uint64_t{1} << 40;  // too far apart for the packed form
    for (int chunk = 0; chunk < 3; ++chunk) {
        for (const std::uint64_t time_ns : {50u, 20u, 20u, 60u, 59u}) {
            ++event.sequence;
            event.time_ns = time_ns + (chunk == 1 ? kFar : 0);
            event.thread = static_cast<std::uint32_t>(time_ns);
            trace.event(event);
        }
        trace.flush();
    }
    trace.save(path);
    const Result<Timeline> timeline = read_trace(path);
    Result<EventStream> stream = EventStream::open(path);
    REQUIRE(timeline.ok());
    REQUIRE(stream.ok());
    const std::vector<Event> events = events_of(&*stream);
    REQUIRE(events.size() == 15);
    REQUIRE(timeline->events.size() == 15);
    std::vector<std::uint64_t> expected = {50, 50, 50, 60, 60};
    for (const std::uint64_t time_ns : {50u, 50u, 50u, 60u, 60u}) {
        expected.push_back(kFar + time_ns);
    }
    expected.insert(expected.end(), 5, kFar + 60);
    for (std::size_t i = 0; i < 15; ++i) {
        CHECK(events[i].time_ns == expected[i]);
        CHECK(timeline->events[i].time_ns == expected[i]);
    }
}

TEST_CASE("a free with an unknown device gets the device of its allocation", "[stream]") {
    const TemporaryFolder folder;
    TraceWriter trace;
    trace.set_device(3);
    trace.device_alloc(0x1000, 512, false);
    trace.set_device(kDeviceUnknown);
    trace.device_free(0x1000, false);
    trace.device_free(0x1000, false);
    trace.save(folder.file("t.ftrace"));
    Result<EventStream> stream = EventStream::open(folder.file("t.ftrace"));
    REQUIRE(stream.ok());
    const std::vector<Event> events = events_of(&*stream);
    REQUIRE(events.size() == 3);
    CHECK(events[1].device == 3);
    CHECK(events[2].device == kUnknownDevice);
}

TEST_CASE("whatever ends something gets the device of what it ends, as in a timeline", "[stream]") {
    constexpr std::pair<EventKind, EventKind> kPairs[] = {
        {EventKind::kAsyncAlloc, EventKind::kDeviceFree},
        {EventKind::kManagedAlloc, EventKind::kDeviceFree},
        {EventKind::kPhysicalCreate, EventKind::kPhysicalRelease},
        {EventKind::kAddressReserve, EventKind::kAddressFree},
        {EventKind::kArrayAlloc, EventKind::kArrayFree},
        {EventKind::kHostAlloc, EventKind::kHostFree},
        {EventKind::kPoolCreate, EventKind::kPoolDestroy},
        {EventKind::kModuleLoad, EventKind::kModuleUnload},
    };
    const TemporaryFolder folder;
    TraceWriter trace;
    std::uint16_t device = 0;
    for (const auto& [begin, end] : kPairs) {
        trace.set_device(++device);
        trace.simple(begin, 0x100000u * device, 4096, 0);
    }
    trace.set_device(kDeviceUnknown);
    device = 0;
    for (const auto& [begin, end] : kPairs) {
        trace.simple(end, 0x100000u * ++device, 4096, 0);
    }
    trace.save(folder.file("t.ftrace"));
    Result<EventStream> stream = EventStream::open(folder.file("t.ftrace"));
    REQUIRE(stream.ok());
    const std::vector<Event> events = events_of(&*stream);
    const auto timeline = read_trace(folder.file("t.ftrace"));
    REQUIRE(timeline.ok());
    REQUIRE(events.size() == 2 * std::size(kPairs));
    REQUIRE(timeline->events.size() == events.size());
    for (std::size_t i = 0; i < events.size(); ++i) {
        INFO(i);
        CHECK(events[i].device == timeline->events[i].device);
    }
}

TEST_CASE("a free of what a checkpoint does not list has no device, as in a timeline", "[stream]") {
    const TemporaryFolder folder;
    TraceWriter trace;
    trace.set_device(3);
    trace.device_alloc(0x1000, 512, false);
    trace.set_device(kDeviceUnknown);
    for (const EventKind marker : {EventKind::kRecordingStopped,
                                   EventKind::kRecordingStarted,
                                   EventKind::kCheckpointBegin,
                                   EventKind::kCheckpointEnd}) {
        trace.simple(marker, 0, 0, 0);
    }
    trace.device_free(0x1000, false);
    trace.save(folder.file("t.ftrace"));
    const auto timeline = read_trace(folder.file("t.ftrace"));
    Result<EventStream> stream = EventStream::open(folder.file("t.ftrace"));
    REQUIRE(timeline.ok());
    REQUIRE(stream.ok());
    CHECK(events_of(&*stream).back().device == kUnknownDevice);
    CHECK(timeline->events[5].device == kUnknownDevice);
}

TEST_CASE("stacks of events that only the ring has are known", "[stream]") {
    Killed killed(60);
    killed.save(60);
    Result<EventStream> stream = EventStream::open(killed.path);
    REQUIRE(stream.ok());
    check_complete(stream->timeline([&stream](TimelineBuilder* builder) {
        stream->for_each([builder](std::uint64_t, const Event&, const EventRecord& record) {
            builder->add_event(record);
        });
    }));
}

TEST_CASE("a part has no note about the ring of a later part", "[stream]") {
    Killed killed(60);
    killed.trace.end(EndReason::kContinued);
    killed.trace.flush();
    killed.file = killed.trace.bytes();
    killed.save(60);
    std::string ring = read_file(killed.ring_path);
    RingHeader header = {};
    std::memcpy(&header, ring.data(), sizeof header);
    header.part = 1;
    std::memcpy(ring.data(), &header, sizeof header);
    write_file(killed.ring_path, ring);
    const Timeline timeline = killed.read({.absorb_ring = false});
    Result<EventStream> stream = EventStream::open(killed.path);
    REQUIRE(stream.ok());
    const Timeline tables = stream->tables();
    CHECK(timeline.ending == Ending::kContinued);
    CHECK(tables.ending == Ending::kContinued);
    CHECK(timeline.damage.notes.empty());
    CHECK(tables.damage.notes.empty());
}

TEST_CASE("missing numbers and impossible events give the same notes as in a timeline",
          "[stream]") {
    const TemporaryFolder folder;
    const std::string path = folder.file("t.ftrace");
    TraceWriter trace;
    EventRecord event = trace.next();
    for (const std::uint64_t sequence : {1u, 2u, 5u, 6u, 9u}) {
        event.kind = sequence == 9 ? EventKind::kRecordingStarted  // it may skip numbers
                                   : EventKind::kDeviceAlloc;
        event.address = 0x1000 * sequence;
        event.size = sequence == 6 ? ~std::uint64_t{0} : 512;
        event.sequence = sequence;
        trace.event(event);
        trace.flush();
    }
    trace.end(EndReason::kNormal);
    trace.save(path);
    const Result<Timeline> timeline = read_trace(path);
    Result<EventStream> stream = EventStream::open(path);
    REQUIRE(timeline.ok());
    REQUIRE(stream.ok());
    CHECK(events_of(&*stream).size() == 5);
    const std::vector<std::string> notes = stream->notes_of_pass();
    CHECK(notes ==
          std::vector<std::string>{"1 event is left out: no device has such sizes or addresses",
                                   "2 of 7 sequence numbers have no event in the trace"});
    for (const std::string& note : notes) {
        CAPTURE(note);
        CHECK(std::count(timeline->damage.notes.begin(), timeline->damage.notes.end(), note) == 1);
    }
}
