// Named ranges of a program: begun and ended by events, nested per thread.
#pragma once

#include "analyzer/model/timeline.h"

namespace fragtrace::analyzer {

// Fills Timeline::phases from the events kRangeBegin, kRangeEnd and kRecordingStopped.
void find_phases(Timeline* timeline);

}  // namespace fragtrace::analyzer
