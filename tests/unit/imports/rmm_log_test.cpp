// RMM's CSV log becomes a timeline of blocks. The lines have the format of RMM's source:
// "%t,%H:%M:%S.%f,ACTION,%p,%zu,STREAM".
#include "tests/unit/imports/import_file.h"

using namespace fragtrace;
using namespace fragtrace::analyzer;

namespace {

const std::string kHeader = "Thread,Time,Action,Pointer,Size,Stream\n";

std::string log_of(std::string_view lines) {
    return kHeader + std::string(lines);
}

}  // namespace

TEST_CASE("each line of an RMM log becomes an event of its block", "[imports]") {
    const Timeline timeline =
        timeline_of(log_of("4711,13:45:02.000100,allocate,0x1000,1000,0\n"
                           "4712,13:45:02.000300,allocate,0x2000,512,0x55d0c0ffee00\n"
                           "4711,13:45:02.000400,free,0x1000,1000,0\n"
                           "4711,13:45:03.000100,allocate failure,(nil),1073741824,0\n"));
    CHECK(events_of(timeline) ==
          std::vector<std::string>{
              "alloc 4096 1000", "alloc 8192 512", "free 4096", "oom 1073741824"});
    CHECK(timeline.events[0].size_bytes == 1000);
    CHECK(timeline.events[0].time_ns == 0);
    CHECK(timeline.events[1].time_ns == 200'000);
    CHECK(timeline.events[3].time_ns == 1'000'000'000);
    CHECK(timeline.streams == std::vector<std::uint64_t>{0, 0x55d0c0ffee00});
    CHECK(timeline.origins[timeline.events[1].origin].thread == 4712);
    CHECK(timeline.partner[0] == 2);
    CHECK(timeline.fact("import") == "RMM log");
    CHECK(timeline.start_unix_ns == 0);
    CHECK(timeline.damage.notes.empty());
}

TEST_CASE("lines that the logger of RMM 26.10 wrote are read", "[imports]") {
    const Timeline timeline =
        timeline_of(log_of("19611,19:28:01.568915,allocate,0x7f3c00000000,1000,0\n"
                           "19611,19:28:01.568923,allocate,0x7f3c00000400,2000,0\n"
                           "19611,19:28:01.568933,free,0x7f3c00000000,1000,0\n"
                           "19611,19:28:01.569054,allocate failure,(nil),2199023255552,0\n"
                           "19611,19:28:01.569116,allocate,0x7f3c00002800,0,0\n"));
    CHECK(timeline.events.size() == 4);
    CHECK(timeline.events[3].time_ns == 139'000);
    CHECK(timeline.damage.notes.empty());
}

TEST_CASE("logs of older RMM releases are read", "[imports]") {
    const Timeline timeline =
        timeline_of(log_of("1,13:45:02:000100,allocate,0x1000,512,94713498\n"
                           "1,13:45:02:000101,free,0x1000,512,94713498\r\n"));
    CHECK(events_of(timeline) == std::vector<std::string>{"alloc 4096 512", "free 4096"});
    CHECK(timeline.streams == std::vector<std::uint64_t>{94713498});
}

TEST_CASE("an RMM log that runs past midnight goes on the next day", "[imports]") {
    const Timeline timeline =
        timeline_of(log_of("1,23:59:59.999999,allocate,0x1000,512,0\n"
                           "1,00:00:00.000001,free,0x1000,512,0\n"));
    CHECK(timeline.events[1].time_ns == 2000);
    CHECK(timeline.damage.notes.empty());
}

TEST_CASE("an RMM log whose clock runs backwards keeps the order of its lines", "[imports]") {
    const Timeline timeline =
        timeline_of(log_of("1,12:00:10.000000,allocate,0x1000,512,0\n"
                           "1,12:00:05.000000,free,0x1000,512,0\n"
                           "1,12:00:11.000000,allocate,0x1000,512,0\n"));
    CHECK(timeline.events[1].time_ns == 0);
    CHECK(timeline.events[2].time_ns == 1'000'000'000);
    REQUIRE(timeline.damage.notes.size() == 1);
    CHECK(
        timeline.damage.notes[0].starts_with("the clock runs backwards by more than 1 s 1 time;"));
}

TEST_CASE("the name of an RMM log may name the device", "[imports]") {
    const std::string log = log_of("1,12:00:00.000000,allocate,0x1000,512,0\n");
    CHECK(timeline_of(log, "rmm_log.dev3.csv").events[0].device == 3);
    CHECK(timeline_of(log, "rmm_log.csv").events[0].device == 0);
    CHECK(timeline_of(log, "rmm_log.dev99.csv").events[0].device == 0);
}

TEST_CASE("requests of 0 bytes are no blocks", "[imports]") {
    const Timeline timeline =
        timeline_of(log_of("1,12:00:00.000000,allocate,(nil),0,0\n"
                           "1,12:00:00.000000,free,(nil),0,0\n"
                           "1,12:00:00.000000,allocate,(nil),512,0\n"));
    CHECK(timeline.events.empty());
    REQUIRE(timeline.damage.notes.size() == 1);
    CHECK(timeline.damage.notes[0] == "1 entry of blocks without an address is left out");
}

TEST_CASE("a cut last line of an RMM log is left out and said", "[imports]") {
    const Timeline timeline =
        timeline_of(log_of("1,12:00:00.000000,allocate,0x1000,512,0\n"
                           "1,12:00:00.000001,fr"));
    CHECK(timeline.events.size() == 1);
    CHECK(timeline.damage.notes ==
          std::vector<std::string>{"the last line is cut; it is left out"});
}

TEST_CASE("frees of unknown blocks and blocks at addresses in use are counted", "[imports]") {
    const Timeline timeline =
        timeline_of(log_of("1,12:00:00.000000,free,0x9000,512,0\n"
                           "1,12:00:00.000001,allocate,0x1000,512,0\n"
                           "1,12:00:00.000002,allocate,0x1000,512,0\n"));
    CHECK(timeline.damage.frees_without_alloc == 1);
    CHECK(timeline.damage.allocs_over_live == 1);
}

TEST_CASE("a line that no RMM writes is refused with its number", "[imports]") {
    const char* const bad = GENERATE("1,12:00:00.000000,allocate,0x1000,512",      // too few fields
                                     "1,12:00:00.000000,allocate,0x1000,512,0,0",  // too many
                                     "1,12:00:00.000000,allocate,0x1000,-512,0",   // negative size
                                     "1,12:00:00.000000,allocate,0x1000,1e3,0",    // no integer
                                     "1,12:00:00.000000,allocate,4096,512,0",      // no pointer
                                     "1,12:00:00.000000,allocate,0x11111111111111111,512,0",
                                     "1,12:00:00.000000,allocate,0x1000,99999999999999999999999,0",
                                     "1,24:00:00.000000,allocate,0x1000,512,0",
                                     "1,12:00:00,allocate,0x1000,512,0",
                                     "x,12:00:00.000000,allocate,0x1000,512,0",
                                     "1,12:00:00.000000,resize,0x1000,512,0");
    const std::string message =
        refusal_of(log_of("1,12:00:00.000000,allocate,0x1000,512,0\n" + std::string(bad) + "\n"));
    CHECK(message.starts_with("line 3 is no entry of an RMM log: '"));
    CHECK(
        message.ends_with("Give the file that RMM's logging_resource_adaptor wrote "
                          "(RMM_LOG_FILE)."));
}

TEST_CASE("a line without end is refused", "[imports]") {
    CHECK(
        refusal_of(log_of(std::string(1000, 'x'))).starts_with("line 2 is longer than 512 bytes"));
}

TEST_CASE("impossible sizes of an RMM log are left out and counted", "[imports]") {
    const Timeline timeline =
        timeline_of(log_of("1,12:00:00.000000,allocate,0x1000,18446744073709551615,0\n"
                           "1,12:00:00.000000,allocate,0xffffffffffffff00,512,0\n"));
    CHECK(events_of(timeline).empty());
    REQUIRE(timeline.damage.notes.size() == 1);
    CHECK(timeline.damage.notes[0].starts_with("2 events are left out"));
}

TEST_CASE("the content decides what a file is, not its name", "[imports]") {
    const testing::TemporaryFolder folder;
    const std::string log = log_of("1,12:00:00.000000,allocate,0x1000,512,0\n");
    testing::write_file(folder.file("log.pickle"), log);
    testing::write_file(folder.file("log.csv"), log);
    testing::write_file(folder.file("other.csv"), "a,b\n1,2\n");
    CHECK(import_name(folder.file("log.pickle")) == "RMM log");
    CHECK_FALSE(is_snapshot(folder.file("log.pickle")));
    CHECK(import_name(folder.file("other.csv")).empty());
    std::error_code error;
    CHECK(recordings_in(folder.file("."), &error).size() == 2);
}
