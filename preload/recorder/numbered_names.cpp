#include "recorder/numbered_names.h"

#include "recorder/recorder.h"
#include "system/sys.h"
#include "system/thread_state.h"

#include <string.h>

namespace fragtrace::preload {
namespace {

// The 64-bit hash stands for the name. With 4,096 names, two of them have the same hash in one of
// 10^12 programs.
struct Entry {
    uint64_t hash;
    uint32_t number;  // stored last; 0 = free
};

constexpr uint32_t kEntries = 2 * kMostNumbers;

struct Table {
    Entry entries[kEntries];
    uint32_t count;  // assigned numbers; they follow kNumberOfTheRest
    bool rest_told;  // the fact of kNumberOfTheRest is written
};

constinit Table g_texts{};
constinit Table g_pools{};
Lock g_lock;

uint64_t mixed(uint64_t value) {
    value ^= value >> 30;
    value *= 0xbf58476d1ce4e5b9u;
    value ^= value >> 27;
    value *= 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

uint64_t hash_of(const char* text) {
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (; *text != '\0'; ++text) {
        hash = mixed(hash ^ static_cast<uint8_t>(*text));
    }
    return hash;
}

// Returns the entry of a hash, or the free entry where it belongs.
Entry* find(Table* table, uint64_t hash) {
    for (uint64_t at = hash;; ++at) {
        Entry* entry = &table->entries[at % kEntries];
        if (load_acquire(&entry->number) == 0 || entry->hash == hash) {
            return entry;
        }
    }
}

void tell(const char* prefix, uint32_t number, const char* value) {
    char key[32];
    record_fact(Text(key, sizeof key).add(prefix).add_number(number).c_str(), value);
}

// `describe(number)` writes the fact for a new number. Without `may_add`, what is new gets the
// number of the rest.
template <typename Describe>
uint32_t number_of(Table* table, uint64_t hash, Describe describe, bool may_add = true) {
    const uint32_t known = load_acquire(&find(table, hash)->number);
    if (known != 0) [[likely]] {
        return known;
    }
    const SlowPath slow_path;
    // In a signal handler that interrupted the recorder, the number's fact could not be written, so
    // the number would have no meaning.
    if (t_thread.inside_recorder || !g_lock.lock_within(50 * kMillisecond_ns)) {
        return kNumberOfTheRest;
    }
    Entry* entry = find(table, hash);
    uint32_t number = entry->number;
    if (number == 0) {
        const bool room = may_add && kNumberOfTheRest + table->count < kMostNumbers;
        number = room ? kNumberOfTheRest + ++table->count : kNumberOfTheRest;
        if (room || !table->rest_told) {
            table->rest_told = table->rest_told || !room;
            describe(number);
        }
        if (room) {
            entry->hash = hash;
            store_release(&entry->number, number);
        }
    }
    g_lock.unlock();
    return number;
}

}  // namespace

uint32_t text_number(const char* text) {
    if (text == nullptr) {
        return 0;
    }
    return number_of(&g_texts, hash_of(text), [text](uint32_t number) {
        tell("text.", number, number == kNumberOfTheRest ? "(more names than are kept)" : text);
    });
}

uint32_t pool_number(PoolOwner owner, uint64_t first, uint64_t second) {
    if (first == 0 && second == 0) {
        return 0;
    }
    const uint64_t hash = mixed(mixed(first + 1) ^ (second * 2 + static_cast<uint64_t>(owner)));
    return number_of(&g_pools, hash, [=](uint32_t number) {
        char value[96];
        Text text(value, sizeof value);
        if (number == kNumberOfTheRest) {
            text.add("(more pools than are kept)");
        } else if (owner == PoolOwner::kPytorch) {
            text.add("pytorch ").add_number(first).add(",").add_number(second);
        } else {
            text.add("cuda 0x").add_hex(first);
        }
        tell("pool.", number, value);
    });
}

uint32_t program_pool_number(uint64_t instance, const char* identity) {
    constexpr uint64_t kOfPrograms = 0x9d39247e33776d41u;
    const auto describe = [=](uint32_t number) {
        char value[320];
        Text text(value, sizeof value);
        if (number == kNumberOfTheRest) {
            text.add("(more pools than are kept)");
        } else {
            text.add("program ").add(identity);
        }
        tell("pool.", number, value);
    };
    return number_of(
        &g_pools, mixed(mixed(instance + 1) ^ kOfPrograms), describe, identity != nullptr);
}

void name_pytorch_pool(uint64_t first, uint64_t second, const char* name) {
    constexpr uint64_t kMostNames = 7;  // the lowest three bits of an entry count them
    static uint64_t named[kMostNumbers + 1] = {};
    constexpr size_t kMostName_bytes = 200;
    const SlowPath slow_path;
    if (name == nullptr || t_thread.inside_recorder) {
        return;
    }
    const uint32_t pool = pool_number(PoolOwner::kPytorch, first, second);
    if (pool == 0 || pool == kNumberOfTheRest || !g_lock.lock_within(50 * kMillisecond_ns)) {
        return;
    }
    uint64_t& last = named[pool];
    const uint64_t names = last & kMostNames;
    const uint64_t hash = hash_of(name) & ~kMostNames;
    const bool is_new = names < kMostNames && (names == 0 || (last & ~kMostNames) != hash);
    last = is_new ? hash | (names + 1) : last;
    g_lock.unlock();
    if (is_new) {
        char key[32];
        char value[kMostName_bytes + 1];
        record_fact(Text(key, sizeof key).add("pool.").add_number(pool).add(".name").c_str(),
                    Text(value, sizeof value).add(name).c_str());
    }
}

void reset_numbers_lock() {
    g_lock.reset();
}

}  // namespace fragtrace::preload
