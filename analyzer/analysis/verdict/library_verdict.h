// Why a request to the driver beside a pool failed: what the pool could have given back.
#pragma once

#include "analyzer/analysis/verdict/verdict.h"

#include <cstdint>

namespace fragtrace::analyzer {

// As judge(), for a request of `asked_bytes` that somebody beside the pool made to the driver,
// which had `device_free_bytes`: served when so much is free there. Rungs about the pool's own
// requests are left out.
Verdict judge_library(Pool& state,
                      std::uint64_t asked_bytes,
                      std::uint64_t device_free_bytes,
                      std::uint64_t others_bytes);

}  // namespace fragtrace::analyzer
