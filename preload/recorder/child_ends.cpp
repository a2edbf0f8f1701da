// Records which signal killed a recorded child, and when this process saw it. A process without a
// handler cannot record that itself, and the recorder must not install one; the kernel reports it
// only to the parent. If the parent has this library too, it writes the signal into the ring that
// the child left, where the analyzer finds it. The wait functions return the same as without the
// recorder and do not wait longer: the ring is looked up only after a child was killed.
// An earlier program of this process, which exec replaced, has left a ring in the same way.
#include "recorder/child_ends.h"

#include <fragtrace/format.h>

#include "recorder/ring.h"
#include "recorder/session.h"
#include "system/folder_names.h"
#include "system/loaded_objects.h"
#include "system/sys.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace fragtrace::preload {
namespace {

constexpr const char* kRingFolder = "FRAGTRACE_RING_DIRECTORY=";

// Reads the value from the process's start, because another thread may be changing the environment
// now.
void ring_folder(Text* folder) {
    const int fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
    char bytes[512];
    size_t matched = 0;  // characters of kRingFolder since a variable began
    const size_t whole = strlen(kRingFolder);
    bool differs = false;
    for (ssize_t size = 0; fd >= 0 && (size = read(fd, bytes, sizeof bytes)) > 0;) {
        for (ssize_t i = 0; i < size; ++i) {
            if (bytes[i] == '\0') {
                matched = 0;
                differs = false;
            } else if (!differs && matched == whole) {
                folder->add(bytes + i, 1);
            } else if (!differs && bytes[i] == kRingFolder[matched]) {
                ++matched;
            } else {
                differs = true;
            }
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    if (folder->size() == 0) {
        folder->add("/dev/shm");
    }
}

// Time since this process began. A ring that was last written before that is not of a child:
// process ids are reused.
uint64_t age_ns() {
    constexpr uint64_t kTick_ns = kSecond_ns / 100;
    const uint64_t now_ns = clock_ns(CLOCK_BOOTTIME);
    const uint64_t start_ns = process_start_ticks(0, nullptr) * kTick_ns;
    return now_ns > start_ns ? now_ns - start_ns : 0;
}

bool was_left_here(const struct stat& file) {
    const uint64_t written_ns = static_cast<uint64_t>(file.st_mtim.tv_sec) * kSecond_ns +
                                static_cast<uint64_t>(file.st_mtim.tv_nsec);
    return S_ISREG(file.st_mode) && file.st_uid == getuid() &&
           written_ns + age_ns() >= clock_ns(CLOCK_REALTIME);
}

// Returns -1 if the ring is of neither a child nor an earlier program. A ring's file is read-only
// until its process has ended.
int open_left_ring(const char* path) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    struct stat file {};

    char same[40];
    Text(same, sizeof same).add("/proc/self/fd/").add_number(static_cast<uint64_t>(fd));
    const int to = fd >= 0 && fstat(fd, &file) == 0 && was_left_here(file) && fchmod(fd, 0600) == 0
                       ? open(same, O_RDWR | O_CLOEXEC)
                       : -1;
    if (fd >= 0) {
        close(fd);
    }
    return to;
}

// Returns whether this is the ring of the child's last program, which the signal ended.
bool note_in_ring(const char* path, int signal, uint64_t seen_ns) {
    const int fd = open_left_ring(path);

    struct stat file {};

    RingHeader header{};
    if (fd < 0) {
        return false;
    }
    bool noted = false;
    char line[64];
    Text fact(line, sizeof line);
    fact.add("end.signal\t").add_number(static_cast<uint64_t>(signal)).add("\n");
    fact.add("end.signal_seen_ns\t").add_number(seen_ns).add("\n");
    const auto size = static_cast<uint32_t>(fact.size());
    if (fstat(fd, &file) == 0 &&
        pread(fd, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) &&
        memcmp(header.magic, kRingMagic, sizeof header.magic) == 0 &&
        header.version == kFormatVersion && header.next_program_ns == 0 &&
        header.facts_bytes <= header.facts_capacity_bytes &&
        header.facts_capacity_bytes - header.facts_bytes >= size) {
        const uint64_t at = header.facts_offset + header.facts_bytes;
        const uint32_t facts_bytes = header.facts_bytes + size;
        if (at + size <= static_cast<uint64_t>(file.st_size) &&
            pwrite(fd, line, size, static_cast<off_t>(at)) == static_cast<ssize_t>(size)) {
            noted =
                pwrite(fd, &facts_bytes, sizeof facts_bytes, offsetof(RingHeader, facts_bytes)) ==
                static_cast<ssize_t>(sizeof facts_bytes);
        }
    }
    close(fd);
    return noted;
}

// A SIGCHLD handler may run on a stack of a few KiB, too small for this work.
bool on_signal_stack() {
    stack_t stack{};
    return sigaltstack(nullptr, &stack) != 0 || (stack.ss_flags & SS_ONSTACK) != 0;
}

// Calls visit(path) for each file that may be a ring of this process id, until it returns false.
template <typename Visit>
void visit_rings(pid_t pid, Visit visit) {
    char path[sizeof(TraceHeader::ring_path)];
    Text folder(path, sizeof path);
    ring_folder(&folder);
    char begin[64];
    Text name(begin, sizeof begin);
    name.add("fragtrace-").add_number(getuid()).add("-");
    name.add_number(static_cast<uint64_t>(pid)).add("-");
    visit_names(folder.c_str(), [&](const char* found) {
        Text ring = folder;  // in the same buffer
        return strncmp(found, begin, name.size()) != 0 || visit(ring.add("/").add(found).c_str());
    });
}

void note_signal(pid_t child, int signal) {
    const uint64_t seen_ns = clock_ns(CLOCK_MONOTONIC);
    if (on_signal_stack()) {
        return;
    }
    visit_rings(child, [signal, seen_ns](const char* path) {
        return !note_in_ring(path, signal, seen_ns);
    });
}

// Whether the ring is one of this process itself, and no later program has been noted in it.
bool is_of_earlier_program(const char* path, uint64_t start_ticks) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    RingHeader header{};
    const bool whole =
        fd >= 0 && pread(fd, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header);
    if (fd >= 0) {
        close(fd);
    }
    return whole && memcmp(header.magic, kRingMagic, sizeof header.magic) == 0 &&
           header.version == kFormatVersion && start_ticks != 0 &&
           header.process_start_ticks == start_ticks && header.next_program_ns == 0;
}

using Wait4 = pid_t (*)(pid_t, int*, int, rusage*);
using WaitId = int (*)(idtype_t, id_t, siginfo_t*, int);

Wait4 g_wait4;
WaitId g_waitid;

// Signal handlers and children of multi-threaded programs may call wait4(), but not dlsym(). So the
// functions are looked up without it, at the first call: most processes never wait. Every thread
// finds the same ones.
template <typename Function>
Function real(Function* known, const char* name) {
    Function found = load_relaxed(known);
    if (found == nullptr) {
        found = reinterpret_cast<Function>(next_definition_at_start(name));
        if (found == nullptr) {  // this library was not loaded at the start
            found = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
        }
        store_relaxed(known, found);
    }
    return found;
}

// The C library, too, implements wait(), waitpid(), wait3() and wait4() by one function.
pid_t wait_and_note(pid_t pid, int* status, int options, rusage* used) {
    const Wait4 real_wait4 = real(&g_wait4, "wait4");
    if (real_wait4 == nullptr) {
        errno = ENOSYS;
        return -1;
    }
    int own = 0;
    int* const told = status == nullptr ? &own : status;
    const pid_t child = real_wait4(pid, told, options, used);
    if (child > 0 && WIFSIGNALED(*told)) {
        const SlowPath slow_path;  // a cancellation here would lose the child's status
        note_signal(child, WTERMSIG(*told));
    }
    return child;
}

}  // namespace

void note_earlier_program() {
    const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    visit_rings(getpid(), [now_ns](const char* path) {
        const int fd = is_of_earlier_program(path, process_start_ticks(0, nullptr))
                           ? open_left_ring(path)
                           : -1;
        if (fd >= 0) {
            const ssize_t done =
                pwrite(fd, &now_ns, sizeof now_ns, offsetof(RingHeader, next_program_ns));
            (void)done;
            close(fd);
        }
        return true;
    });
}

}  // namespace fragtrace::preload

extern "C" {

__attribute__((visibility("default"))) pid_t wait(int* status) {
    return fragtrace::preload::wait_and_note(-1, status, 0, nullptr);
}

__attribute__((visibility("default"))) pid_t waitpid(pid_t pid, int* status, int options) {
    return fragtrace::preload::wait_and_note(pid, status, options, nullptr);
}

__attribute__((visibility("default"))) pid_t wait3(int* status, int options, rusage* used) {
    return fragtrace::preload::wait_and_note(-1, status, options, used);
}

__attribute__((visibility("default"))) pid_t wait4(pid_t pid,
                                                   int* status,
                                                   int options,
                                                   rusage* used) {
    return fragtrace::preload::wait_and_note(pid, status, options, used);
}

__attribute__((visibility("default"))) int waitid(idtype_t which,
                                                  id_t id,
                                                  siginfo_t* told,
                                                  int options) {
    using namespace fragtrace::preload;
    const WaitId real_waitid = real(&g_waitid, "waitid");
    if (real_waitid == nullptr) {
        errno = ENOSYS;
        return -1;
    }
    const int done = real_waitid(which, id, told, options);
    if (done == 0 && told != nullptr && told->si_pid > 0 &&
        (told->si_code == CLD_KILLED || told->si_code == CLD_DUMPED)) {
        const SlowPath slow_path;
        note_signal(told->si_pid, told->si_status);
    }
    return done;
}
}
