// The ring that a killed process left.
#include "analyzer/trace/event_stream.h"
#include "analyzer/trace/reader.h"
#include "analyzer/trace/ring_reader.h"
#include "analyzer/trace/trace_outline.h"
#include "tests/unit/trace/killed.h"

#include <catch2/catch.hpp>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using namespace fragtrace::testing;

TEST_CASE("the ring of a dead process is absorbed exactly once", "[ring]") {
    Killed killed(60);
    killed.save(60);
    const Timeline first = killed.read();
    CHECK(first.ending == Ending::kKilled);
    CHECK(first.damage.notes.empty());
    check_complete(first);
    CHECK(!std::filesystem::exists(killed.ring_path));
    const Timeline again = killed.read();
    CHECK(again.ending == Ending::kKilled);
    CHECK(again.damage.notes.empty());
    CHECK(again.damage.bytes_unreadable == 0);
    check_complete(again);
}

TEST_CASE("absorbing a ring without keeping events writes the same file", "[ring]") {
    const std::string facts = "command_line\tpython train.py\n";
    for (const std::uint64_t tail : {60, 45, 40}) {  // 45: the file has later events
        CAPTURE(tail);
        Killed killed(tail == 40 ? 40 : 60);
        killed.trace.set_ring_facts(facts, 0);
        killed.save(tail, {70, 71});
        killed.read();
        const std::string expected = read_file(killed.path);
        killed.save(tail, {70, 71});
        const auto taken_over = take_over_ring(killed.path);
        REQUIRE(taken_over.ok());
        CHECK(*taken_over == (tail == 40 ? 58 : 38));
        CHECK(!std::filesystem::exists(killed.ring_path));
        CHECK(read_file(killed.path) == expected);
        const auto again = take_over_ring(killed.path);
        REQUIRE(again.ok());
        CHECK(*again == std::nullopt);
        CHECK(read_file(killed.path) == expected);
    }
}

TEST_CASE("a process killed before its next part counts as killed, with or without ring",
          "[ring]") {
    Killed killed(60);
    killed.trace.end(EndReason::kContinued);
    killed.trace.flush();
    killed.file = killed.trace.bytes();
    killed.save(60);
    for (const bool ring_there : {true, false}) {
        CAPTURE(ring_there);
        CHECK(std::filesystem::exists(killed.ring_path) == ring_there);
        const auto outline = read_outline(killed.path);
        REQUIRE(outline.ok());
        CHECK(outline->end.ending == Ending::kKilled);
        CHECK(killed.read().ending == Ending::kKilled);
    }
}

TEST_CASE("events in both file and ring are not counted twice", "[ring]") {
    Killed killed(60);
    killed.save(45);  // the drain wrote the chunk, but was killed before it moved the tail
    check_complete(killed.read());
    check_complete(killed.read());
}

TEST_CASE("a torn last chunk is restored from the ring", "[ring]") {
    Killed killed(60);
    killed.trace.flush();
    const std::string whole = killed.trace.bytes();
    killed.file = whole.substr(0, killed.file.size() + 45);
    killed.save(60);
    const Timeline timeline = killed.read();
    check_complete(timeline);
    CHECK(timeline.damage.bytes_unreadable == 45);
    const Timeline again = killed.read();
    check_complete(again);
    CHECK(again.damage.chunks_unreadable == 1);
}

TEST_CASE("claimed but unfinished slots are counted", "[ring]") {
    Killed killed(60);
    killed.save(60, {70, 71, 100});
    const Timeline timeline = killed.read();
    CHECK(timeline.damage.events_unfinished == 3);
    check_complete(timeline, {70, 71, 100});
    const Timeline again = killed.read();
    CHECK(again.damage.events_unfinished == 3);
    check_complete(again, {70, 71, 100});
}

TEST_CASE("without write permission the ring is only read", "[ring]") {
    Killed killed(60);
    killed.save(60);
    ReadOptions options;
    options.absorb_ring = false;
    check_complete(killed.read(options));
    CHECK(std::filesystem::exists(killed.ring_path));
    CHECK(read_file(killed.path) == killed.file);
    options.use_ring = false;
    CHECK(killed.read(options).events.size() == 60);
}

TEST_CASE("a missing ring of a killed process is reported", "[ring]") {
    Killed killed(60);
    write_file(killed.path, killed.file);
    const Timeline timeline = killed.read();
    CHECK(timeline.events.size() == 60);
    REQUIRE(timeline.damage.notes.size() == 1);
    CHECK(timeline.damage.notes[0].find("is gone") != std::string::npos);
}

TEST_CASE("a foreign or damaged ring is ignored and kept", "[ring]") {
    Killed killed(60);
    killed.save(60);
    std::string ring = read_file(killed.ring_path);
    RingHeader header = {};
    std::memcpy(&header, ring.data(), sizeof header);
    const int what = GENERATE(range(0, 10));
    CAPTURE(what);
    switch (what) {
        case 0:
            header.session[1] ^= 1;
            break;
        case 1:
            header.slot_count = 63;
            break;
        case 2:
            header.slots_offset = ~std::uint64_t{0} - 10;
            break;
        case 3:
            header.node_count = header.node_capacity + 1;
            break;
        case 4:
            header.code_capacity_bytes = 0x7fffffff;
            break;
        case 5:
            header.tail = header.head + 1;
            break;
        case 6:
            header.magic[0] = 'X';
            break;
        case 7:
            header.part = 1;
            break;
        case 8:
            header.facts_bytes_written = header.facts_bytes + 1;
            break;
        default:
            break;
    }
    std::memcpy(ring.data(), &header, sizeof header);
    if (what == 9) {
        ring.resize(100);
    }
    write_file(killed.ring_path, ring);
    const Timeline timeline = killed.read();
    CHECK(timeline.events.size() == 60);
    REQUIRE(timeline.damage.notes.size() == 1);
    CHECK(timeline.damage.notes[0].find("is ignored") != std::string::npos);
    CHECK(std::filesystem::exists(killed.ring_path));
}

TEST_CASE("a ring that was overwritten several times gives its last events", "[ring]") {
    Killed killed(40);
    killed.save(40);  // 60 events are missing in the file, the ring has 64 slots
    check_complete(killed.read());
}

TEST_CASE("a ring copied together with its trace is read from the same folder", "[ring]") {
    Killed killed(60);
    killed.save(60);
    const std::filesystem::path folder = std::filesystem::path(killed.path).parent_path() / "copy";
    std::filesystem::create_directory(folder);
    const auto move_there = [&folder](const std::string& path) {
        std::filesystem::path there = folder / std::filesystem::path(path).filename();
        std::filesystem::rename(path, there);
        return there;
    };
    const std::filesystem::path trace = move_there(killed.path);
    const std::filesystem::path ring = move_there(killed.ring_path);
    const auto timeline = read_trace(trace, {.absorb_ring = true});
    REQUIRE(timeline.ok());
    check_complete(*timeline);
    CHECK_FALSE(std::filesystem::exists(ring));
}

TEST_CASE("facts that only the ring has are read and absorbed") {
    Killed killed(60);
    const std::string written = "command_line\tpython train.py\n";
    const std::string late = "device.0.name\tcard\nlost.ring_full\t0\n";
    killed.trace.set_ring_facts(written + late, static_cast<std::uint32_t>(written.size()));
    killed.save(60);
    for (const bool ring_there : {true, false}) {
        CAPTURE(ring_there);
        CHECK(std::filesystem::exists(killed.ring_path) == ring_there);
        const Timeline timeline = killed.read();  // the first read absorbs and removes the ring
        check_complete(timeline);
        CHECK(timeline.fact("device.0.name") == "card");
    }
}

TEST_CASE("counts of losses are read from a ring, but not from one of version 0.1.0", "[ring]") {
    const bool is_old = GENERATE(false, true);
    Killed killed(60);
    killed.trace.fact("lost.removed", "7");  // more than the ring has
    killed.trace.flush();
    killed.file = killed.trace.bytes();
    killed.save(100);
    std::string ring = read_file(killed.ring_path);
    RingHeader header = {};
    std::memcpy(&header, ring.data(), sizeof header);
    for (unsigned i = 0; i < kRingLossCount; ++i)
        header.losses[i] = 1 + i;
    if (is_old) {
        header.header_bytes = offsetof(RingHeader, losses);
    }
    std::memcpy(ring.data(), &header, sizeof header);
    write_file(killed.ring_path, ring);
    const Timeline timeline = killed.read();
    for (unsigned i = 0; i < kRingLossCount; ++i) {
        const std::string key = kRingLosses[i];
        CAPTURE(key, is_old);
        CHECK(timeline.fact(key) == (key == "lost.removed" ? "7"
                                     : is_old              ? ""
                                                           : std::to_string(1 + i)));
    }
}

TEST_CASE("overwritten slots are neither events nor unfinished", "[ring]") {
    Killed killed(20);
    killed.save(20);  // 80 events are missing in the file, the ring has 64 slots
    const Timeline timeline = killed.read();
    CHECK(timeline.events.size() == 20 + kSlots);
    CHECK(timeline.damage.events_unfinished == 0);
}

TEST_CASE("sequence numbers skipped by a start of recording are not unfinished events", "[ring]") {
    for (const std::uint64_t set_aside : {std::uint64_t{3}, ~std::uint64_t{0}}) {
        CAPTURE(set_aside);
        TemporaryFolder folder;
        TraceWriter trace;
        const std::string ring_path = folder.file("t.ring");
        std::strncpy(trace.header.ring_path, ring_path.c_str(), sizeof trace.header.ring_path - 1);
        trace.simple(EventKind::kRecordingStopped, 0, 0, 0);
        trace.flush();
        const std::string file = trace.bytes();
        trace.simple(EventKind::kRecordingStarted, 0, set_aside, 0);
        for (int i = 0; i < 5; ++i) {
            trace.device_alloc(0x1000, 512, false);
        }
        write_file(folder.file("t.ftrace"), file);
        write_file(ring_path, trace.ring(1, kSlots, {3, 4, 5, 7}));
        const auto timeline = read_trace(folder.file("t.ftrace"));
        REQUIRE(timeline.ok());
        CHECK(timeline->damage.events_unfinished == (set_aside == 3 ? 1 : 0));
    }
}

TEST_CASE("events that a running process is just writing are not unfinished", "[ring]") {
    Killed killed(60);
    killed.save(60, {99, 100});
    TraceHeader header = {};
    std::memcpy(&header, killed.file.data(), sizeof header);
    CHECK(read_ring(killed.path, header, false).events_unfinished == 2);
    const RingContents ring = read_ring(killed.path, header, true);
    CHECK(ring.events_unfinished == 0);
    CHECK(ring.events.size() == 38);
}

TEST_CASE("code and facts that the trace already has are not read from the ring", "[ring]") {
    Killed killed(60);
    killed.trace.set_ring_facts("host\tone\nlate\ttwo\n", 9);
    killed.save(60);
    TraceHeader header = {};
    std::memcpy(&header, killed.file.data(), sizeof header);
    const RingContents ring = read_ring(killed.path, header, false);
    TimelineBuilder empty(killed.file.size());
    CHECK(add_ring(ring, &empty).code_count == 100);
    const RingSurplus codes = add_ring(ring, &empty);
    CHECK(codes.code_count == 0);
    CHECK(codes.codes.empty());
    CHECK(codes.facts == "late\ttwo\n");
}
