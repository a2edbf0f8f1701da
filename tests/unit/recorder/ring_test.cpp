// Where the ring may be placed, and how much memory rings may use.
#include <fragtrace/sizes.h>

#include "recorder/file_systems.h"
#include "recorder/recorder.h"
#include "recorder/session.h"
#include "skip.h"
#include "trace_dump.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <fcntl.h>
#include <map>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace fragtrace;
using namespace fragtrace::test;
namespace preload = fragtrace::preload;

TEST_CASE("without room for a ring the recorder works and reports the consequences") {
    const Folder folder;
    in_child(folder.path(),
             [] { preload::record(make_event(1, 1)); },
             {{"FRAGTRACE_RING_DIRECTORY", "/nonexistent"}});
    const Dump dump = read_trace(folder.traces()[0]);
    CHECK(dump.events.size() == 1);
    CHECK(dump.header.ring_path[0] == '\0');
    CHECK(dump.facts.at("ring.storage").find("not crash-safe") != std::string::npos);
}

namespace {

constexpr int kNoMount = 77;

// Whether a program has its ring in /dev/shm of that size, in addition to one that a killed process
// left.
bool has_ring_in_memory(uint64_t folder_bytes, uint64_t left_bytes, uid_t left_by = getuid()) {
    const Folder folder;
    const std::string size = "size=" + std::to_string(folder_bytes);
    const Child child = in_child(
        folder.path(),
        [&] {  // the mount disappears with the child
            if (unshare(CLONE_NEWNS) != 0 ||
                mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
                mount("none", "/dev/shm", "tmpfs", 0, size.c_str()) != 0) {
                _exit(kNoMount);
            }
            const int fd = open("/dev/shm/fragtrace-0-1-1.ring", O_CREAT | O_WRONLY, 0600);
            if ((left_bytes != 0 && fallocate(fd, 0, 0, static_cast<off_t>(left_bytes)) != 0) ||
                fchown(fd, left_by, gid_t(-1)) != 0) {
                _exit(1);
            }
            close(fd);
            preload::record(make_event(1, 1));
        });
    if (WIFEXITED(child.status) && WEXITSTATUS(child.status) == kNoMount) {
        skip("needs the right to mount a folder in memory");
    }
    REQUIRE(child.status == 0);
    const Dump dump = read_trace(folder.traces()[0]);
    CHECK(dump.events.size() == 1);
    return std::string(dump.header.ring_path).find("/dev/shm/") == 0;
}

}  // namespace

TEST_CASE("a new ring and those of killed processes use only part of a small /dev/shm",
          "[small-folder]") {
    CHECK(!has_ring_in_memory(16 * kMiB, 0));  // it would fit, but use a third
    CHECK(has_ring_in_memory(256 * kMiB, 0));
    CHECK(has_ring_in_memory(256 * kMiB, 31 * kMiB));
    CHECK(!has_ring_in_memory(256 * kMiB, 33 * kMiB));
    CHECK(has_ring_in_memory(256 * kMiB, 33 * kMiB, 65534));  // another user's
}

TEST_CASE("the total size of rings left by ended processes is limited", "[ring-bytes]") {
    const Folder folder;
    const Folder rings;

    struct statvfs place {};

    REQUIRE(statvfs(rings.path().c_str(), &place) == 0);
    // Rings may use an eighth of any file system, at most 4 GiB.
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

TEST_CASE("the user of a running process cannot truncate its ring") {
    const Folder folder;
    REQUIRE(chmod(folder.path().c_str(), 0777) == 0);
    const Child child = in_child(folder.path(), [] {
        constexpr uid_t kNobody = 65534;
        if (geteuid() == 0 && setuid(kNobody) != 0) {
            _exit(1);
        }
        preload::record(make_event(1, 1));
        const bool cut = truncate(preload::g_session.ring.path(), 0) == 0;
        preload::record(make_event(2, 1));
        if (cut) {
            _exit(2);
        }
    });
    CHECK(child.status == 0);
    REQUIRE(folder.traces().size() == 1);
    const Dump dump = read_trace(folder.traces()[0]);
    CHECK(dump.events.size() == 2);
    CHECK(dump.header.ring_path[0] == '/');
}

TEST_CASE("empty files with names of rings do not prevent a new ring") {
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

TEST_CASE("no ring lies on remote or copy-on-write file systems, but on all usual ones") {
    const auto unsuitable = [](uint32_t type) {
        struct statfs place {};
        place.f_type = static_cast<decltype(place.f_type)>(static_cast<int32_t>(type));
        const bool as_signed = preload::takes_no_ring(place);
        place.f_type = type;
        CHECK(preload::takes_no_ring(place) == as_signed);
        return as_signed;
    };
    // The numbers of statfs(2), and of the sources of file systems outside the kernel.
    const std::map<const char*, uint32_t> remote = {{"NFS", 0x6969},
                                                    {"CIFS", 0xff534d42},
                                                    {"SMB2", 0xfe534d42},
                                                    {"Ceph", 0x00c36400},
                                                    {"FUSE", 0x65735546},
                                                    {"9p", 0x01021997},
                                                    {"OpenAFS", 0x5346414f},
                                                    {"AFS of the kernel", 0x6b414653},
                                                    {"Coda", 0x73757245},
                                                    {"OCFS2", 0x7461636f},
                                                    {"GFS2", 0x01161970},
                                                    {"Lustre", 0x0bd00bd0},
                                                    {"GPFS", 0x47504653},
                                                    {"BeeGFS", 0x19830326},
                                                    {"PanFS", 0xaad7aaea},
                                                    {"OrangeFS", 0x20030528}};
    const std::map<const char*, uint32_t> copy_on_write = {{"ZFS", 0x2fc12fc1},
                                                           {"btrfs", 0x9123683e}};
    const std::map<const char*, uint32_t> usual = {{"tmpfs", 0x01021994},
                                                   {"ramfs", 0x858458f6},
                                                   {"ext4", 0xef53},
                                                   {"XFS", 0x58465342},
                                                   {"F2FS", 0xf2f52010},
                                                   {"overlay", 0x794c7630}};
    for (const auto* const types : {&remote, &copy_on_write, &usual}) {
        for (const auto& [name, type] : *types) {
            CAPTURE(name);
            CHECK(unsuitable(type) == (types != &usual));
        }
    }
}
