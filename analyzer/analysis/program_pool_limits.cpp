#include "analyzer/analysis/program_pool_limits.h"

#include "analyzer/analysis/program_pool_replay.h"
#include "analyzer/analysis/program_pool_trials.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// A larger limit of the same pool, in the terms of the program's framework.
struct LimitSetting {
    enum class Unit { kBytes, kMiB, kShareOfCard };

    std::string_view kind;    // of the program's pool
    std::string_view change;  // "{}" stands for the limit
    Unit unit = Unit::kBytes;
    std::string_view framework = {};  // the fact that says "recorded"; empty: any
};

constexpr std::array<LimitSetting, 5> kLimits = {{
    {"bfc", "XLA_PYTHON_CLIENT_MEM_FRACTION={:.2f}", LimitSetting::Unit::kShareOfCard, "jax.pool"},
    {"bfc",
     "tf.config.LogicalDeviceConfiguration(memory_limit={})",
     LimitSetting::Unit::kMiB,
     "tensorflow.pool"},
    {"bfc", "provider option gpu_mem_limit={}", LimitSetting::Unit::kBytes, "onnxruntime.pool"},
    {"cupy", "mempool.set_limit(size={})"},
    {"rmm-pool", "rmm.mr.PoolMemoryResource(..., maximum_pool_size={})"},
}};

// What the driver said about a card before an event.
struct Card {
    std::uint64_t free_bytes = 0;   // less what the process allocated since the driver said so
    std::uint64_t total_bytes = 0;  // 0 = it said nothing
};

Card card_before(const Timeline& timeline, DeviceId device, EventIndex before) {
    std::uint64_t taken_bytes = 0;
    for (EventIndex i = before; i-- > 0;) {
        const EventKind kind = timeline.events.kind(i);
        const bool takes = has_trait(kind, kTakesMemory);
        if ((kind != EventKind::kMemoryInfo && !takes) || timeline.events.device(i) != device) {
            continue;
        }
        const Event event = timeline.events[i];
        if (takes) {
            taken_bytes += event.size_bytes == kUnknown64 ? 0 : event.size_bytes;
        } else {
            return {event.size_bytes - std::min(event.size_bytes, taken_bytes), event.extra};
        }
    }
    return {};
}

// The least limit, up to `most_bytes`, with which the request is served; 0 = none. It is found to
// 2 MiB, in long traces to 1/128 of the difference: each step of the search is a replay.
std::uint64_t least_limit(const ReplayScript& script,
                          const ProgramPool& pool,
                          std::uint64_t first_segment_bytes,
                          std::uint64_t most_bytes) {
    const auto serves = [&](std::uint64_t limit_bytes) {
        ProgramPoolRemedy remedy{.change = "", .pool = pool.kind};
        return try_settings(
                   script, own_settings(pool, first_segment_bytes, limit_bytes), &remedy) &&
               remedy.serves == ProgramPoolRemedy::Serves::kYes;
    };
    if (most_bytes <= pool.limit_bytes || !serves(most_bytes)) {
        return 0;
    }
    std::uint64_t too_little = pool.limit_bytes;
    std::uint64_t enough = most_bytes;
    constexpr std::size_t kManySteps = 1'000'000;
    const bool is_long = script.steps.size() > kManySteps;
    const std::uint64_t step =
        is_long ? std::max(kDriverPageBytes, (most_bytes - too_little) / 128) : kDriverPageBytes;
    while (enough - too_little > step) {
        const std::uint64_t middle = too_little + (enough - too_little) / 2;
        (serves(middle) ? enough : too_little) = middle;
    }
    return enough;
}

// The limit as the setting gives it, rounded up. Returns its bytes, and fills the text.
std::uint64_t round_limit(const LimitSetting& setting,
                          std::uint64_t limit_bytes,
                          std::uint64_t total_bytes,
                          std::string* change) {
    switch (setting.unit) {
        case LimitSetting::Unit::kBytes:
            break;
        case LimitSetting::Unit::kMiB:
            limit_bytes = round_up(limit_bytes, kMiB);
            *change = fmt::format(fmt::runtime(setting.change), limit_bytes / kMiB);
            return limit_bytes;
        case LimitSetting::Unit::kShareOfCard: {
            const double percent = std::ceil(100.0 * static_cast<double>(limit_bytes) /
                                             static_cast<double>(total_bytes));
            *change = fmt::format(fmt::runtime(setting.change), percent / 100);
            return static_cast<std::uint64_t>(static_cast<double>(total_bytes) * percent / 100);
        }
    }
    *change = fmt::format(fmt::runtime(setting.change), limit_bytes);
    return limit_bytes;
}

}  // namespace

void try_larger_limit(const Timeline& timeline,
                      const ProgramPoolWalk::Key& key,
                      const ProgramPoolWalk& walk,
                      const ReplayScript& script,
                      ProgramPool* pool) {
    const ProgramPoolMoment& failed = pool->failures.front();
    const Card card = card_before(timeline, key.device, failed.event);
    if (!pool->is_limited() || !is_simulated(*pool) || pool->memory != PoolMemory::kDevice ||
        card.total_bytes == 0) {
        return;
    }
    const std::uint64_t most_bytes = failed.reserved_bytes + card.free_bytes;
    const std::uint64_t first_bytes = first_segment_bytes(key, walk);
    const auto* const setting =
        std::find_if(kLimits.begin(), kLimits.end(), [&](const LimitSetting& one) {
            return one.kind == pool->kind &&
                   (one.framework.empty() || is_recorded(timeline, one.framework));
        });
    const std::uint64_t least_bytes =
        setting == kLimits.end() ? 0 : least_limit(script, *pool, first_bytes, most_bytes);
    if (least_bytes == 0) {
        return;
    }
    ProgramPoolRemedy remedy{.change = "", .pool = pool->kind};
    remedy.limit_bytes = round_limit(*setting, least_bytes, card.total_bytes, &remedy.change);
    // Rounding may have made it larger than the card allows.
    if (remedy.limit_bytes <= most_bytes &&
        try_settings(script, own_settings(*pool, first_bytes, remedy.limit_bytes), &remedy) &&
        remedy.serves == ProgramPoolRemedy::Serves::kYes) {
        pool->remedies.push_back(std::move(remedy));
    }
}

}  // namespace fragtrace::analyzer
