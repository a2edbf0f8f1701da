// Why a replay puts a block elsewhere than the record does.
#pragma once

#include "analyzer/pools/pool.h"

#include <cstdint>
#include <string>

namespace fragtrace::analyzer {

// `pool` has just put a block at `replayed`, where the record has it at `segment` and `offset`.
// One clause, from what lies there now; empty when nothing can be said.
std::string divergence_cause(const Pool& pool,
                             const Placement& replayed,
                             std::uint32_t segment,
                             std::uint64_t offset_bytes);

}  // namespace fragtrace::analyzer
