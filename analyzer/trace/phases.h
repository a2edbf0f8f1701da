// Named ranges of a program. Events begin and end them; they nest per thread.
#pragma once

#include "analyzer/model/timeline.h"

#include <vector>

namespace fragtrace::analyzer {

// Fills Timeline::phases from the events kRangeBegin, kRangeEnd and kRecordingStopped. `remarks`
// must include all of them, in ascending order.
void find_phases(Timeline* timeline, const std::vector<EventIndex>& remarks);

}  // namespace fragtrace::analyzer
