#include "recorder/job_place.h"

#include <fragtrace/format.h>

#include "recorder/session.h"
#include "recorder/trace_facts.h"
#include "system/environment.h"
#include "system/folder_names.h"
#include "system/sys.h"

#include <fcntl.h>
#include <initializer_list>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace fragtrace::preload {
namespace {

constexpr int32_t kLargestNumber = 100'000'000;

// Texts without pointers, which the loader would have to relocate in every process.
struct Launcher {
    char rank[24];
    char local_rank[32];
    char world_size[24];
};

using Variable = char[32];

constexpr Launcher kLaunchers[] = {
#define FT_LAUNCHER(name, rank, local_rank, world_size) {rank, local_rank, world_size},
#include "recorder/ranks.def"
};

constexpr Variable kJobIds[] = {
#define FT_JOB_ID(variable) {variable},
#include "recorder/ranks.def"
};

constexpr Variable kRestarts[] = {
#define FT_RESTARTS(variable) {variable},
#include "recorder/ranks.def"
};

// The largest communicator of this process. Forked children have their own.
struct Communicator {
    int32_t pid;
    int32_t size;
    int32_t rank;
};

Communicator g_largest;
Lock g_largest_lock;

// Returns a decimal number; -1 if the variable is not set or is not a number.
int32_t number_of(const char* name) {
    const char* value = *name == '\0' ? nullptr : variable(name);
    if (value == nullptr || *value == '\0') {
        return -1;
    }
    int32_t number = 0;
    while (*value >= '0' && *value <= '9' && number < kLargestNumber) {
        number = number * 10 + (*value++ - '0');
    }
    return *value == '\0' ? number : -1;
}

// Lightning and similar launchers start further processes with LOCAL_RANK alone. On the first node
// it is the rank. On other nodes the rank depends on their number of devices, which is not known.
void find_rank_of_first_node(JobPlace* place) {
    const int32_t local_rank = number_of("LOCAL_RANK");
    for (const char* node : {"NODE_RANK", "GROUP_RANK"}) {
        if (local_rank >= 0 && number_of(node) >= 0 && place->local_rank < 0) {
            place->local_rank = local_rank;
            place->world_size = number_of("WORLD_SIZE");
            if (number_of(node) == 0) {
                place->rank = local_rank;
                place->rank_variable = "LOCAL_RANK";
            }
        }
    }
}

void find_rank(JobPlace* place) {
    for (const Launcher& launcher : kLaunchers) {
        const int32_t rank = number_of(launcher.rank);
        if (rank >= 0) {
            place->rank = rank;
            place->rank_variable = launcher.rank;
            place->local_rank = number_of(launcher.local_rank);
            place->world_size = number_of(launcher.world_size);
            return;
        }
    }
    find_rank_of_first_node(place);
}

void find_ancestors(JobPlace* place) {
    auto pid = static_cast<int32_t>(getppid());
    while (pid > 1 && place->ancestor_count < kMostAncestors) {
        int32_t parent = 0;
        const uint64_t start_ticks = process_start_ticks(pid, &parent);
        if (start_ticks == 0) {
            return;
        }
        place->ancestors[place->ancestor_count++] = {pid, start_ticks};
        pid = parent;
    }
}

// Returns the rank in the trace that is open as `path`, a link in /proc/PID/fd; -1 if that is not a
// trace of the process.
int32_t rank_in_trace(const char* path, const Ancestor& process) {
    static char target[kMaxPathBytes];
    const ssize_t size = readlink(path, target, sizeof target - 1);
    target[size > 0 ? size : 0] = '\0';
    if (strstr(target, ".ftrace") == nullptr) {
        return -1;
    }
    static TraceHeader header;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const bool read = file >= 0 && pread(file, &header, sizeof header, 0) == sizeof header;
    if (file >= 0) {
        close(file);
    }
    const bool matches = read && memcmp(header.magic, kTraceMagic, sizeof header.magic) == 0 &&
                         header.pid == static_cast<uint32_t>(process.pid) &&
                         header.process_start_ticks == process.start_ticks;
    return matches ? header.rank : -1;
}

// Returns whether a process has its trace open, with this rank.
bool is_recorded_with_rank(const Ancestor& process, int32_t rank) {
    char folder[32];
    Text(folder, sizeof folder)
        .add("/proc/")
        .add_number(static_cast<uint64_t>(process.pid))
        .add("/fd");
    bool found = false;
    visit_names(folder, [&](const char* name) {
        char path[64];
        Text(path, sizeof path).add(folder).add("/").add(name);
        found = name[0] != '.' && rank_in_trace(path, process) == rank;
        return !found;
    });
    return found;
}

void give_rank_to_ancestor(JobPlace* place) {
    for (uint32_t i = 0; place->rank >= 0 && i < place->ancestor_count; ++i) {
        if (is_recorded_with_rank(place->ancestors[i], place->rank)) {
            place->inherited_rank = place->rank;
            place->rank_process = place->ancestors[i].pid;
            place->rank = place->local_rank = -1;
        }
    }
}

void add_number(Session* session, const char* key, int32_t value) {
    char digits[24];
    if (value >= 0) {
        add_session_fact(
            session,
            key,
            Text(digits, sizeof digits).add_number(static_cast<uint64_t>(value)).c_str());
    }
}

// Of the first variable that is set. torchrun names a job "none" if the user did not name it.
void add_job_id(Session* session) {
    for (const Variable& name : kJobIds) {
        const char* value = variable(name);
        if (value != nullptr && *value != '\0' && strcmp(value, "none") != 0) {
            add_session_fact(session, "job.id", value);
            return;
        }
    }
}

void add_ancestors(Session* session, const JobPlace& place) {
    static char list[kMostAncestors * 32];
    Text text(list, sizeof list);
    for (uint32_t i = 0; i < place.ancestor_count; ++i) {
        text.add(i == 0 ? "" : " ")
            .add_number(static_cast<uint64_t>(place.ancestors[i].pid))
            .add(":")
            .add_number(place.ancestors[i].start_ticks);
    }
    if (place.ancestor_count != 0) {
        add_session_fact(session, "ancestors", list);
    }
}

void add_communicator(Session* session, const Communicator& communicator) {
    char text[32];
    Text(text, sizeof text)
        .add_number(static_cast<uint64_t>(communicator.rank))
        .add(" of ")
        .add_number(static_cast<uint64_t>(communicator.size));
    add_session_fact(session, "nccl.rank", text);
}

}  // namespace

// Reads fields 4 and 22 of /proc/PID/stat. The second field is the program's name and may contain
// anything, so fields are counted from the last closing parenthesis.
uint64_t process_start_ticks(int32_t pid, int32_t* parent) {
    char path[32];
    Text name(path, sizeof path);
    name.add("/proc/");
    pid == 0 ? name.add("self") : name.add_number(static_cast<uint64_t>(pid));
    name.add("/stat");
    char stat[1024];
    const long size = read_file(path, stat, sizeof stat - 1);
    if (size <= 0) {
        return 0;
    }
    stat[size] = '\0';
    const char* at = strrchr(stat, ')');
    for (int field = 2; at != nullptr && field < 22; ++field) {
        at = strchr(at + 1, ' ');
        if (field == 3 && at != nullptr && parent != nullptr) {
            *parent = static_cast<int32_t>(strtol(at + 1, nullptr, 10));
        }
    }
    return at == nullptr ? 0 : strtoull(at + 1, nullptr, 10);
}

void find_job_place(JobPlace* place) {
    memset(static_cast<void*>(place), 0, sizeof *place);
    place->rank = place->local_rank = place->world_size = -1;
    place->generation = place->inherited_rank = -1;
    find_rank(place);
    for (const Variable& variable : kRestarts) {
        place->generation = place->generation < 0 ? number_of(variable) : place->generation;
    }
    find_ancestors(place);
    give_rank_to_ancestor(place);
}

void add_job_facts(Session* session) {
    const JobPlace& place = session->place;
    if (place.rank_variable != nullptr) {
        add_session_fact(session, "rank.source", place.rank_variable);
    }
    add_number(session, "rank.inherited", place.inherited_rank);
    if (place.inherited_rank >= 0) {
        add_number(session, "rank.process", place.rank_process);
    }
    add_number(session, "world_size", place.world_size);
    add_number(session, "generation", place.generation);
    add_job_id(session);
    add_ancestors(session, place);
}

void add_communicator_fact(Session* session) {
    if (!g_largest_lock.lock_within(50 * kMillisecond_ns)) {
        return;
    }
    if (g_largest.size != 0 && g_largest.pid == session->pid) {
        add_communicator(session, g_largest);
    }
    g_largest_lock.unlock();
}

void note_communicator(int32_t size, int32_t rank) {
    if (size < 1 || rank < 0 || rank >= size || !g_largest_lock.lock_within(50 * kMillisecond_ns)) {
        return;
    }
    const auto pid = static_cast<int32_t>(getpid());
    const bool larger = g_largest.pid != pid || size > g_largest.size;
    if (larger) {
        g_largest = {pid, size, rank};
        if (Session* session = running_session()) {
            add_communicator(session, g_largest);
        }
    }
    g_largest_lock.unlock();
}

void reset_communicator_lock() {
    g_largest_lock.reset();
}

}  // namespace fragtrace::preload
