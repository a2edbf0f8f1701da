// Which events of a trace are read if it is too long to be kept in memory: those around failures,
// peaks and the end.
#pragma once

#include "analyzer/analysis/metrics/trace_summary.h"
#include "analyzer/trace/window_reader.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// A report of so many events needed 952 MB, a page 1.65 GB (docs/reliability.md).
inline constexpr std::uint64_t kMostEvents = 12'000'000;

// With fewer events, a window may miss the request that it is for.
inline constexpr std::uint64_t kLeastEvents = 100;

// Windows that end shortly after the moments that a report explains: on each device the first and
// the last out-of-memory and the peaks of reserved and allocated memory, and the first failure of a
// pool of the program's own. The last window ends with the trace. Windows that lie close together
// are one. Together with their checkpoints they have at most `most_events`; if that is too little
// for a window per moment, the moments at the end of the list above have none.
std::vector<EventWindow> choose_windows(const TraceSummary& summary, std::uint64_t most_events);

}  // namespace fragtrace::analyzer
