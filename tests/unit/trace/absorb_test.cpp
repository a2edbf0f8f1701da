// Moving the ring of a dead process into its trace: completely or not at all, and never data of
// another user.
#include "analyzer/trace/absorb_ring.h"
#include "analyzer/trace/ring_reader.h"
#include "analyzer/trace/trace_header.h"
#include "analyzer/trace/trace_outline.h"
#include "analyzer/trace/traced_process.h"
#include "tests/unit/trace/killed.h"

#include <csignal>
#include <cstdio>
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
using namespace fragtrace::testing;

namespace {

// The files of a killed process, opened and read as a report does before it moves the ring.
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
        ring = read_ring(killed.path, trace->header, false);
        REQUIRE(ring.state == RingContents::State::kRead);
        surplus.events.assign(ring.events.begin() + 20, ring.events.end());
        surplus.first_node = 1;
    }

    bool move() const { return absorb_ring(killed.path, trace->file, ring, surplus); }

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

TEST_CASE("a trace that grew after it was read does not absorb its ring", "[absorb]") {
    const BeforeMove files;
    const std::string grown = files.killed.file + std::string(8, 'x');
    {
        std::ofstream file(files.killed.path, std::ios::app);
        file << std::string(8, 'x');
    }
    CHECK_FALSE(files.move());
    files.check_untouched(grown);
}

TEST_CASE("a trace that was cut after it was read does not absorb its ring", "[absorb]") {
    const BeforeMove files;
    std::filesystem::resize_file(files.killed.path, 400);
    CHECK_FALSE(files.move());
    files.check_untouched(files.killed.file.substr(0, 400));
}

TEST_CASE("a trace that cannot absorb its whole ring stays unchanged", "[absorb]") {
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

TEST_CASE("the ring stays while another program holds a lock on the trace", "[absorb]") {
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

TEST_CASE("a ring of another user, or in another user's folder, is not absorbed", "[absorb]") {
    const BeforeMove files;
    if (chown(files.killed.ring_path.c_str(), 12345, 12345) == 0) {  // only root can do this
        const RingContents ring = read_ring(files.killed.path, files.trace->header, false);
        CHECK_FALSE(absorb_ring(files.killed.path, files.trace->file, ring, files.surplus));
        files.check_untouched(files.killed.file);
    }
    const BeforeMove again;
    REQUIRE(chmod(again.killed.folder.file("").c_str(), 0770) == 0);
    again.move();
    CHECK(std::filesystem::exists(again.killed.ring_path));
}

TEST_CASE("a trace says how many events it absorbed from its ring", "[absorb]") {
    Killed killed(60);
    killed.save(45);
    CHECK(killed.read().facts.count("ring.absorbed") == 0);
    CHECK(killed.read().fact("ring.absorbed") == "40");
}

TEST_CASE("a process that lives on without its ring became another program by exec", "[absorb]") {
    const TemporaryFolder folder;
    TraceWriter trace;
    trace.header.pid = static_cast<std::uint32_t>(getpid());
    trace.header.process_start_ticks = start_ticks(getpid());
    snprintf(trace.header.host, sizeof trace.header.host, "%s", this_host().c_str());
    const std::string ring = folder.file("t.ring");
    std::ofstream(ring) << "this process does not map it";
    snprintf(trace.header.ring_path, sizeof trace.header.ring_path, "%s", ring.c_str());
    trace.save(folder.file("t.ftrace"));
    const auto outline = read_outline(folder.file("t.ftrace"));
    REQUIRE(outline.ok());
    CHECK(outline->end.ending == Ending::kExec);
    CHECK_FALSE(outline->end.failed());
}

TEST_CASE("a process is running if id and start match and it is no zombie", "[absorb]") {
    const TemporaryFolder folder;
    TraceWriter trace;
    const auto state = [&] {
        trace.save(folder.file("t.ftrace"));
        const auto file = InputFile::open(folder.file("t.ftrace"));
        REQUIRE(file.ok());
        return process_state(folder.file("t.ftrace"), *file, trace.header);
    };
    trace.header.pid = static_cast<std::uint32_t>(getpid());
    trace.header.process_start_ticks = start_ticks(getpid());
    CHECK(state() == ProcessState::kRuns);
    ++trace.header.process_start_ticks;
    CHECK(state() == ProcessState::kGone);

    const pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    siginfo_t ended = {};
    REQUIRE(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) == 0);
    trace.header.pid = static_cast<std::uint32_t>(child);
    trace.header.process_start_ticks = start_ticks(child);
    CHECK(state() == ProcessState::kGone);
    REQUIRE(waitpid(child, nullptr, 0) == child);
    for (const std::uint32_t nobody : {0U, 0xffffffffU}) {
        trace.header.pid = nobody;
        CHECK(state() == ProcessState::kGone);
    }
}

TEST_CASE("the ring of a process in another container stays", "[absorb]") {
    for (const bool elsewhere : {false, true}) {
        CAPTURE(elsewhere);
        Killed killed(60);
        // As long as the file has no facts, the ring has them.
        std::string facts = std::string(kPidNamespaceFact) + "\t";
        facts += (elsewhere ? "1" : this_pid_namespace()) + "\n";
        facts += std::string(kBootFact) + "\t" + this_boot() + "\n";
        killed.trace.set_ring_facts(facts, 0);
        killed.save(45);
        check_complete(killed.read());
        CHECK(std::filesystem::exists(killed.ring_path) == elsewhere);
        CHECK((killed.read().ending == Ending::kKilled) == !elsewhere);
    }
}

TEST_CASE("an absorbed event keeps its pool and all its flags", "[absorb]") {
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
