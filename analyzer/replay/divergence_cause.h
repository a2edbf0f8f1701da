// Explains why a replay places a block differently from the recording.
#pragma once

#include "analyzer/pools/pool.h"

#include <cstdint>
#include <string>

namespace fragtrace::analyzer {

// `pool` has just placed a block at `replayed`, and the recording has it at `segment` and
// `offset_bytes`. Returns one clause, derived from what lies at that place now. Empty if the cause
// is unknown.
std::string divergence_cause(const Pool& pool,
                             const Placement& replayed,
                             std::uint32_t segment,
                             std::uint64_t offset_bytes);

}  // namespace fragtrace::analyzer
