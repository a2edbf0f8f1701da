// Peaks and counts of a run, recorded or replayed: the same keys for both.
#pragma once

#include "analyzer/replay/replayer.h"

#include <cstdint>

namespace fragtrace::analyzer {

// docs/metrics.md has the definitions. Every peak is its quantity's own maximum.
struct MemorySummary {
    std::uint64_t peak_requested = 0;
    std::uint64_t peak_allocated = 0;
    std::uint64_t peak_active = 0;
    std::uint64_t peak_reserved = 0;
    // Requests that PyTorch passed to the driver while its caching was off: in none of the above.
    std::uint64_t peak_past_pool = 0;
    std::uint64_t peak_with_past_pool = 0;  // of reserved and these together
    // The split once the request completed that first brought reserved to its maximum.
    WasteSplit waste_at_peak;
    std::uint64_t segments_allocated = 0;
    std::uint64_t segments_freed = 0;
    std::uint64_t retries = 0;
    std::uint64_t ooms = 0;
};

}  // namespace fragtrace::analyzer
