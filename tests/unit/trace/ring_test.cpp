// What a killed process left in its ring.
#include "analyzer/trace/event_stream.h"
#include "analyzer/trace/reader.h"
#include "analyzer/trace/trace_outline.h"
#include "tests/support/trace_writer.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::read_file;
using fragtrace::testing::TemporaryFolder;
using fragtrace::testing::TraceWriter;
using fragtrace::testing::write_file;

namespace {

constexpr std::uint32_t kSlots = 64;

// 100 events of which the file has the first `in_file`; the stacks of the later ones are only in
// the ring.
struct Killed {
    TemporaryFolder folder;
    TraceWriter trace;
    std::string path = folder.file("t.ftrace");
    std::string ring_path = folder.file("t.ring");

    explicit Killed(std::uint64_t in_file) {
        std::strncpy(trace.header.ring_path, ring_path.c_str(), sizeof trace.header.ring_path - 1);
        for (std::uint64_t i = 1; i <= 100; ++i) {
            if (i == in_file + 1) {
                trace.flush();
                file = trace.bytes();
            }
            const auto code = trace.code("function" + std::to_string(i), "file.py", 1);
            trace.set_python_stack(trace.python_node(0, code, static_cast<std::uint32_t>(i)));
            trace.device_alloc(0x1000 * i, 512, false);
        }
    }

    void save(std::uint64_t tail, const std::vector<std::uint64_t>& unfinished = {}) {
        write_file(path, file);
        write_file(ring_path, trace.ring(tail, kSlots, unfinished));
    }

    Timeline read(const ReadOptions& options = {.absorb_ring = true}) const {
        auto result = read_trace(path, options);
        REQUIRE(result.ok());
        return std::move(result).value();
    }

    std::string file;
};

void check_complete(const Timeline& timeline, const std::vector<std::uint64_t>& missing = {}) {
    REQUIRE(timeline.events.size() == 100 - missing.size());
    std::uint64_t expected = 1;
    for (const Event& event : timeline.events) {
        while (std::find(missing.begin(), missing.end(), expected) != missing.end()) {
            ++expected;
        }
        REQUIRE(event.address == 0x1000 * expected);
        const Origin& origin = timeline.origins.at(event.origin);
        const StackNode& node = timeline.nodes.at(origin.python_stack);
        REQUIRE(node.line == expected);
        REQUIRE(timeline.codes.at(python_code_id(node.frame)).function ==
                "function" + std::to_string(expected));
        ++expected;
    }
}

}  // namespace

TEST_CASE("the ring of a dead process is absorbed once and for all", "[ring]") {
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

TEST_CASE("who keeps no events takes the ring over as who keeps them all", "[ring]") {
    const std::string facts = "command_line\tpython train.py\n";
    for (const std::uint64_t tail : {60, 45, 40}) {  // the file has events beyond the second
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

TEST_CASE("a process killed before it began its next part was killed, absorbed or not", "[ring]") {
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

TEST_CASE("events that are in both are not doubled", "[ring]") {
    Killed killed(60);
    killed.save(45);  // the drain wrote the chunk but was killed before it moved the tail
    check_complete(killed.read());
    check_complete(killed.read());
}

TEST_CASE("a torn last chunk is made good by the ring", "[ring]") {
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

TEST_CASE("slots that were claimed but not finished are counted", "[ring]") {
    Killed killed(60);
    killed.save(60, {70, 71, 100});
    const Timeline timeline = killed.read();
    CHECK(timeline.damage.events_unfinished == 3);
    check_complete(timeline, {70, 71, 100});
    const Timeline again = killed.read();
    CHECK(again.damage.events_unfinished == 3);
    check_complete(again, {70, 71, 100});
}

TEST_CASE("without leave to write the ring is only read", "[ring]") {
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

TEST_CASE("a missing ring of a killed process is told", "[ring]") {
    Killed killed(60);
    write_file(killed.path, killed.file);
    const Timeline timeline = killed.read();
    CHECK(timeline.events.size() == 60);
    REQUIRE(timeline.damage.notes.size() == 1);
    CHECK(timeline.damage.notes[0].find("is gone") != std::string::npos);
}

TEST_CASE("a ring that is not ours or not sound is ignored and kept", "[ring]") {
    Killed killed(60);
    killed.save(60);
    std::string ring = read_file(killed.ring_path);
    RingHeader header = {};
    std::memcpy(&header, ring.data(), sizeof header);
    const int what = GENERATE(range(0, 8));
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
        default:
            break;
    }
    std::memcpy(ring.data(), &header, sizeof header);
    if (what == 7) {
        ring.resize(100);
    }
    write_file(killed.ring_path, ring);
    const Timeline timeline = killed.read();
    CHECK(timeline.events.size() == 60);
    REQUIRE(timeline.damage.notes.size() == 1);
    CHECK(timeline.damage.notes[0].find("is ignored") != std::string::npos);
    CHECK(std::filesystem::exists(killed.ring_path));
}

TEST_CASE("a ring that went round more than once gives its last events", "[ring]") {
    Killed killed(40);
    killed.save(40);  // 60 events are due, the ring has 64 slots
    check_complete(killed.read());
}

TEST_CASE("facts that only the ring has are read, and survive the ring") {
    Killed killed(60);
    const std::string written = "command_line\tpython train.py\n";
    const std::string late = "device.0.name\tcard\nlost.ring_full\t0\n";
    killed.trace.set_ring_facts(written + late, static_cast<std::uint32_t>(written.size()));
    killed.save(60);
    for (const bool ring_there : {true, false}) {
        CAPTURE(ring_there);
        CHECK(std::filesystem::exists(killed.ring_path) == ring_there);
        const Timeline timeline = killed.read();  // the first time absorbs and removes the ring
        check_complete(timeline);
        CHECK(timeline.fact("device.0.name") == "card");
    }
}
