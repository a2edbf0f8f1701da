// Explains why a driver request outside a pool failed, and how much memory the pool could have
// returned.
#pragma once

#include "analyzer/analysis/verdict/verdict.h"

#include <cstdint>

namespace fragtrace::analyzer {

// Like judge(), for a driver request of `asked_bytes` that did not come from the pool. The driver
// had `device_free_bytes`. The request succeeds if that much is free there, so rungs about the
// pool's own requests are left out.
Verdict judge_library(Pool& state,
                      std::uint64_t asked_bytes,
                      std::uint64_t device_free_bytes,
                      std::uint64_t others_bytes);

}  // namespace fragtrace::analyzer
