#include "recorder/program_pools.h"

#include "recorder/labels.h"
#include "recorder/numbered_names.h"
#include "recorder/recorder.h"
#include "recorder/session.h"
#include "system/hash.h"
#include "system/sys.h"
#include "system/thread_state.h"

#include <string.h>

namespace fragtrace::preload {
namespace {

constexpr size_t kMostKindBytes = 32;
constexpr size_t kMostNameBytes = 200;
constexpr size_t kMostFactBytes = kMostKindBytes + 1 + kMostNameBytes + 1;
// The other numbers of pools are for those of PyTorch and the driver.
constexpr uint32_t kMostProgramPools = 1024;
// The table of facts has room for a few facts per pool.
constexpr uint32_t kMostLimitFacts = 8;

struct KnownPool {
    uint32_t number;
    bool live;
    uint64_t text_hash;
    uint64_t limit_bytes;  // the last one; 0 = none
    uint32_t limit_facts;  // written so far
};

KnownPool g_known[kMostProgramPools];
uint32_t g_count;
Lock g_lock;

// The bytes of a name that are kept: whole UTF-8 characters.
size_t kept_bytes(const char* name) {
    size_t size = strnlen(name, kMostNameBytes + 1);
    if (size > kMostNameBytes) {
        size = kMostNameBytes;
        while (size != 0 && (static_cast<uint8_t>(name[size]) & 0xc0u) == 0x80) {
            --size;
        }
    }
    return size;
}

// "KIND NAME". A kind is one word of a known alphabet.
void write_identity(const char* name, const char* kind, Text* text) {
    char word[kMostKindBytes + 1] = {};
    size_t size = 0;
    for (; kind != nullptr && kind[size] != '\0' && size < kMostKindBytes; ++size) {
        const char c = kind[size];
        const bool plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
        word[size] = plain ? c : '_';
    }
    text->add(size == 0 ? "other" : word).add(" ");
    if (name != nullptr) {
        text->add(name, kept_bytes(name));
    }
}

KnownPool* known_pool(uint32_t number) {
    for (uint32_t at = 0; at < g_count; ++at) {
        if (g_known[at].number == number) {
            return &g_known[at];
        }
    }
    return nullptr;
}

// The last fact that a pool may have is that its limit is unknown from now on.
void tell_limit(uint32_t pool, uint64_t limit_bytes, bool is_last_fact) {
    char key[32];
    char value[32];
    Text text(value, sizeof value);
    if (is_last_fact) {
        text.add("unknown");
    } else {
        text.add_number(limit_bytes);
    }
    record_fact(Text(key, sizeof key).add("pool.").add_number(pool).add(".limit").c_str(), value);
}

EventRecord event_of(EventKind kind, uint32_t pool) {
    EventRecord event{};
    event.kind = kind;
    event.pool = pool;
    event.device = kDeviceUnknown;
    event.stream = kStreamUnknown;
    return event;
}

bool recorded(uint32_t pool) {
    return pool != 0 && running_session() != nullptr;
}

void record_with_stacks(EventRecord* event) {
    const Stacks stacks = capture_stacks();
    event->native_stack = stacks.native;
    event->python_stack = stacks.python;
    record(*event);
}

}  // namespace

uint32_t create_program_pool(const char* name, const char* kind) {
    const SlowPath slow_path;
    if (!recording_enabled() || t_thread.inside_recorder) {
        return 0;
    }
    char identity[kMostFactBytes];
    Text text(identity, sizeof identity);
    write_identity(name, kind, &text);
    // Two pools with the same hash would only share a number one after the other.
    const uint64_t hash = hash_bytes(text.c_str(), text.size());
    if (!g_lock.lock_within(50 * kMillisecond_ns)) {
        return 0;
    }
    uint32_t number = 0;
    for (uint32_t at = 0; at < g_count && number == 0; ++at) {
        KnownPool& pool = g_known[at];
        if (!pool.live && pool.text_hash == hash) {
            pool.live = true;
            number = pool.number;
        }
    }
    if (number == 0) {
        const bool room = g_count < kMostProgramPools;
        number = program_pool_number(g_count, room ? text.c_str() : nullptr);
        if (room && number != kNumberOfTheRest) {
            g_known[g_count++] = {number, true, hash, 0, 0};
        }
    }
    g_lock.unlock();
    return number;
}

void destroy_program_pool(uint32_t pool) {
    const SlowPath slow_path;
    // Other pools may have the number of the rest, so their blocks go on.
    if (pool == 0 || pool == kNumberOfTheRest || t_thread.inside_recorder) {
        return;
    }
    if (recorded(pool)) {
        EventRecord event = event_of(EventKind::kProgramPoolEnd, pool);
        record_with_stacks(&event);
    }
    if (g_lock.lock_within(50 * kMillisecond_ns)) {
        if (KnownPool* known = known_pool(pool)) {
            known->live = false;
        }
        g_lock.unlock();
    }
}

void set_program_pool_limit(uint32_t pool, uint64_t limit_bytes) {
    const SlowPath slow_path;
    if (pool == 0 || t_thread.inside_recorder) {
        return;
    }
    uint32_t facts = 0;  // with the one to write; 0 = write none
    if (g_lock.lock_within(50 * kMillisecond_ns)) {
        KnownPool* known = known_pool(pool);
        if (known != nullptr && known->limit_bytes != limit_bytes &&
            known->limit_facts < kMostLimitFacts) {
            known->limit_bytes = limit_bytes;
            facts = ++known->limit_facts;
        }
        g_lock.unlock();
    }
    if (facts != 0) {
        tell_limit(pool, limit_bytes, facts == kMostLimitFacts);
    }
}

void set_program_pool_settings(uint32_t pool, const char* settings) {
    const SlowPath slow_path;
    if (pool == 0 || pool == kNumberOfTheRest || t_thread.inside_recorder) {
        return;
    }
    char key[32];
    record_fact(Text(key, sizeof key).add("pool.").add_number(pool).add(".settings").c_str(),
                settings);
}

void record_program_block(uint32_t pool,
                          uint64_t address,
                          uint64_t requested_bytes,
                          uint64_t size_bytes,
                          uint64_t stream,
                          uint8_t flags) {
    if (!recorded(pool) || address == 0) {
        return;
    }
    if (requested_bytes != kUnknown64 && size_bytes < requested_bytes) {
        size_bytes = requested_bytes;
    }
    if (size_bytes == 0) {
        return;
    }
    EventRecord event = event_of(EventKind::kProgramBlockAlloc, pool);
    event.address = address;
    event.size = requested_bytes;
    event.extra = size_bytes;
    event.stream = stream;
    event.flags = flags;
    record_with_stacks(&event);
    label_new_block(address, kDeviceUnknown, pool);
}

void record_program_free(uint32_t pool, uint64_t address) {
    if (recorded(pool) && address != 0) {
        EventRecord event = event_of(EventKind::kProgramBlockFree, pool);
        event.address = address;
        record_with_stacks(&event);
    }
}

void record_program_failure(uint32_t pool,
                            uint64_t requested_bytes,
                            uint64_t stream,
                            uint8_t flags) {
    if (recorded(pool)) {
        EventRecord event = event_of(EventKind::kProgramRequestFailed, pool);
        event.size = requested_bytes;
        event.stream = stream;
        event.flags = flags;
        record_with_stacks(&event);
    }
}

void record_program_stream_end(uint32_t pool, uint64_t stream) {
    if (recorded(pool)) {
        EventRecord event = event_of(EventKind::kProgramStreamEnd, pool);
        event.stream = stream;
        record(event);
    }
}

void reset_program_pools_lock() {
    g_lock.reset();
}

}  // namespace fragtrace::preload
