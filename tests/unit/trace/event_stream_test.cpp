// One pass over the events of a trace, without keeping them.
#include "analyzer/trace/event_stream.h"

#include "tests/unit/trace/killed.h"

#include <catch2/catch.hpp>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using namespace fragtrace::testing;

namespace {

std::vector<Event> events_of(EventStream* stream) {
    std::vector<Event> events;
    stream->for_each([&events](EventIndex index, const Event& event, const EventRecord&) {
        REQUIRE(index == events.size());
        events.push_back(event);
    });
    return events;
}

}  // namespace

TEST_CASE("what is in the file and in the ring is told once, and nothing is left out", "[stream]") {
    Killed killed(60);
    killed.save(45);
    Result<EventStream> stream = EventStream::open(killed.path);
    REQUIRE(stream.ok());
    for (int pass = 0; pass < 2; ++pass) {
        CHECK(events_of(&*stream).size() == 100);
        CHECK(stream->events_left_out() == 0);
    }
}

TEST_CASE("an event that is in the file twice is told once, and counted", "[stream]") {
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

TEST_CASE("a free whose device is not known is on that of its allocation", "[stream]") {
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
