// What the recorder says of itself: times in which it saw nothing, and what was held when a trace
// begins in mid-life.
#pragma once

#include "analyzer/model/timeline.h"

#include <vector>

namespace fragtrace::analyzer {

// Fills Timeline::gaps and Timeline::checkpoints, and notes what has no end. The events that say it
// are among `remarks`, ascending.
void find_recording_spans(Timeline* timeline, const std::vector<EventIndex>& remarks);

}  // namespace fragtrace::analyzer
