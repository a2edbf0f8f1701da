// Named ranges of a program: begun and ended by events, nested per thread.
#pragma once

#include "analyzer/model/timeline.h"

#include <vector>

namespace fragtrace::analyzer {

// Fills Timeline::phases from the events kRangeBegin, kRangeEnd and kRecordingStopped, all of which
// are among `remarks`, ascending.
void find_phases(Timeline* timeline, const std::vector<EventIndex>& remarks);

}  // namespace fragtrace::analyzer
