// Host programs that may not write files, close our descriptors, or change their folder.
#include "recorder/recorder.h"
#include "trace_dump.h"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace fragtrace;
using namespace fragtrace::test;
namespace preload = fragtrace::preload;

TEST_CASE("the host continues if no file may be written") {
    const Folder folder;
    const Child child = in_child(folder.path(), [] {
        const rlimit limit{0, 0};
        setrlimit(RLIMIT_FSIZE, &limit);
        preload::record(make_event(1, 1));
    });
    CHECK(child.status == 0);
}

TEST_CASE("if the host closes our descriptor, its file and our trace stay intact") {
    const Folder folder;
    const std::string own = folder.path() + "/own";
    in_child(folder.path(), [&] {
        preload::record(make_event(1, 1));
        for (int fd = 3; fd < 1024; ++fd) {
            close(fd);
        }
        for (int fd = 3; fd < 600; ++fd) {
            open(own.c_str(), O_CREAT | O_RDWR, 0600);
        }
        preload::record(make_event(2, 2));
    });

    struct stat file {};

    REQUIRE(stat(own.c_str(), &file) == 0);
    CHECK(file.st_size == 0);
    const Dump dump = read_trace(folder.traces()[0]);
    CHECK(dump.events.size() == 2);
    CHECK(dump.end == EndReason::kNormal);
}

TEST_CASE("a host that changes its directory keeps its trace") {
    const Folder folder;
    in_child("", [&] {
        if (chdir(folder.path().c_str()) != 0) {
            _exit(1);
        }
        preload::record(make_event(1, 1));
        if (chdir("/") != 0) {
            _exit(1);
        }
        for (int fd = 3; fd < 1024; ++fd) {
            close(fd);
        }
        preload::record(make_event(2, 2));
    });
    REQUIRE(folder.traces().size() == 1);
    CHECK(read_trace(folder.traces()[0]).events.size() == 2);
}

TEST_CASE("closed standard streams stay closed", "[native-stacks]") {
    const Folder folder;
    const Child child = in_child(folder.path(), [] {
        close(STDIN_FILENO);
        close(STDOUT_FILENO);
        EventRecord event = make_event(1, 1);
        event.native_stack = preload::capture_stacks().native;
        preload::record(event);
        const bool closed = fcntl(STDIN_FILENO, F_GETFD) < 0 && fcntl(STDOUT_FILENO, F_GETFD) < 0;
        _exit(closed && event.native_stack != 0 ? 0 : 1);
    });
    CHECK(WEXITSTATUS(child.status) == 0);
}

TEST_CASE("with a low limit of open files, ours do not use the standard streams") {
    const Folder folder;
    const Child child = in_child(folder.path(), [] {
        const rlimit limit{64, 64};
        setrlimit(RLIMIT_NOFILE, &limit);
        close(STDIN_FILENO);
        preload::record(make_event(1, 1));
        _exit(fcntl(STDIN_FILENO, F_GETFD) < 0 ? 0 : 1);
    });
    CHECK(WEXITSTATUS(child.status) == 0);
    CHECK(read_trace(folder.traces()[0]).events.size() == 1);
}
