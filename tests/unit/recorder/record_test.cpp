// From recorded events to the trace: complete and in order, from any number of threads.
#include "recorder/control.h"
#include "recorder/recorder.h"
#include "recorder/session.h"
#include "trace_dump.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <set>
#include <setjmp.h>
#include <signal.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace fragtrace;
using namespace fragtrace::test;
namespace preload = fragtrace::preload;

namespace {

void record_from_threads(int threads, uint64_t events) {
    std::vector<std::thread> workers;
    for (int t = 0; t < threads; ++t) {
        workers.emplace_back([t, events] {
            for (uint64_t i = 0; i < events; ++i) {
                preload::record(make_event((uint64_t(t) << 32) + i, i * 512));
            }
        });
    }
    for (std::thread& worker : workers) {
        worker.join();
    }
}

void require_contiguous(const Dump& dump, size_t events) {
    REQUIRE(dump.events.size() == events);
    for (size_t i = 0; i < events; ++i) {
        REQUIRE(dump.events[i].sequence == i + 1);
    }
}

__attribute__((noinline)) uint32_t stack_from(int depth) {
    if (depth == 0) {
        return preload::capture_stacks().native;
    }
    const uint32_t node = stack_from(depth - 1);
    asm volatile("" ::: "memory");
    return node;
}

// Hooks that call each other, `depth` deep. Returns which of them were the outermost.
__attribute__((noinline)) std::vector<bool> hook_calls(int depth, void (*innermost)()) {
    const preload::HookScope scope;
    if (depth == 1) {
        innermost();
        return {scope.outermost()};
    }
    std::vector<bool> outermost = hook_calls(depth - 1, innermost);
    outermost.insert(outermost.begin(), scope.outermost());
    return outermost;
}

}  // namespace

TEST_CASE("every event of every thread is in the file, in order") {
    const Folder folder;
    in_child(folder.path(), [] { record_from_threads(8, 8000); });
    REQUIRE(folder.traces().size() == 1);
    const Dump dump = read_trace(folder.traces()[0]);
    CHECK(dump.defects.empty());
    CHECK(dump.has_trailer);
    CHECK(dump.end == EndReason::kNormal);
    require_contiguous(dump, 8 * 8000);  // fewer than ring slots: none may be lost
    // Per thread: nothing is missing or swapped, and the contents are as recorded.
    std::vector<uint64_t> next(8, 0);
    for (const EventRecord& event : dump.events) {
        const uint64_t t = event.address >> 32;
        REQUIRE(t < 8);
        REQUIRE((event.address & 0xffffffff) == next[t]);
        REQUIRE(event.size == next[t] * 512);
        REQUIRE(event.kind == EventKind::kDeviceAlloc);
        REQUIRE(event.stream == kStreamUnknown);
        ++next[t];
    }
    CHECK(dump.facts.count("lost.ring_full") == 0);
    std::set<uint32_t> thread_ids;
    for (const EventRecord& event : dump.events) {
        thread_ids.insert(event.thread);
    }
    CHECK(thread_ids.size() == 8);
}

TEST_CASE("threads that arrive while the session starts lose nothing") {
    for (int round = 0; round < 5; ++round) {
        const Folder folder;
        in_child(folder.path(), [] { record_from_threads(16, 1); });
        REQUIRE(folder.traces().size() == 1);
        require_contiguous(read_trace(folder.traces()[0]), 16);
    }
}

TEST_CASE("a start or stop during another thread's start of the session takes effect") {
    // The call can meet any part of the start.
    for (int delay_us = 0; delay_us < 600; delay_us += 50) {
        const auto meet = [delay_us](bool (*call)()) {
            std::thread other([] { preload::record(make_event(1, 1)); });
            while (__atomic_load_n(&preload::g_session.state, __ATOMIC_ACQUIRE) == preload::kIdle) {
                std::this_thread::yield();
            }
            std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
            const bool done = call();
            preload::record(make_event(2, 1));
            other.join();
            if (!done) {
                _exit(1);
            }
        };
        const auto recorded = [](const Folder& folder, uint64_t address) {
            for (const std::string& trace : folder.traces()) {
                for (const EventRecord& event : read_trace(trace).events) {
                    if (event.kind == EventKind::kDeviceAlloc && event.address == address) {
                        return true;
                    }
                }
            }
            return false;
        };
        INFO(delay_us);
        const Folder stopped;
        REQUIRE(in_child(stopped.path(), [&] { meet(preload::stop_recording); }).status == 0);
        REQUIRE(!recorded(stopped, 2));
        const Folder started;
        REQUIRE(in_child(started.path(),
                         [&] { meet(preload::start_recording); },
                         {{"FRAGTRACE_START", "off"}})
                    .status == 0);
        REQUIRE(recorded(started, 2));
    }
}

TEST_CASE("a full ring loses events only after a bounded wait and counts them") {
    const Folder folder;
    // The drain may not write: the tail cannot advance while writes to the file block.
    const Child child =
        in_child(folder.path(),
                 [] {
                     uint64_t lost = 0;
                     for (uint64_t i = 0; i < 2'000'000; ++i) {
                         lost += preload::record(make_event(i, 1)) == 0 ? 1 : 0;
                     }
                     preload::record_fact("test.lost", std::to_string(lost).c_str());
                 },
                 {{"FRAGTRACE_RING_EVENTS", "64"}, {"FRAGTRACE_COMPRESSION", "19"}});
    CHECK(child.status == 0);
    const Dump dump = read_trace(folder.traces()[0]);
    const uint64_t lost = std::stoull(dump.facts.at("test.lost"));
    CHECK(dump.events.size() == 2'000'000 - lost);
    require_contiguous(dump, 2'000'000 - lost);
    if (lost != 0) {
        CHECK(dump.facts.at("lost.ring_full") == std::to_string(lost));
        CHECK(child.errors.find("events were lost") != std::string::npos);
    } else {
        CHECK(child.errors.empty());
    }
}

TEST_CASE("64 threads that only record lose no events while storage keeps up") {
    const Folder folder;
    const Child child = in_child(folder.path(), [] { record_from_threads(64, 12500); });
    CHECK(child.status == 0);
    CHECK(child.errors.empty());
    require_contiguous(read_trace(folder.traces()[0]), 800000);
}

TEST_CASE("native stacks share their outer frames", "[native-stacks]") {
    const Folder folder;
    in_child(folder.path(), [] {
        for (int depth : {3, 3, 9}) {
            EventRecord event = make_event(1, 1);
            event.native_stack = stack_from(depth);
            preload::record(event);
        }
    });
    const Dump dump = read_trace(folder.traces()[0]);
    REQUIRE(dump.facts.at("stacks.native") == "on");
    REQUIRE(dump.events.size() == 3);
    const auto depth_of = [&](uint32_t node) {
        int depth = 0;
        for (; node != 0; node = dump.nodes.at(node).parent) {
            REQUIRE(dump.nodes[node].parent < node);
            REQUIRE(dump.nodes[node].frame != 0);
            ++depth;
        }
        return depth;
    };
    CHECK(dump.events[0].native_stack != 0);
    CHECK(dump.events[0].native_stack == dump.events[1].native_stack);
    CHECK(depth_of(dump.events[2].native_stack) == depth_of(dump.events[0].native_stack) + 6);
    CHECK(!dump.modules.empty());
    CHECK(dump.modules[0].find("recorder_tests") != std::string::npos);
}

TEST_CASE("an event from a signal handler that interrupts the recorder is refused and counted") {
    const Folder folder;
    in_child(folder.path(), [] {
        static volatile bool stop = false;
        static uint64_t accepted = 0;
        preload::record(make_event(1, 1));
        signal(SIGALRM, [](int) { accepted += preload::record(make_event(2, 2)) != 0 ? 1 : 0; });
        ualarm(200, 200);
        uint64_t own = 1;
        for (uint64_t i = 0; i < 300'000 && !stop; ++i) {
            EventRecord event = make_event(3, 3);
            event.native_stack = preload::capture_stacks().native;
            own += preload::record(event) != 0 ? 1 : 0;
        }
        ualarm(0, 0);
        usleep(1000);  // the thread sanitizer delivers a signal at a later call
        preload::record_fact("test.accepted", std::to_string(own + accepted).c_str());
    });
    const Dump dump = read_trace(folder.traces()[0]);
    CHECK(dump.defects.empty());
    require_contiguous(dump, std::stoull(dump.facts.at("test.accepted")));
    CHECK(dump.facts.count("lost.reentrant") == 1);
}

TEST_CASE("no event of blocks below FRAGTRACE_MIN_BYTES is recorded") {
    const Folder folder;
    in_child(
        folder.path(),
        [] {
            preload::record(make_event(1, 512));
            for (const uint64_t bytes : {4095u, 4096u, 4097u}) {
                EventRecord block = make_event(bytes, bytes);
                for (const EventKind kind :
                     {EventKind::kBlockAlloc, EventKind::kBlockFree, EventKind::kPendingEvent}) {
                    block.kind = kind;
                    block.extra = bytes;
                    preload::record(block);
                }
            }
        },
        {{"FRAGTRACE_MIN_BYTES", "4096"}});
    REQUIRE(folder.traces().size() == 1);
    std::vector<std::pair<uint64_t, EventKind>> found;
    for (const EventRecord& event : read_trace(folder.traces()[0]).events) {
        found.emplace_back(event.address, event.kind);
    }
    CHECK(found == std::vector<std::pair<uint64_t, EventKind>>{{1, make_event(1, 1).kind},
                                                               {4096, EventKind::kBlockAlloc},
                                                               {4096, EventKind::kBlockFree},
                                                               {4096, EventKind::kPendingEvent},
                                                               {4097, EventKind::kBlockAlloc},
                                                               {4097, EventKind::kBlockFree},
                                                               {4097, EventKind::kPendingEvent}});
}

TEST_CASE("events keep their own thread and time, counted from the session's start") {
    const Folder folder;
    const Child child = in_child(folder.path(), [] {
        preload::record(make_event(1, 512));
        const uint64_t start_ns = preload::g_session.start_monotonic_ns;
        EventRecord event = make_event(2, 512);
        event.thread = 77;
        event.time_ns = start_ns + 12345;
        preload::record(event);
        event.time_ns = start_ns - 1;
        preload::record(event);
    });
    const std::vector<EventRecord> events = read_trace(folder.traces().at(0)).events;
    REQUIRE(events.size() == 3);
    CHECK(events[0].thread == static_cast<uint32_t>(child.pid));
    CHECK(events[1].thread == 77);
    CHECK(events[1].time_ns == 12345);
    CHECK(events[2].time_ns == 0);
}

TEST_CASE("the ring's slots are rounded up to a power of two") {
    for (const auto& [asked, made] : {std::pair("4096", "4096"), std::pair("4097", "8192")}) {
        const Folder folder;
        in_child(folder.path(),
                 [] { preload::record(make_event(1, 512)); },
                 {{"FRAGTRACE_RING_EVENTS", asked}});
        CHECK(read_trace(folder.traces().at(0)).facts["options.ring_events"] == made);
    }
}

TEST_CASE("facts from before and during the session are in the trace") {
    const Folder folder;
    in_child(folder.path(), [] {
        preload::record_fact("early", "one\ttwo\nthree\\");
        preload::record(make_event(1, 1));
        preload::record_fact("late", "first");
        preload::record_fact("late", "second");
    });
    const Dump dump = read_trace(folder.traces()[0]);
    CHECK(dump.facts.at("early") == "one\\ttwo\\nthree\\\\");
    CHECK(dump.facts.at("late") == "second");
    CHECK(dump.facts.count("command_line") == 1);
    CHECK(dump.facts.count("environment.FRAGTRACE_OUTPUT") == 1);
}

TEST_CASE("switched off, the recorder leaves no file") {
    const Folder folder;
    in_child(folder.path(),
             [] {
                 if (preload::recording_enabled() || preload::record(make_event(1, 1)) != 0) {
                     _exit(1);
                 }
             },
             {{"FRAGTRACE_OFF", "1"}});
    CHECK(folder.traces().empty());
}

TEST_CASE("every call keeps the host's errno") {
    const Folder folder;
    const Child child = in_child(folder.path(), [] {
        errno = 1234;
        preload::record(make_event(1, 1));
        preload::capture_stacks();
        preload::record_fact("a", "b");
        preload::finish(EndReason::kNormal, true);
        if (errno != 1234) {
            _exit(1);
        }
    });
    CHECK(child.status == 0);
}

TEST_CASE("a longjmp out of a hook does not silence its thread") {
    static jmp_buf back;
    if (setjmp(back) == 0) {
        // Like an exception of another interposer: no destructor runs.
        hook_calls(2, [] { longjmp(back, 1); });
        FAIL("came back");
    }
    const auto nothing = [] {};
    CHECK(hook_calls(3, nothing) == std::vector<bool>{true, false, false});
    CHECK(hook_calls(1, nothing) == std::vector<bool>{true});
}
