#include "recorder/trace_facts.h"

#include <fragtrace/pytorch_variables.h>

#include "recorder/ranges.h"
#include "recorder/session.h"
#include "system/environment.h"
#include "system/losses.h"
#include "system/sys.h"

#include <algorithm>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace fragtrace::preload {
namespace {

constexpr uint32_t kStore_bytes = 512 * 1024;
constexpr uint32_t kMaxFactKey_bytes = 256;

char g_store[kStore_bytes];
uint32_t g_store_bytes;
uint64_t g_lost;
const uint64_t* g_zeros;  // of watch_zeros()
Lock g_lock;

// Appends whole lines only. Returns the new size, or 0 if the line does not fit.
uint32_t append_line(
    char* log, uint32_t size, uint32_t capacity, const char* key, const char* value) {
    const auto put = [&](char c) {
        if (size < capacity) {
            log[size] = c;
        }
        ++size;
    };
    const auto put_text = [&](const char* text, uint32_t limit_bytes) {
        for (uint32_t i = 0; text[i] != '\0' && i < limit_bytes; ++i) {
            switch (text[i]) {
                case '\\':
                    put('\\'), put('\\');
                    break;
                case '\t':
                    put('\\'), put('t');
                    break;
                case '\n':
                    put('\\'), put('n');
                    break;
                default:
                    put(text[i]);
                    break;
            }
        }
    };
    put_text(key, kMaxFactKey_bytes);
    put('\t');
    put_text(value, kMaxFactValue_bytes);
    put('\n');
    return size > capacity ? 0 : size;
}

// Returns for how many bytes of facts the ring has room. First tries to make room for `more` bytes.
uint32_t room_for_facts(Ring* ring, uint64_t more) {
    GrowingArea* room = &ring->facts_room;
    const uint64_t end = ring->header->facts_bytes + more;
    static_cast<void>(ring->reaches(room, end < room->capacity_bytes ? end : room->capacity_bytes));
    return static_cast<uint32_t>(load_acquire(&room->ready_bytes));
}

bool append_to_ring(Ring* ring, const char* key, const char* value) {
    constexpr uint64_t kLongestLine_bytes = 2 * (kMaxFactKey_bytes + kMaxFactValue_bytes + 1);
    RingHeader* header = ring->header;
    const uint32_t room = room_for_facts(ring, kLongestLine_bytes);
    const uint32_t size = append_line(ring->facts, header->facts_bytes, room, key, value);
    if (size != 0) {
        store_release(&header->facts_bytes, size);
    }
    return size != 0;
}

// Needs the lock. Copies the facts that the store has and the session lacks.
void copy_stored_facts(Session* session) {
    RingHeader* header = session->ring.header;
    const uint32_t begin = session->stored_facts_copied;
    const uint32_t size = g_store_bytes - begin;
    if (size != 0 && room_for_facts(&session->ring, size) - header->facts_bytes >= size) {
        memcpy(session->ring.facts + header->facts_bytes, g_store + begin, size);
        store_release(&header->facts_bytes, header->facts_bytes + size);
    } else {
        const auto lines = std::count(g_store + begin, g_store + begin + size, '\n');
        count_up(&g_lost, static_cast<uint64_t>(lines));
    }
    session->stored_facts_copied = g_store_bytes;
}

class FactsLock {
  public:
    FactsLock() : held_(g_lock.lock_within(50 * kMillisecond_ns)) {
        if (!held_) {
            count_up(&g_lost);
        }
    }

    ~FactsLock() {
        if (held_) {
            g_lock.unlock();
        }
    }

    FactsLock(const FactsLock&) = delete;
    FactsLock& operator=(const FactsLock&) = delete;

    [[nodiscard]] bool held() const { return held_; }

  private:
    bool held_;
};

// Records the arguments as a list, one per line. Within an argument, a backslash is doubled and a
// newline becomes a backslash and an n. A list that is too long is not recorded: a part of it would
// be another command.
void add_arguments(Session* session, const char* arguments, long size) {
    static char list[kMaxFactValue_bytes];
    size_t used = 0;
    const auto put = [&](char c) {
        if (used < sizeof list) {
            list[used++] = c;
        }
    };
    for (long i = 0; i < size; ++i) {
        switch (arguments[i]) {
            case '\0':
                put('\n');
                break;
            case '\n':
                put('\\'), put('n');
                break;
            case '\\':
                put('\\'), put('\\');
                break;
            default:
                put(arguments[i]);
                break;
        }
    }
    if (used < sizeof list) {
        list[used] = '\0';
        add_session_fact(session, "arguments", list);
    }
}

void add_command_line(Session* session) {
    static char arguments[kMaxFactValue_bytes];
    long size = read_file("/proc/self/cmdline", arguments, sizeof arguments - 1);
    if (size <= 0) {
        return;
    }
    const bool complete = static_cast<size_t>(size) < sizeof arguments - 1;
    if (arguments[size - 1] == '\0') {
        --size;
    }
    if (complete) {
        add_arguments(session, arguments, size);
    }
    for (long i = 0; i < size; ++i) {
        if (arguments[i] == '\0') {
            arguments[i] = ' ';
        }
    }
    arguments[size] = '\0';
    add_session_fact(session, "command_line", arguments);
}

// 0 as long as nothing was replaced.
uint64_t zeros_counted(size_t index) {
    const uint64_t* counts = __atomic_load_n(&g_zeros, __ATOMIC_ACQUIRE);
    return counts == nullptr || load_relaxed(&counts[1]) == 0 ? 0 : load_relaxed(&counts[index]);
}

// A process id means something only within its PID namespace and boot.
void add_id_facts(Session* session) {
    char text[64];
    const ssize_t size = readlink("/proc/self/ns/pid", text, sizeof text - 1);
    text[size > 0 ? size : 0] = '\0';
    char* const begin = strchr(text, '[');  // "pid:[4026531836]"
    char* const end = strchr(text, ']');
    if (begin != nullptr && end != nullptr) {
        *end = '\0';
        add_session_fact(session, "host.pid_namespace", begin + 1);
    }
    constexpr long kUuid_bytes = 36;
    if (read_file("/proc/sys/kernel/random/boot_id", text, sizeof text - 1) >= kUuid_bytes) {
        text[kUuid_bytes] = '\0';
        add_session_fact(session, "host.boot_id", text);
    }
}

// Adds the variables that begin with `setting`.
void add_variables(Session* session, char* const* variables, const char* setting) {
    for (char* const* at = variables; at != nullptr && *at != nullptr; ++at) {
        const char* value = strchr(*at, '=');
        if (value != nullptr && strncmp(*at, setting, strlen(setting)) == 0) {
            char key[256];
            Text(key, sizeof key).add("environment.").add(*at, value - *at);
            add_session_fact(session, key, value + 1);
        }
    }
}

void add_number_fact(Session* session, const char* key, uint64_t value) {
    char digits[24];
    add_session_fact(session, key, Text(digits, sizeof digits).add_number(value).c_str());
}

}  // namespace

bool store_fact(const char* key, const char* value) {
    const FactsLock lock;
    if (!lock.held()) {
        return false;
    }
    Session* session = running_session();
    if (session != nullptr) {
        copy_stored_facts(session);
    }
    const uint32_t size = append_line(g_store, g_store_bytes, kStore_bytes, key, value);
    if (size != 0) {
        g_store_bytes = size;
    }
    bool kept = size != 0;
    if (session != nullptr) {
        kept = append_to_ring(&session->ring, key, value);
        session->stored_facts_copied = g_store_bytes;
    }
    if (!kept) {
        count_up(&g_lost);
    }
    return kept;
}

bool add_session_fact(Session* session, const char* key, const char* value) {
    const FactsLock lock;
    const bool kept = lock.held() && append_to_ring(&session->ring, key, value);
    if (!kept) {
        count_up(&g_lost);
    }
    return kept;
}

void add_stored_facts(Session* session) {
    const FactsLock lock;
    if (lock.held()) {
        copy_stored_facts(session);
    }
}

void add_start_facts(Session* session) {
    add_session_fact(session, "recorder.version", FRAGTRACE_VERSION);
    add_command_line(session);
    static char path[kMaxFactValue_bytes];
    const ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    if (size > 0) {
        path[size] = '\0';
        add_session_fact(session, "executable", path);
    }
    if (getcwd(path, sizeof path) != nullptr) {
        add_session_fact(session, "working_directory", path);
    }
    utsname host{};
    if (uname(&host) == 0) {
        add_session_fact(session, "host", host.nodename);
        add_session_fact(session, "host.kernel", host.release);
    }
    add_id_facts(session);
    for (const PytorchVariable& variable : kPytorchVariables) {
        char setting[sizeof variable.name + 1];
        add_variables(
            session, environ, Text(setting, sizeof setting).add(variable.name).add("=").c_str());
    }
    for (const char* setting : {"PYTORCH_NO_CUDA_MEMORY_CACHING=",
                                "CUDA_VISIBLE_DEVICES=",
                                "CUDA_MODULE_LOADING=",
                                "XLA_PYTHON_CLIENT_",
                                "TF_GPU_ALLOCATOR=",
                                "TF_FORCE_GPU_ALLOW_GROWTH="}) {
        add_variables(session, environ, setting);  // as the allocators see them
    }
    add_variables(session, environment(), "FRAGTRACE_");
    if (session->options.rejected[0] != '\0') {
        add_session_fact(session, "options.rejected", session->options.rejected);
    }
    add_number_fact(session, "options.stack_depth", session->options.stack_depth);
    add_number_fact(session, "options.ring_events", session->options.ring_events);
    if (session->options.min_block_bytes != 0) {
        add_number_fact(session, "options.min_bytes", session->options.min_block_bytes);
    }
    if (session->options.size_limit_bytes != 0) {
        add_number_fact(session, "options.size_limit", session->options.size_limit_bytes);
    }
    add_session_fact(
        session, "trace.compression", session->options.compression_level != 0 ? "zstd" : "none");
    add_session_fact(session,
                     "ring.storage",
                     session->ring.path()[0] != '\0' ? session->ring.path()
                                                     : "memory of the process: not crash-safe");
}

void add_loss_facts(Session* session, bool exact) {
    RingHeader* ring = session->ring.header;

    const struct {
        const char* key;
        uint64_t value;
    } losses[] = {
        {"lost.unfinished", session->lost_unfinished},
        {"lost.write_failed", session->lost_write_failed},
        {"lost.removed", session->lost_removed},
        {"lost.before_start", load_relaxed(&session->lost_before_start)},
        {"lost.facts", lost_facts()},
        {"lost.completions", load_relaxed(&g_events_without_room)},
        {"held.without_room", session->parts.live.lost()},
        {"ranges.without_room", ranges_without_room()},
        {"tables.without_room", load_relaxed(&g_entries_without_room)},
        {"stacks.python_none", load_relaxed(&session->threads_without_python)},
        // Fields of their own in the ring's header.
        {"lost.ring_full", load_relaxed(&ring->lost_ring_full)},
        {"lost.reentrant", load_relaxed(&ring->lost_reentrant)},
        {"stacks.without_room", load_relaxed(&ring->stacks_without_room)},
        {"stacks.native_failures", load_relaxed(&ring->native_unwind_failures)},
        {"stacks.python_failures", load_relaxed(&ring->python_walk_failures)},
        {"trace.write_errors", load_relaxed(&ring->trace_write_errors)},
        {"nccl.zeros.larger_than_bytes", zeros_counted(0)},
        {"nccl.zeros.results", zeros_counted(1)},
        {"nccl.zeros.bytes", zeros_counted(2)},
    };

    static_assert(sizeof losses / sizeof losses[0] == Session::kLossKinds);
    for (size_t i = 0; i < kRingLossCount; ++i) {
        for (const auto& loss : losses) {
            if (strcmp(loss.key, kRingLosses[i]) == 0) {
                store_relaxed(&ring->losses[i], loss.value);
            }
        }
    }
    for (size_t i = 0; i < Session::kLossKinds; ++i) {
        // A loss may continue for weeks, and the room for facts is limited: before the end, only
        // doublings are recorded.
        const uint64_t told = session->losses_told[i];
        if (exact ? told != losses[i].value : told * 2 < losses[i].value) {
            session->losses_told[i] = losses[i].value;
            add_number_fact(session, losses[i].key, losses[i].value);
        }
    }
}

void watch_zeros(const uint64_t counts[3]) {
    __atomic_store_n(&g_zeros, counts, __ATOMIC_RELEASE);
}

uint64_t lost_facts() {
    return load_relaxed(&g_lost);
}

void reset_facts_lock() {
    g_lock.reset();
}

}  // namespace fragtrace::preload
