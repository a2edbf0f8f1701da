// What the recorder cannot keep is counted in the trace.
#include "recorder/control.h"
#include "recorder/recorder.h"
#include "system/thread_state.h"
#include "trace_dump.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

using namespace fragtrace;
using namespace fragtrace::test;
namespace preload = fragtrace::preload;

namespace {

// From now on this process can map only so many bytes more.
void allow_memory(uint64_t more_bytes) {
    uint64_t mapped_pages = 0;
    std::ifstream("/proc/self/statm") >> mapped_pages;
    rlimit limit = {};
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = std::min<rlim_t>(
        limit.rlim_max, mapped_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + more_bytes);
    if (setrlimit(RLIMIT_AS, &limit) != 0) {
        _exit(1);
    }
}

uint64_t count_of(const Dump& dump, const char* fact) {
    const auto found = dump.facts.find(fact);
    return found == dump.facts.end() ? 0 : std::stoull(found->second);
}

}  // namespace

TEST_CASE("live allocations that the table has no memory for are counted, not taken as freed") {
    constexpr uint64_t kHeld = 300'000;
    constexpr uint64_t kRoom_bytes = 8u << 20;  // about a quarter of what the table needs
    const Folder folder;
    const Child child = in_child(folder.path(), [] {
        preload::record(make_event(1, 1));
        allow_memory(kRoom_bytes);
        for (uint64_t i = 2; i <= kHeld; ++i) {
            preload::record(make_event(i << 12, 512));
        }
        preload::stop_recording();
        allow_memory(uint64_t{1} << 40);
        preload::start_recording();
    });
    CHECK(child.status == 0);
    const Dump dump = read_trace(folder.traces().at(0));
    const auto begin =
        std::find_if(dump.events.begin(), dump.events.end(), [](const EventRecord& event) {
            return event.kind == EventKind::kCheckpointBegin;
        });
    const auto listed =
        static_cast<uint64_t>(std::count_if(begin, dump.events.end(), [](const EventRecord& event) {
            return event.kind == EventKind::kDeviceAlloc;
        }));
    CHECK(listed > 0);
    CHECK(count_of(dump, "held.without_room") > 0);
    CHECK(listed + count_of(dump, "held.without_room") + count_of(dump, "lost.ring_full") == kHeld);
}

TEST_CASE("facts that have no room are counted") {
    const Folder folder;
    in_child(folder.path(), [] {
        preload::record(make_event(1, 1));
        const std::string value(1000, 'x');
        for (int i = 0; i < 5000; ++i) {
            preload::record_fact(("fact." + std::to_string(i)).c_str(), value.c_str());
        }
    });
    const Dump dump = read_trace(folder.traces().at(0));
    const auto kept = std::count_if(dump.facts.begin(), dump.facts.end(), [](const auto& fact) {
        return fact.first.starts_with("fact.");
    });
    CHECK(kept > 0);
    CHECK(kept < 5000);
    CHECK(count_of(dump, "lost.facts") == static_cast<uint64_t>(5000 - kept));
}

TEST_CASE("an event from inside the recorder before its start is refused and counted") {
    const Folder folder;
    in_child(folder.path(), [] {
        {
            const preload::RecorderScope inside;
            for (int i = 0; i < 3; ++i) {
                if (preload::record(make_event(1, 1)) != 0) {
                    _exit(1);
                }
            }
        }
        preload::record(make_event(2, 1));
    });
    const Dump dump = read_trace(folder.traces().at(0));
    CHECK(dump.events.size() == 1);
    CHECK(count_of(dump, "lost.before_start") == 3);
}
