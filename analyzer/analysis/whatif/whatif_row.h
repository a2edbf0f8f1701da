// A row of the what-if table: the change, the result, and how certain it is (row_class.h).
#pragma once

#include "analyzer/analysis/whatif/row_class.h"
#include "analyzer/analysis/whatif/script_change.h"
#include "analyzer/pools/pytorch/pytorch_rules.h"
#include "analyzer/replay/beside_pool.h"
#include "analyzer/replay/replayer.h"
#include "analyzer/support/units.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

// The kind of change that a row tries.
enum class Remedy : std::uint8_t {
    kSettings,    // allocator settings, another card or another pool
    kEmptyCache,  // torch.cuda.empty_cache() at given places
    kCachingOff,  // PYTORCH_NO_CUDA_MEMORY_CACHING=1
    kMoveFirst,   // some blocks are allocated before all others
    kOwnPool,     // some blocks are allocated in a torch.cuda.MemPool of their own
    kOthersGone,  // the pool also gets the memory of other holders on the card
};

// One thing to try.
struct Candidate {
    std::string name;  // as shown
    std::string pool = "pytorch";
    std::string config;                // allocator settings
    std::uint64_t capacity_bytes = 0;  // bytes for the pool
    std::uint64_t total_bytes = 0;     // size that the card reports
    Remedy remedy = Remedy::kSettings;
    std::shared_ptr<const ScriptChange> change = {};  // change of the program; nullptr = none
    bool until_failure = false;  // end with the first failed request, to see only whether it fits
    // End when more is reserved: the row is then known to be worse than another one.
    std::uint64_t most_reserved_bytes = ~std::uint64_t{0};

    [[nodiscard]] bool may_end_early() const {
        return until_failure || most_reserved_bytes != ~std::uint64_t{0};
    }
};

// Cost of a row minus cost of the recorded settings, as counts.
struct RowCost {
    std::int64_t driver_allocs = 0;  // cudaMallocs or maps
    std::int64_t driver_frees = 0;   // cudaFrees or unmaps
    std::int64_t retries = 0;
    std::int64_t synchronisations = 0;  // docs/metrics.md
    // From the recorded means of these calls; nullopt = not measured.
    std::optional<std::int64_t> time_ns;
};

struct WhatIfRow {
    Candidate candidate;
    ReplayResult result;                // if the pool's model is an interval: its upper end
    std::optional<ReplayResult> lower;  // the lower end of that interval
    RowClass row_class = RowClass::kExact;
    BoundKind bound_kind = BoundKind::kNone;
    std::string class_reason;  // why it is not exact; empty = it is exact
    bool usable = true;
    std::string usable_reason;
    std::optional<RowCost> cost;  // set if the recorded settings were replayed
    // For a row that gets past the recorded out-of-memory: whether the rest of that step is
    // forecast to fit (forecast.h). nullopt = not forecast.
    std::optional<bool> rest_fits;
    bool is_recorded = false;  // has the settings and the capacity of the recorded run
    // Reserved memory over the replay (reserved_curve.h), up to last_replayed_event(). Empty if the
    // requests were replayed in another order than recorded, or only up to the first failure.
    std::vector<std::uint64_t> reserved_curve;

    // Peak of reserved memory; for an interval, its lower end.
    [[nodiscard]] std::uint64_t least_reserved_bytes() const;
    // Includes requests of libraries outside the pool that would have failed.
    [[nodiscard]] std::uint64_t ooms() const;
    [[nodiscard]] std::uint64_t retries() const;

    // The class in words, from class_words().
    [[nodiscard]] std::string class_text() const;

    // A recorded out-of-memory does not happen here. If the recording ends there, later requests
    // are not in the trace. If it continues, it does so as after an error.
    [[nodiscard]] bool gets_past() const {
        return result.divergence && (result.divergence->kind == Divergence::Kind::kIsServed ||
                                     result.divergence->kind == Divergence::Kind::kGoesOn);
    }

    // The replay diverges with a request that fails here and succeeded in the recorded run.
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

// The row of the recorded run; nullptr = none.
const WhatIfRow* recorded_row(const std::vector<WhatIfRow>& rows);

// Facts that limit the class of every row.
struct SweepContext {
    bool fidelity_exact = false;  // the recorded settings replay exactly
    std::string recorded_config;
    std::uint64_t recorded_capacity_bytes = 0;
    std::uint64_t driver_page_bytes = kDriverPageBytes;  // page size of driver requests
    bool assumed = false;          // requested sizes or streams were unknown and had to be assumed
    bool pending_assumed = false;  // cross-stream frees complete at other times than recorded
    // Bytes for the pool that the card certainly had. A replay that needs more might fail.
    std::uint64_t known_capacity_bytes = ~std::uint64_t{0};
    std::uint64_t adopted_bytes = 0;  // memory that no replay can move (replay/script.h)
    BesidePool beside_pool = {};
    PytorchRules rules;  // of the recorded release, which accepts only the settings that it knows

    // Why no statement about a replay may be called exact, or a limit that no row can cross. Empty:
    // it may, since a replay with the recorded settings equals the recorded run.
    [[nodiscard]] std::string_view why_not_exact() const;

    [[nodiscard]] bool is_exact() const { return why_not_exact().empty(); }
};

// Why a replay with other settings is an estimate if blocks are older than the recording.
std::string adopted_reason(std::uint64_t adopted_bytes);

}  // namespace fragtrace::analyzer
