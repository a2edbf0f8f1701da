// Random traces of a caching pool's blocks and segments, as a recorder would have written them.
#pragma once

#include "tests/support/trace_writer.h"

namespace fragtrace::testing {

// Blocks of two private pools, of the default pool and of another stream in segments of 20 MiB,
// some of them pending. Users of the pools begin and end. Memory is also allocated outside the
// pool.
TraceWriter private_pools_trace(unsigned seed);

// Pages of two reservations are mapped and unmapped. Blocks span several pages. One reservation
// serves a graph's pool.
TraceWriter expandable_trace(unsigned seed);

}  // namespace fragtrace::testing
