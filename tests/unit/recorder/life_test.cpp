// How processes begin, fork and end.
#include "recorder/recorder.h"
#include "trace_dump.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace fragtrace;
using namespace fragtrace::test;
namespace preload = fragtrace::preload;

TEST_CASE("a process that records nothing leaves no file") {
    const Folder folder;
    in_child(folder.path(), [] {});
    CHECK(folder.traces().empty());
}

TEST_CASE("exit, _exit and a kill are distinguished in the trace") {
    const Folder folder;
    SECTION("exit") {
        in_child(folder.path(), [] { preload::record(make_event(1, 1)); });
        const Dump dump = read_trace(folder.traces()[0]);
        CHECK(dump.end == EndReason::kNormal);
        CHECK(access(dump.header.ring_path, F_OK) != 0);
    }
    SECTION("_exit") {
        const Child child = in_child(folder.path(), [] {
            preload::record(make_event(1, 1));
            _exit(7);
        });
        CHECK(WEXITSTATUS(child.status) == 7);
        const Dump dump = read_trace(folder.traces()[0]);
        CHECK(dump.end == EndReason::kQuickExit);
        CHECK(dump.has_trailer);
        CHECK(dump.events.size() == 1);
        CHECK(access(dump.header.ring_path, F_OK) != 0);
    }
    SECTION("quick_exit runs its handlers") {
        const Child child = in_child(folder.path(), [] {
            preload::record(make_event(1, 1));
            at_quick_exit([] { preload::record(make_event(2, 2)); });
            quick_exit(9);
        });
        CHECK(WEXITSTATUS(child.status) == 9);
        const Dump dump = read_trace(folder.traces()[0]);
        CHECK(dump.end == EndReason::kQuickExit);
        CHECK(dump.events.size() == 2);
    }
    SECTION("killed: the ring has the events that the file lacks") {
        in_child(folder.path(), [] {
            for (uint64_t i = 0; i < 1000; ++i) {
                EventRecord event = make_event(i, 1);
                event.native_stack = preload::capture_stacks().native;
                preload::record(event);
            }
            preload::record_fact("last", "word");
            raise(SIGKILL);
        });
        Dump dump = read_trace(folder.traces()[0]);
        CHECK(dump.defects.empty());
        CHECK(!dump.end);
        CHECK(!dump.has_trailer);
        REQUIRE(absorb_ring(&dump));
        REQUIRE(dump.events.size() == 1000);
        CHECK(dump.facts.at("last") == "word");
        const bool has_stacks = dump.facts.at("stacks.native") == "on";
        for (const EventRecord& event : dump.events) {
            REQUIRE((event.native_stack != 0) == has_stacks);
            REQUIRE((!has_stacks || dump.nodes.at(event.native_stack).frame != 0));
        }
    }
}

TEST_CASE("after a kill at any moment, file and ring have every recorded event") {
    for (int round = 0; round < 8; ++round) {
        const Folder folder;
        int channel[2];
        REQUIRE(pipe(channel) == 0);
        const pid_t pid = fork();
        if (pid == 0) {
            setenv("FRAGTRACE_OUTPUT", folder.path().c_str(), 1);
            for (;;) {
                const uint64_t sequence = preload::record(make_event(round, 1));
                if (sequence % 1000 == 0 && write(channel[1], &sequence, 8) != 8) {
                    abort();
                }
            }
        }
        close(channel[1]);
        uint64_t returned = 0;
        while (returned < 40000 + 7000u * round && read(channel[0], &returned, 8) == 8) {
        }
        kill(pid, SIGKILL);
        while (read(channel[0], &returned, 8) == 8) {
        }
        close(channel[0]);
        waitpid(pid, nullptr, 0);
        Dump dump = read_trace(folder.traces()[0]);
        REQUIRE(absorb_ring(&dump));
        REQUIRE(dump.events.size() >= returned);
        for (size_t i = 0; i < dump.events.size(); ++i) {
            REQUIRE(dump.events[i].sequence == i + 1);
        }
    }
}

TEST_CASE("events after the end still reach the file, which stays readable") {
    const Folder folder;
    in_child(folder.path(), [] {
        preload::record(make_event(1, 1));
        preload::finish(EndReason::kNormal, true);
        for (uint64_t i = 0; i < 100; ++i) {
            preload::record(make_event(i, 2));
        }
        syscall(SYS_exit_group, 0);  // none of our code runs after this
    });
    const Dump dump = read_trace(folder.traces()[0]);
    CHECK(dump.defects.empty());
    CHECK(dump.events.size() == 101);
    CHECK(dump.events_after_end == 100);
}

TEST_CASE("events between the end and the last handler stay in the ring after a kill") {
    const Folder folder;
    in_child(folder.path(), [] {
        preload::record(make_event(1, 1));
        preload::finish(EndReason::kNormal, false);
        for (uint64_t i = 0; i < 100; ++i) {
            preload::record(make_event(i, 2));
        }
        syscall(SYS_exit_group, 0);
    });
    Dump dump = read_trace(folder.traces()[0]);
    REQUIRE(absorb_ring(&dump));
    CHECK(dump.defects.empty());
    CHECK(dump.events.size() == 101);
}

TEST_CASE("the final end writes the events that followed the first end, with an index") {
    const Folder folder;
    in_child(folder.path(), [] {
        preload::record(make_event(1, 1));
        preload::finish(EndReason::kNormal, false);
        for (uint64_t i = 0; i < 100; ++i) {
            preload::record(make_event(i, 2));
        }
        preload::finish(EndReason::kNormal, true);
        syscall(SYS_exit_group, 0);
    });
    const Dump dump = read_trace(folder.traces()[0]);
    CHECK(dump.defects.empty());
    CHECK(dump.has_trailer);
    CHECK(dump.events.size() == 101);
}

TEST_CASE("a process that dies while events follow the end leaves a readable file") {
    for (useconds_t round = 0; round < 40; ++round) {
        const Folder folder;
        in_child(folder.path(),
                 [round] {
                     // Many chunks make a long index. The late events have to move it.
                     for (uint64_t i = 0; i < 20'000; ++i) {
                         preload::record(make_event(i, 1));
                     }
                     preload::finish(EndReason::kNormal, true);
                     std::thread([] {
                         for (uint64_t i = 0;; ++i) {
                             preload::record(make_event(i, 2));
                         }
                     }).detach();
                     usleep(1000 + round * 37);
                     syscall(SYS_exit_group, 0);
                 },
                 {{"FRAGTRACE_RING_EVENTS", "64"}});
        const Dump dump = read_trace(folder.traces()[0]);
        CHECK(dump.defects.empty());
    }
}

TEST_CASE("a forked child has its own file and does not touch its parent's") {
    const Folder folder;
    in_child(folder.path(), [] {
        preload::record_fact("shared", "yes");
        preload::record(make_event(1, 1));
        const pid_t pid = fork();
        if (pid == 0) {
            preload::record(make_event(2, 2));
            preload::record(make_event(3, 3));
            _exit(0);
        }
        waitpid(pid, nullptr, 0);
        preload::record(make_event(4, 4));
    });
    const auto traces = folder.traces();
    REQUIRE(traces.size() == 2);
    Dump parent = read_trace(traces[0]);
    Dump child = read_trace(traces[1]);
    if (parent.header.pid == child.header.parent_pid) {
    } else {
        std::swap(parent, child);
    }
    REQUIRE(child.header.parent_pid == parent.header.pid);
    CHECK(parent.end == EndReason::kNormal);
    CHECK(child.end == EndReason::kQuickExit);
    REQUIRE(parent.events.size() == 2);
    CHECK(parent.events[1].size == 4);
    REQUIRE(child.events.size() == 2);
    CHECK(child.events[0].size == 2);
    CHECK(child.events[0].sequence == 1);
    CHECK(child.facts.at("shared") == "yes");
    CHECK(child.header.session[0] != parent.header.session[0]);
}

TEST_CASE("a child of a raw fork system call records nothing and keeps its parent's ring") {
    const Folder folder;
    const Child parent = in_child(folder.path(), [] {
        preload::record(make_event(1, 1));
        const long pid = syscall(SYS_fork);
        if (pid == 0) {
            const bool recorded = preload::record(make_event(2, 2)) != 0;
            _exit(recorded || preload::recording_enabled() ? 1 : 0);
        }
        int status = 1;
        waitpid(static_cast<pid_t>(pid), &status, 0);
        preload::record(make_event(3, 3));
        std::exit(WEXITSTATUS(status));
    });
    CHECK(parent.status == 0);
    REQUIRE(folder.traces().size() == 1);
    const Dump dump = read_trace(folder.traces()[0]);
    CHECK(dump.end == EndReason::kNormal);
    REQUIRE(dump.events.size() == 2);
    CHECK(dump.events[1].size == 3);
}

TEST_CASE("a forked child can be configured not to record") {
    const Folder folder;
    in_child(folder.path(),
             [] {
                 preload::record(make_event(1, 1));
                 const pid_t pid = fork();
                 if (pid == 0) {
                     preload::record(make_event(2, 2));
                     _exit(preload::recording_enabled() ? 1 : 0);
                 }
                 int status = 0;
                 waitpid(pid, &status, 0);
                 _exit(WEXITSTATUS(status));
             },
             {{"FRAGTRACE_FOLLOW_FORK", "0"}});
    CHECK(folder.traces().size() == 1);
}

TEST_CASE("a vfork child whose exec fails does not end its parent's trace") {
    const Folder folder;
    in_child(folder.path(), [] {
        preload::record(make_event(1, 1));
        const pid_t pid = vfork();
        if (pid == 0) {
            _exit(127);
        }
        waitpid(pid, nullptr, 0);
        preload::record(make_event(2, 2));
        raise(SIGKILL);
    });
    Dump dump = read_trace(folder.traces()[0]);
    CHECK(!dump.end);
    CHECK(absorb_ring(&dump));
    CHECK(dump.events.size() == 2);
}

TEST_CASE("children forked from several threads record while the parent continues") {
    const Folder folder;
    in_child(folder.path(), [] {
        for (int i = 0; i < 5; ++i) {
            const pid_t pid = fork();
            if (pid == 0) {
                for (uint64_t e = 0; e < 20000; ++e) {
                    preload::record(make_event(e, 1));
                }
                std::exit(0);
            }
            for (uint64_t e = 0; e < 20000; ++e) {
                preload::record(make_event(e, 2));
            }
        }
        while (wait(nullptr) > 0) {
        }
    });
    const auto traces = folder.traces();
    REQUIRE(traces.size() == 6);
    for (const std::string& path : traces) {
        const Dump dump = read_trace(path);
        CHECK(dump.defects.empty());
        const uint64_t lost = dump.facts.count("lost.ring_full") != 0
                                  ? std::stoull(dump.facts.at("lost.ring_full"))
                                  : 0;  // a busy machine may starve the drain
        const uint64_t events = dump.events.size() + lost;
        CHECK((events == 20000 || events == 100000));
    }
}

TEST_CASE("printing lost events neither blocks nor raises SIGPIPE") {
    const Folder folder;
    const auto lose_with_stderr = [](int descriptor) {
        dup2(descriptor, STDERR_FILENO);
        close(descriptor);
        preload::record(make_event(1, 1));  // the folder cannot be used, so nothing is recorded
        exit(5);
    };
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    SECTION("the pipe has no reader") {
        const Child child = in_child("/dev/null/x", [&] {
            close(ends[0]);
            lose_with_stderr(ends[1]);
        });
        REQUIRE(WIFEXITED(child.status));
        CHECK(WEXITSTATUS(child.status) == 5);
    }
    SECTION("the pipe is full") {
        const Child child = in_child("/dev/null/x", [&] {
            fcntl(ends[1], F_SETFL, O_NONBLOCK);
            char byte = 0;
            while (write(ends[1], &byte, 1) == 1) {
            }
            fcntl(ends[1], F_SETFL, 0);
            alarm(5);
            lose_with_stderr(ends[1]);
        });
        REQUIRE(WIFEXITED(child.status));
        CHECK(WEXITSTATUS(child.status) == 5);
    }
    close(ends[0]);
    close(ends[1]);
}
