// Where a ring may lie, and how much of the memory rings take.
#include "recorder.h"
#include "skip.h"
#include "trace_dump.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

using namespace fragtrace;
using namespace fragtrace::test;
namespace preload = fragtrace::preload;

TEST_CASE("without a place for the ring the recorder works, and says what that costs") {
    const Folder folder;
    in_child(folder.path(),
             [] { preload::record(make_event(1, 1)); },
             {{"FRAGTRACE_RING_DIRECTORY", "/nonexistent"}});
    const Dump dump = read_trace(folder.traces()[0]);
    CHECK(dump.events.size() == 1);
    CHECK(dump.header.ring_path[0] == '\0');
    CHECK(dump.facts.at("ring.storage").find("not crash-safe") != std::string::npos);
}

TEST_CASE("rings of ended processes do not pile up without bound", "[ring-bytes]") {
    const Folder folder;
    const Folder rings;

    struct statvfs place {};

    REQUIRE(statvfs(rings.path().c_str(), &place) == 0);
    // The share of any file system that rings may take: an eighth, at most 4 GiB.
    const uint64_t share_bytes =
        std::min<uint64_t>(place.f_blocks * place.f_frsize / 8, uint64_t{4} << 30);
    const std::string name = rings.path() + "/fragtrace-0-1-1.ring";
    const int fd = open(name.c_str(), O_CREAT | O_WRONLY, 0600);
    REQUIRE(fd >= 0);
    const int taken =
        fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(share_bytes + (1u << 20)));
    close(fd);
    if (taken != 0) {
        skip("no room for a file of an eighth of the temporary folder's file system");
    }
    in_child(folder.path(),
             [] { preload::record(make_event(1, 1)); },
             {{"FRAGTRACE_RING_DIRECTORY", rings.path()}});
    const Dump dump = read_trace(folder.traces()[0]);
    CHECK(dump.events.size() == 1);
    CHECK(dump.header.ring_path[0] == '\0');
}

TEST_CASE("empty files with the names of rings, which anybody can make, keep no ring away") {
    const Folder folder;
    const Folder rings;
    for (int i = 0; i < 400; ++i) {
        const std::string name = rings.path() + "/fragtrace-0-1-" + std::to_string(i) + ".ring";
        const int fd = open(name.c_str(), O_CREAT | O_WRONLY, 0600);
        REQUIRE(fd >= 0);
        close(fd);
    }
    in_child(folder.path(),
             [] { preload::record(make_event(1, 1)); },
             {{"FRAGTRACE_RING_DIRECTORY", rings.path()}});
    CHECK(read_trace(folder.traces()[0]).header.ring_path[0] == '/');
}
