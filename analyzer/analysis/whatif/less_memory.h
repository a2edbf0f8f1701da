// Advice that reduces the memory of the program itself. No replay can show its effect, so each
// entry gives the most that it could save.
#pragma once

#include "analyzer/analysis/whatif/advice.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

// Old memory at the peak, which del and gc.collect() might have freed. This is an estimate, since
// the last use of a block is not recorded. Parameters are old too but in use; the last step's loss
// is not counted, since it is not old.
struct HeldAtPeak {
    std::uint64_t live_bytes = 0;
    std::uint64_t older_bytes = 0;  // blocks that had lived through two steps
};

// Live memory by kind at one instant, by stack and lifetime: estimates. 0 = none known.
struct MemoryByKind {
    std::uint64_t parameters = 0;
    std::uint64_t gradients = 0;
    std::uint64_t optimizer_state = 0;
    std::uint64_t activations = 0;
    std::uint64_t allocated_bytes = 0;  // all live blocks
};

// The first request that was larger than all free memory.
struct Shortage {
    std::uint64_t requested_bytes = 0;
    // 0 = no request failed, or enough memory was free, or not known.
    std::uint64_t missing_bytes = 0;
    std::string_view kind = {};  // of the request: "activations"; empty = not known
};

// Entries without memory of their kind are left out. Numbers are taken to have 32 bits, since a
// trace has no data types; the entries say so. They are compared with the shortage of the failed
// request, not with that of its whole step: later in the step more memory of a kind can be live.
std::vector<Advice> less_memory_advice(const std::optional<HeldAtPeak>& held,
                                       const MemoryByKind& kinds,
                                       const Shortage& shortage);

}  // namespace fragtrace::analyzer
