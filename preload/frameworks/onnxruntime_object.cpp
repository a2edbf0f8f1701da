#include "frameworks/onnxruntime_object.h"

#include "recorder/program_pools.h"
#include "system/sys.h"

#include <stddef.h>
#include <string.h>

namespace fragtrace::preload {
namespace {

// Where the object has them in release 1.31. Each use checks what it finds.
constexpr size_t kNameAt = 8;
constexpr size_t kLimitAt = 0x40;
constexpr size_t kStrategyAt = 0x48;
constexpr size_t kStatsAt = 0x560;
constexpr size_t kSettingsAt = 0x5e8;
constexpr size_t kLimitInStats = 9;  // words

struct Settings {
    int32_t first_region_bytes;
    int32_t most_waste_bytes;
    int32_t region_after_shrink_bytes;
    int32_t unused;
    int64_t most_doubled_bytes;
};

constexpr size_t kObjectBytes = kSettingsAt + sizeof(Settings);

// Another release may have smaller objects, with unmapped memory behind them.
bool can_read_object(const void* object) {
    static_assert(kObjectBytes <= 4096, "lies on at most two pages");
    const auto address = reinterpret_cast<uint64_t>(object);
    return can_read_word(address) && can_read_word(address + kObjectBytes - sizeof(uint64_t));
}

template <typename Value>
Value value_at(const char* object, size_t offset) {
    Value value;
    memcpy(&value, object + offset, sizeof value);
    return value;
}

}  // namespace

// A short name is inside the object.
const char* name_of_cuda_arena(const void* arena) {
    struct String {
        const char* text;
        size_t size;
        char inside[16];
    };

    const auto* name = reinterpret_cast<const String*>(static_cast<const char*>(arena) + kNameAt);
    const bool known = name->text == name->inside && name->size < sizeof name->inside &&
                       memcmp(name->inside, "Cuda", 4) == 0;
    return known ? name->inside : nullptr;
}

// The limit and the statistics of the object are known from another source, so they show whether
// its members are where they should be.
void record_arena_settings(uint32_t pool, const void* arena, const ArenaStats& stats) {
    if (!can_read_object(arena)) {
        return;
    }
    const auto* object = static_cast<const char*>(arena);
    const auto limit = value_at<uint64_t>(object, kLimitAt);
    const auto strategy = value_at<int32_t>(object, kStrategyAt);
    const auto found = value_at<Settings>(object, kSettingsAt);
    const auto* words = reinterpret_cast<const uint64_t*>(&stats);
    const bool known =
        words[kLimitInStats] == limit &&
        memcmp(object + kStatsAt, &stats, (kLimitInStats + 1) * sizeof(uint64_t)) == 0 &&
        (strategy == 0 || strategy == 1) && found.first_region_bytes > 0 &&
        found.most_waste_bytes >= 0 && found.region_after_shrink_bytes > 0 &&
        found.most_doubled_bytes > 0;
    if (!known) {
        return;
    }
    if (limit <= INT64_MAX) {
        set_program_pool_limit(pool, limit);
    }
    char text[200];
    set_program_pool_settings(
        pool,
        Text(text, sizeof text)
            .add("preallocate:0,onnxruntime:True,exact_regions:")
            .add(strategy == 1 ? "True" : "False")
            .add(",first_region:")
            .add_number(static_cast<uint64_t>(found.first_region_bytes))
            .add(",most_waste:")
            .add_number(static_cast<uint64_t>(found.most_waste_bytes))
            .add(",region_after_shrink:")
            .add_number(static_cast<uint64_t>(found.region_after_shrink_bytes))
            .add(",most_doubled:")
            .add_number(static_cast<uint64_t>(found.most_doubled_bytes))
            .c_str());
}

}  // namespace fragtrace::preload
