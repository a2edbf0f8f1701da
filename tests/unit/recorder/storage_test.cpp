// Full disks, missing folders, and file names that are already used.
#include "recorder/drain_thread.h"
#include "recorder/recorder.h"
#include "recorder/safe_names.h"
#include "recorder/session.h"
#include "skip.h"
#include "trace_dump.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <random>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace fragtrace;
using namespace fragtrace::test;
namespace preload = fragtrace::preload;

namespace {

// The name of a trace of this program, without its ending.
std::string trace_name(pid_t process) {
    utsname system = {};
    uname(&system);
    char host[128];
    preload::Text text(host, sizeof host);
    preload::add_host(&text, system.nodename);
    return std::string("recorder_tests.") + host + '.' + std::to_string(process);
}

}  // namespace

TEST_CASE("the trace is private, its folder is created, existing files are not overwritten") {
    const Folder folder;
    const std::string deep = folder.path() + "/a/b";
    const Child child = in_child(deep, [&] {
        const std::string taken = deep + "/" + trace_name(getpid()) + ".ftrace";
        mkdir((folder.path() + "/a").c_str(), 0777);
        mkdir(deep.c_str(), 0777);
        close(open(taken.c_str(), O_CREAT | O_WRONLY, 0600));
        preload::record(make_event(1, 1));
    });
    const std::string base = deep + "/" + trace_name(child.pid);

    struct stat first {};

    struct stat second {};

    REQUIRE(stat((base + ".ftrace").c_str(), &first) == 0);
    CHECK(first.st_size == 0);
    REQUIRE(stat((base + ".2.ftrace").c_str(), &second) == 0);
    CHECK((second.st_mode & 0777) == 0600);
    CHECK(read_trace(base + ".2.ftrace").events.size() == 1);
}

TEST_CASE("parts of an earlier recording with the same name are not overwritten") {
    for (const char* left :
         {".part2.ftrace", ".oom1.ftrace", ".part3.ftrace.tmp", ".2.part9.ftrace"}) {
        const Folder folder;
        const Child child = in_child(
            folder.path(),
            [&] {
                const std::string taken = folder.path() + "/" + trace_name(getpid()) + left;
                close(open(taken.c_str(), O_CREAT | O_WRONLY, 0600));
                for (uint64_t i = 0; i < 200000; ++i) {
                    preload::record(make_event(i * 4096, i));
                    preload::record(make_event(i * 4096, i));
                }
            },
            {{"FRAGTRACE_SIZE_LIMIT", "1MiB"}, {"FRAGTRACE_COMPRESSION", "0"}});
        const std::string base = folder.path() + "/" + trace_name(child.pid);

        struct stat kept {};

        REQUIRE(stat((base + left).c_str(), &kept) == 0);
        CHECK(kept.st_size == 0);
        // A part with a number belongs to another recording and does not block any name.
        const std::string expected = base + (left[1] == '2' ? ".part" : ".2.part");
        const std::vector<std::string> traces = folder.traces();
        CHECK(std::count_if(traces.begin(), traces.end(), [&](const std::string& trace) {
                  return trace.find(expected) == 0 && trace != base + left;
              }) != 0);
    }
}

TEST_CASE("a process killed during its start leaves no file or a readable trace",
          "[unnamed-files]") {
    const Folder probe;
    const int unnamed = open(probe.path().c_str(), O_WRONLY | O_TMPFILE, 0600);
    if (unnamed < 0) {
        skip("needs a temporary folder that can hold files without a name");
    }
    close(unnamed);
    // The range of the moments depends on the machine: half of the kills should find a trace.
    uint32_t longest_us = 2000;
    int with_trace = 0;
    for (uint32_t moment = 0; moment < 300; ++moment) {
        const Folder folder;
        const bool in_parts = moment % 2 == 1;
        const pid_t pid = fork();
        if (pid == 0) {
            setenv("FRAGTRACE_OUTPUT", folder.path().c_str(), 1);
            setenv("FRAGTRACE_RING_DIRECTORY", folder.path().c_str(), 1);
            setenv("FRAGTRACE_SIZE_LIMIT", in_parts ? "1MiB" : "0", 1);
            preload::record(make_event(1, 1));
            for (;;) {
                pause();
            }
        }
        usleep(longest_us * (moment % 100) / 100);
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
        const std::vector<std::string> traces = folder.traces();
        REQUIRE(traces.size() <= 1);
        for (const std::string& trace : traces) {
            const Dump dump = read_trace(trace);
            REQUIRE(dump.defects == std::vector<std::string>{});
            REQUIRE(dump.header.pid == static_cast<uint32_t>(pid));
        }
        with_trace += static_cast<int>(traces.size());
        longest_us = std::clamp(longest_us + (traces.empty() ? 100u : -100u), 500u, 200000u);
    }
    CHECK(with_trace > 0);
    CHECK(with_trace < 300);
}

TEST_CASE("an unusable folder is reported at the start and the end, the host continues") {
    const Folder folder;
    const std::string file = folder.path() + "/file";
    close(open(file.c_str(), O_CREAT | O_WRONLY, 0600));
    const Child child = in_child(file + "/sub", [] {
        for (int i = 0; i < 10; ++i) {
            preload::record(make_event(1, 1));
        }
    });
    CHECK(child.status == 0);
    const std::string why = "cannot create a trace in " + file + "/sub: not a directory";
    CHECK(child.errors == "fragtrace: no trace yet: " + why +
                              "; tried again while the program runs\n"
                              "fragtrace: nothing was recorded: " +
                              why + " (10 events)\n");
}

TEST_CASE("a folder that becomes usable later gets the trace from its first event") {
    const Folder folder;
    const std::string file = folder.path() + "/traces";
    close(open(file.c_str(), O_CREAT | O_WRONLY, 0600));
    const Child child = in_child(file, [&] {
        for (uint64_t i = 1; i <= 10; ++i) {
            preload::record(make_event(i, 1));
        }
        unlink(file.c_str());
        preload::record(make_event(11, 1));
    });
    CHECK(child.status == 0);
    CHECK(child.errors.find("fragtrace: no trace yet: ") == 0);
    CHECK(std::count(child.errors.begin(), child.errors.end(), '\n') == 1);
    const std::string name = file + "/" + trace_name(child.pid) + ".ftrace";
    const Dump dump = read_trace(name);
    CHECK(dump.events.size() == 11);
    CHECK(dump.defects.empty());
    CHECK(dump.facts.count("lost.before_start") == 0);
}

TEST_CASE("a trace removed or cut while it is written starts again and reports the loss") {
    for (const bool cut : {false, true}) {
        const Folder folder;
        const Child child = in_child(folder.path(), [&] {
            for (uint64_t i = 1; i <= 1000; ++i) {
                preload::record(make_event(i << 20, 1));
            }
            preload::finish(EndReason::kNormal, false);  // so that these events are in the file
            preload::g_session.ended = false;
            const std::string trace = folder.traces()[0];
            if (cut ? truncate(trace.c_str(), 100) != 0 : unlink(trace.c_str()) != 0) {
                _exit(1);
            }
            for (uint64_t i = 1001; i <= 1500; ++i) {
                preload::record(make_event(i << 20, 1));
            }
        });
        CHECK(child.status == 0);
        CHECK(child.errors.find("somebody removed the trace, or cut it") != std::string::npos);
        Dump dump = read_trace(folder.path() + "/" + trace_name(child.pid) +
                               (cut ? ".2.ftrace" : ".ftrace"));
        INFO(child.errors);
        CHECK(dump.defects == std::vector<std::string>{});
        REQUIRE(dump.facts["lost.removed"] == "1000");
        CHECK(dump.events.back().address == uint64_t{1500} << 20);
        // 500 of its own. Allocations from before are listed in its checkpoint.
        CHECK(dump.events.size() >= 500);
    }
}

TEST_CASE("the events lost with a removed trace are counted until the next trace begins") {
    constexpr uint64_t kRing = 4096;
    constexpr uint64_t kEvents = 50000;
    const Folder folder;
    const Child child =
        in_child(folder.path(),
                 [&] {
                     preload::record(make_event(1, 1));
                     preload::finish(EndReason::kNormal, false);
                     preload::g_session.ended = false;
                     unlink(folder.traces()[0].c_str());
                     for (uint64_t i = 2; i <= kEvents; ++i) {  // more than fit in the ring
                         preload::record(make_event(i << 20, 1));
                     }
                 },
                 {{"FRAGTRACE_RING_EVENTS", std::to_string(kRing)}});
    CHECK(child.status == 0);
    Dump dump = read_trace(folder.traces()[0]);
    CHECK(dump.defects == std::vector<std::string>{});
    const uint64_t lost = std::stoull(dump.facts["lost.removed"]);
    CHECK(lost >= kEvents - kRing);
    CHECK(lost < kEvents);
}

TEST_CASE("a temporary error loses nothing while the ring has room") {
    const Folder folder;
    const Child child = in_child(folder.path(), [] {
        preload::record(make_event(1, 1));
        const rlimit before{RLIM_INFINITY, RLIM_INFINITY};
        const rlimit limit{1000, RLIM_INFINITY};
        setrlimit(RLIMIT_FSIZE, &limit);
        for (uint64_t i = 2; i <= 20000; ++i) {  // more than the drain writes at once
            preload::record(make_event(i, 1));
        }
        usleep(300000);
        setrlimit(RLIMIT_FSIZE, &before);
    });
    CHECK(child.status == 0);
    const Dump dump = read_trace(folder.traces()[0]);
    CHECK(dump.events.size() == 20000);
    CHECK(dump.facts.count("lost.write_failed") == 0);
    CHECK(dump.facts.count("trace.write_errors") == 1);
}

TEST_CASE("a file size limit stops the writing, not the host") {
    const Folder folder;
    const Child child = in_child(
        folder.path(),
        [] {
            const rlimit limit{200 * 1024, 200 * 1024};
            setrlimit(RLIMIT_FSIZE, &limit);
            srand(1);
            for (uint64_t i = 0; i < 300000; ++i) {
                preload::record(make_event(uint64_t(rand()) << 20, rand()));
            }
        },
        {{"FRAGTRACE_RING_EVENTS", "4096"}});  // some batches fit, even if the drain is late
    CHECK(child.status == 0);
    CHECK(child.errors.find("events were lost; writing failed: file size limit") !=
          std::string::npos);
    const Dump dump = read_trace(folder.traces()[0]);
    CHECK(dump.defects.empty());
    CHECK(!dump.events.empty());
    CHECK(dump.end == EndReason::kNormal);
    CHECK(dump.has_trailer);
    const uint64_t lost = std::stoull(dump.facts.at("lost.write_failed"));
    CHECK(dump.events.size() + lost +
              (dump.facts.count("lost.ring_full") ? std::stoull(dump.facts.at("lost.ring_full"))
                                                  : 0) ==
          300000);
}

namespace {

// On a busy machine the drain is late. The written data must not depend on that.
void flush_at_times(uint64_t event) {
    if (event % 8192 == 0) {
        preload::flush_now(&preload::g_session);
    }
}

// Events that do not compress, so that the file grows.
void record_noise(uint64_t events) {
    std::mt19937_64 random(1);
    for (uint64_t i = 0; i < events; ++i) {
        const uint64_t address = random();
        preload::record(make_event(address, random()));
        EventRecord free{};
        free.kind = EventKind::kDeviceFree;
        free.address = address;
        preload::record(free);
        flush_at_times(i);
    }
}

// Blocks that stay live.
void record_held(uint64_t blocks) {
    std::mt19937_64 random(2);
    for (uint64_t i = 0; i < blocks; ++i) {
        const uint64_t address = random();
        preload::record(make_event(address, random()));
        flush_at_times(i);
    }
}

uint64_t bytes_of(const std::vector<std::string>& files) {
    uint64_t bytes = 0;
    for (const std::string& file : files) {
        struct stat found {};

        bytes += stat(file.c_str(), &found) == 0 ? static_cast<uint64_t>(found.st_size) : 0;
    }
    return bytes;
}

}  // namespace

TEST_CASE("a trace that reaches half of its limit continues in parts within the limit") {
    constexpr uint64_t kLimit_bytes = 2u << 20;
    for (const bool blocked : {false, true}) {
        const Folder folder;
        const Child child = in_child(folder.path(), [&] {
            preload::record(make_event(1, 1));
            preload::g_session.options.size_limit_bytes = kLimit_bytes;
            if (blocked) {  // the next part cannot be created
                mkdir((folder.path() + "/" + trace_name(getpid()) + ".part2.ftrace.tmp").c_str(),
                      0700);
            }
            record_noise(400000);
        });
        CHECK(child.status == 0);
        const std::vector<std::string> traces = folder.traces();
        CHECK(bytes_of(traces) <= kLimit_bytes + (64u << 10));
        const std::string base = folder.path() + "/" + trace_name(child.pid);
        if (blocked) {
            CHECK(traces == std::vector<std::string>{base + ".ftrace"});
            CHECK(child.errors.find("events were lost; writing failed: file size limit") !=
                  std::string::npos);
            CHECK(read_trace(traces[0]).defects.empty());
        } else {
            CHECK(child.errors.empty());
            REQUIRE(traces.size() == 2);
            const Dump last = read_trace(std::max(traces[0], traces[1]));
            CHECK(last.defects.empty());
            CHECK(last.header.part > 2);
            CHECK(last.end == EndReason::kNormal);
        }
    }
}

TEST_CASE("no part begins if live allocations fill half of the limit") {
    constexpr uint64_t kLimit_bytes = 2u << 20;
    const Folder folder;
    const Child child = in_child(folder.path(), [&] {
        preload::record(make_event(1, 1));
        preload::Session* session = preload::running_session();
        session->options.size_limit_bytes = kLimit_bytes;
        std::mt19937_64 random(1);
        for (uint64_t i = 0; i < 200000; ++i) {
            EventRecord event = make_event(random(), random());
            event.native_stack = session->stacks.intern(0, i / 64 * 16, [] { return 0u; });
            preload::record(event);
            if (i > 55000) {
                event.kind = EventKind::kDeviceFree;
                preload::record(event);
            }
            flush_at_times(i);
        }
    });
    CHECK(child.status == 0);
    CHECK(child.errors.find("events were lost; writing failed: file size limit") !=
          std::string::npos);
    CHECK(bytes_of(folder.traces()) <= kLimit_bytes + (64u << 10));
    REQUIRE(folder.traces().size() == 1);
    const Dump dump = read_trace(folder.traces()[0]);
    CHECK(dump.defects == std::vector<std::string>{});
    CHECK(std::stoi(dump.facts.at("trace.write_errors")) > 0);
    for (const EventRecord& event : dump.events) {
        REQUIRE(event.native_stack < dump.nodes.size());
    }
}

TEST_CASE("parts still have room for events if live allocations fill much of the limit") {
    constexpr uint64_t kLimit_bytes = 4u << 20;
    const Folder folder;
    const Child child = in_child(folder.path(), [&] {
        preload::record(make_event(1, 1));
        preload::g_session.options.size_limit_bytes = kLimit_bytes;
        record_held(60000);
        record_noise(200000);
    });
    CHECK(child.status == 0);
    CHECK(bytes_of(folder.traces()) <= kLimit_bytes + (64u << 10));
    const Dump last = read_trace(folder.traces().back());
    CHECK(last.defects == std::vector<std::string>{});
    CHECK(child.errors.empty());
    CHECK(last.header.part > 2);
    CHECK(last.header.part <= 12);  // each part has an eighth of the limit for events
}

TEST_CASE(
    "the flight recorder copies at a library's refused request, not before an allocator's retry") {
    for (const bool of_allocator : {true, false}) {
        const Folder folder;
        const Child child = in_child(folder.path(),
                                     [&] {
                                         preload::record(make_event(1, 1));
                                         EventRecord refused{};
                                         refused.kind = EventKind::kAllocRefused;
                                         refused.flags = of_allocator ? kFlagFromAllocator : 0;
                                         preload::record(refused);
                                         preload::flush_now(&preload::g_session);
                                     },
                                     {{"FRAGTRACE_FLIGHT", "on"}});
        CHECK(child.status == 0);
        CHECK(folder.traces().size() == (of_allocator ? 1 : 2));
    }
}

TEST_CASE("the space to keep free is never used, and the loss is reported") {
    const Folder folder;
    const Child child =
        in_child(folder.path(), [] { record_noise(100000); }, {{"FRAGTRACE_KEEP_FREE", "99%"}});
    CHECK(child.status == 0);
    CHECK(child.errors.find("no space left on device except the reserved space") !=
          std::string::npos);
    CHECK(bytes_of(folder.traces()) < 100000);
    const Dump dump = read_trace(folder.traces()[0]);
    CHECK(dump.defects.empty());
    CHECK(std::stoull(dump.facts.at("lost.write_failed")) > 100000);
}

TEST_CASE(
    "a copy that would use the space to keep free is not written, and the reason is reported") {
    for (const bool at_end : {false, true}) {
        const Folder folder;
        const Child child = in_child(folder.path(),
                                     [&] {
                                         record_noise(100000);
                                         preload::Session* session = &preload::g_session;
                                         preload::flush_now(session);
                                         session->file.keep_free(99, 0);
                                         for (int i = 0; i < 3 && !at_end; ++i) {
                                             if (preload::write_copy(session, "call")) {
                                                 _exit(1);
                                             }
                                         }
                                         session->file.keep_free(at_end ? 99 : 0, 0);
                                     },
                                     {{"FRAGTRACE_FLIGHT", "2MiB"}, {"FRAGTRACE_KEEP_FREE", "0"}});
        CHECK(child.status == 0);
        const std::vector<std::string> traces = folder.traces();
        REQUIRE(traces.size() == (at_end ? 2 : 1));  // the parts stay if they cannot be joined
        const std::string last = std::max(traces.front(), traces.back());
        CHECK(child.errors ==
              "fragtrace: no events were lost; a copy of the last parts could not be written: "
              "no space left on device except the reserved space (FRAGTRACE_KEEP_FREE); "
              "the trace is in " +
                  last + "\n");
        for (const std::string& trace : traces) {
            CHECK(read_trace(trace).defects.empty());
        }
        const std::filesystem::directory_iterator files(folder.path());
        CHECK(std::distance(begin(files), end(files)) == static_cast<long>(traces.size()));
    }
}

TEST_CASE("invalid settings are named") {
    const Folder folder;
    in_child(folder.path(),
             [] { preload::record(make_event(1, 1)); },
             {{"FRAGTRACE_STACK_DEPTH", "a lot"}});
    CHECK(read_trace(folder.traces()[0]).facts.at("options.rejected") == "FRAGTRACE_STACK_DEPTH");
}
