// Storage that writes less than requested per call.
#include "recorder/recorder.h"
#include "recorder/session.h"
#include "trace_dump.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <sys/syscall.h>
#include <unistd.h>

using namespace fragtrace;
using namespace fragtrace::test;
namespace preload = fragtrace::preload;

namespace {

std::atomic<size_t> g_most_bytes{SIZE_MAX};  // the largest part that one write accepts

}  // namespace

// Replaces the C library's write() in the whole program.
extern "C" ssize_t write(int fd, const void* data, size_t size_bytes) {
    return syscall(SYS_write, fd, data, std::min(size_bytes, g_most_bytes.load()));
}

extern "C" ssize_t pwrite(int fd, const void* data, size_t size_bytes, off_t at) {
    return syscall(SYS_pwrite64, fd, data, std::min(size_bytes, g_most_bytes.load()), at);
}

TEST_CASE("trace and out-of-memory copy are complete if storage writes small pieces") {
    constexpr uint64_t kEvents = 20000;
    const Folder folder;
    const Child child = in_child(folder.path(),
                                 [] {
                                     g_most_bytes = 1001;
                                     for (uint64_t i = 1; i <= kEvents; ++i) {
                                         preload::record(make_event(i << 20, i));
                                     }
                                     EventRecord refused{};
                                     refused.kind = EventKind::kBlockOutOfMemory;
                                     refused.size = 1;
                                     preload::record(refused);
                                 },
                                 {{"FRAGTRACE_FLIGHT", "on"}});
    CHECK(child.status == 0);
    CHECK(child.errors.empty());
    const std::vector<std::string> traces = folder.traces();
    REQUIRE(traces.size() == 2);
    for (const std::string& trace : traces) {
        const Dump dump = read_trace(trace);
        INFO(trace);
        CHECK(dump.defects == std::vector<std::string>{});
        CHECK(dump.events.size() == kEvents + 1);
        CHECK(dump.end);
    }
}
