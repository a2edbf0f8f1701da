// Random traces of a caching pool's blocks and segments, as a recorder would have written them.
#pragma once

#include "tests/support/trace_writer.h"

namespace fragtrace::testing {

// Blocks of two private pools, the default one and another stream in segments of 20 MiB, some
// pending; users of the pools come and go; memory is obtained beside the pool.
TraceWriter private_pools_trace(unsigned seed);

// Pages of two reservations are mapped and unmapped; blocks reach over several; one reservation
// serves a graph's pool.
TraceWriter expandable_trace(unsigned seed);

}  // namespace fragtrace::testing
