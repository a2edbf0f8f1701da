// A row of the what-if table: what was tried, what came out of it, and how certain that is
// (row_class.h).
#pragma once

#include "analyzer/analysis/whatif/row_class.h"
#include "analyzer/analysis/whatif/script_change.h"
#include "analyzer/pools/pytorch/pytorch_rules.h"
#include "analyzer/replay/beside_pool.h"
#include "analyzer/replay/replayer.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

// What kind of change a row stands for.
enum class Remedy : std::uint8_t {
    kSettings,    // of the allocator; or another card, another pool
    kEmptyCache,  // torch.cuda.empty_cache() at given places
    kCachingOff,  // PYTORCH_NO_CUDA_MEMORY_CACHING=1
    kMoveFirst,   // some blocks are asked for before all others
    kOwnPool,     // some blocks come from a torch.cuda.MemPool of their own
    kOthersGone,  // what other holders have of the card is this pool's
};

// One thing to try.
struct Candidate {
    std::string name;  // as shown
    std::string pool = "pytorch";
    std::string config;                // allocator settings
    std::uint64_t capacity_bytes = 0;  // budget of the pool
    std::uint64_t total_bytes = 0;     // what the card reports
    Remedy remedy = Remedy::kSettings;
    std::shared_ptr<const ScriptChange> change = {};  // of the program; nullptr = none
    bool until_failure = false;  // only whether it fits: ends with the first request that fails
};

// What a row costs beside the recorded settings: differences of counts.
struct RowCost {
    std::int64_t driver_allocs = 0;  // cudaMallocs or maps
    std::int64_t driver_frees = 0;   // cudaFrees or unmaps
    std::int64_t retries = 0;
    std::int64_t synchronisations = 0;    // docs/metrics.md
    std::optional<std::int64_t> time_ns;  // by the recorded means of these calls; not measured
};

struct WhatIfRow {
    Candidate candidate;
    ReplayResult result;                // of a model that is an interval: its upper end
    std::optional<ReplayResult> lower;  // the lower end
    RowClass row_class = RowClass::kExact;
    BoundKind bound_kind = BoundKind::kNone;
    std::string class_reason;  // why it is not exact; empty when it is
    bool usable = true;
    std::string usable_reason;
    std::optional<RowCost> cost;  // against the recorded settings, where those were replayed
    // Of a row that gets past the out-of-memory at which the record ends: whether the rest of that
    // step is forecast to fit (forecast.h); nullopt = not forecast.
    std::optional<bool> rest_fits;
    bool is_recorded = false;  // the settings and the capacity of the recorded run
    // Reserved memory over the replay (reserved_curve.h), up to last_replayed_event(); empty where
    // the requests were served in another order than the record's.
    std::vector<std::uint64_t> reserved_curve;

    // Peak of reserved memory at the lower end of a model; else that of the result.
    [[nodiscard]] std::uint64_t least_reserved_bytes() const;
    // Requests of libraries beside the pool that would have failed included.
    [[nodiscard]] std::uint64_t ooms() const;
    [[nodiscard]] std::uint64_t retries() const;

    // The class in the words of class_words().
    [[nodiscard]] std::string class_text() const;

    // An out-of-memory of the record does not happen here: what would come after it is not in the
    // trace. Where the record goes on, it does so as after an error.
    [[nodiscard]] bool gets_past() const {
        return result.divergence && (result.divergence->kind == Divergence::Kind::kIsServed ||
                                     result.divergence->kind == Divergence::Kind::kGoesOn);
    }

    // It parts from the record with a request that fails here and was served there.
    [[nodiscard]] bool fails_first() const {
        return result.divergence && result.divergence->kind == Divergence::Kind::kFails;
    }

    [[nodiscard]] bool loses_pool() const {
        return result.divergence && result.divergence->kind == Divergence::Kind::kPoolLost;
    }
};

inline constexpr const char* kPoolLostReason =
    "PyTorch drops a private pool here while memory of it is mapped; what it does with that memory "
    "is undefined";

inline constexpr const char* kPagesReason =
    "how small requests share the driver's pages decides whether it fits";
inline constexpr const char* kBesidePoolReason =
    "memory beside the pool came and went, and with it what was left for the pool";

// The row that is the recorded run; nullptr without one.
const WhatIfRow* recorded_row(const std::vector<WhatIfRow>& rows);

// What limits the class of every row.
struct SweepContext {
    bool fidelity_exact = false;  // the recorded configuration replays exactly
    std::string recorded_config;
    std::uint64_t recorded_capacity_bytes = 0;
    std::uint64_t driver_page_bytes = std::uint64_t{2} << 20;  // what one driver request takes
    bool assumed = false;          // requested sizes or streams had to be assumed
    bool pending_assumed = false;  // cross-stream frees complete at other times than recorded
    // Of the pool; the card is known to have had as much. What needs more may have failed.
    std::uint64_t known_capacity_bytes = ~std::uint64_t{0};
    std::uint64_t adopted_bytes = 0;  // replay/script.h: what no replay can move
    BesidePool beside_pool = {};
    PytorchRules rules;  // of the recorded release: it takes only the settings that it knows

    // Why nothing that is said of a replay may be called exact, or a limit that no row can cross;
    // empty: it may, as a replay of the record under its own settings is what happened.
    [[nodiscard]] std::string_view why_not_exact() const;

    [[nodiscard]] bool is_exact() const { return why_not_exact().empty(); }
};

// Why a replay with other settings is an estimate where blocks are older than the record.
std::string adopted_reason(std::uint64_t adopted_bytes);

}  // namespace fragtrace::analyzer
