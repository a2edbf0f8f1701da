// What a killed process left in its ring.
#include "analyzer/trace/reader.h"
#include "analyzer/trace/ring.h"
#include "analyzer/trace/trace_header.h"
#include "analyzer/trace/trace_outline.h"
#include "tests/support/trace_writer.h"

#include <catch2/catch.hpp>

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

namespace {

// A killed process's files, opened and read as a report does before it moves the ring.
struct BeforeMove {
    Killed killed{60};
    std::optional<OpenTrace> trace;
    RingContents ring;
    RingSurplus surplus;

    BeforeMove() {
        killed.save(60);
        Result<OpenTrace> opened = open_trace(killed.path);
        REQUIRE(opened.ok());
        trace.emplace(std::move(opened).value());
        ring = read_ring(trace->header, false);
        REQUIRE(ring.state == RingContents::State::kRead);
        TimelineBuilder builder(trace->file.size());
        surplus.events.assign(ring.events.begin() + 20, ring.events.end());
        surplus.first_node = 1;
    }

    bool move() const {
        return absorb_ring(killed.path, trace->file, killed.ring_path, ring, surplus);
    }

    void check_untouched(const std::string& file) const {
        CHECK(read_file(killed.path) == file);
        CHECK(std::filesystem::exists(killed.ring_path));
    }
};

std::uint64_t start_ticks(pid_t pid) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string text{std::istreambuf_iterator<char>(stat), {}};
    std::istringstream fields(text.substr(text.rfind(')') + 2));
    std::string field;
    for (int number = 3; number <= 22; ++number) {
        fields >> field;
    }
    return std::stoull(field);
}

}  // namespace

TEST_CASE("a trace that another appended to since it was read does not take its ring in", "[ring]") {
    const BeforeMove files;
    const std::string grown = files.killed.file + std::string(8, 'x');
    {
        std::ofstream file(files.killed.path, std::ios::app);
        file << std::string(8, 'x');
    }
    CHECK_FALSE(files.move());
    files.check_untouched(grown);
}

TEST_CASE("a trace that was cut since it was read does not take its ring in", "[ring]") {
    const BeforeMove files;
    std::filesystem::resize_file(files.killed.path, 400);
    CHECK_FALSE(files.move());
    files.check_untouched(files.killed.file.substr(0, 400));
}

TEST_CASE("a trace that cannot take all of its ring is what it was", "[ring]") {
    const BeforeMove files;
    rlimit former = {};
    getrlimit(RLIMIT_FSIZE, &former);
    const rlimit now = {files.killed.file.size() + 100, former.rlim_max};
    const auto handler = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &now);
    const bool moved = files.move();
    setrlimit(RLIMIT_FSIZE, &former);
    signal(SIGXFSZ, handler);
    CHECK_FALSE(moved);
    files.check_untouched(files.killed.file);
}

TEST_CASE("while another program reads the trace under a lock, the ring stays", "[ring]") {
    const BeforeMove files;
    const int other = open(files.killed.path.c_str(), O_RDONLY | O_CLOEXEC);
    REQUIRE(flock(other, LOCK_SH) == 0);
    CHECK_FALSE(files.move());
    files.check_untouched(files.killed.file);
    REQUIRE(flock(other, LOCK_UN) == 0);
    close(other);
    CHECK(files.move());
    CHECK_FALSE(std::filesystem::exists(files.killed.ring_path));
}

TEST_CASE("the ring of another user stays, and so does one in a folder of others", "[ring]") {
    const BeforeMove files;
    if (chown(files.killed.ring_path.c_str(), 12345, 12345) == 0) {  // only root may
        const RingContents ring = read_ring(files.trace->header, false);
        CHECK_FALSE(absorb_ring(files.killed.path,
                                files.trace->file,
                                files.killed.ring_path,
                                ring,
                                files.surplus));
        files.check_untouched(files.killed.file);
    }
    const BeforeMove again;
    REQUIRE(chmod(again.killed.folder.file("").c_str(), 0770) == 0);
    again.move();
    CHECK(std::filesystem::exists(again.killed.ring_path));
}

TEST_CASE("a trace says how many events it took in from its ring", "[ring]") {
    Killed killed(60);
    killed.save(45);
    CHECK(killed.read().facts.count("ring.absorbed") == 0);
    CHECK(killed.read().fact("ring.absorbed") == "40");
}

TEST_CASE("a process runs if its number and its start are those of the trace, and it is no zombie",
          "[ring]") {
    TraceHeader header = {};
    header.pid = static_cast<std::uint32_t>(getpid());
    header.process_start_ticks = start_ticks(getpid());
    CHECK(process_runs(header));
    ++header.process_start_ticks;
    CHECK_FALSE(process_runs(header));

    const pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    siginfo_t ended = {};
    REQUIRE(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) == 0);
    header.pid = static_cast<std::uint32_t>(child);
    header.process_start_ticks = start_ticks(child);
    CHECK_FALSE(process_runs(header));
    REQUIRE(waitpid(child, nullptr, 0) == child);
}

TEST_CASE("an event of the ring keeps its pool and all of its flags", "[ring]") {
    TemporaryFolder folder;
    TraceWriter trace;
    const std::string ring_path = folder.file("t.ring");
    std::strncpy(trace.header.ring_path, ring_path.c_str(), sizeof trace.header.ring_path - 1);
    trace.device_alloc(0x1000000, 1 << 20, true);
    trace.flush();
    const std::string file = trace.bytes();
    trace.fact("pool.7", "pytorch 0,3");
    EventRecord block = trace.next();
    block.kind = EventKind::kBlockAlloc;
    block.address = 0x1000000;
    block.size = block.extra = 512;
    block.flags = kFlagOfGraph;
    block.pool = 7;
    trace.event(block);
    write_file(folder.file("t.ftrace"), file);
    write_file(ring_path, trace.ring(1, kSlots));
    for (const bool ring_there : {true, false}) {
        CAPTURE(ring_there);
        const auto timeline = read_trace(folder.file("t.ftrace"), {.absorb_ring = true});
        REQUIRE(timeline.ok());
        REQUIRE(timeline->events.size() == 2);
        CHECK(timeline->event_pools.at(1) == 7);
        CHECK(timeline->events[1].flags == kFlagOfGraph);
    }
}
