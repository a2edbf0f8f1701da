// Times in which the recorder saw nothing, and checkpoints: lists of live allocations for traces
// that begin in mid-run.
#pragma once

#include "analyzer/model/timeline.h"

#include <vector>

namespace fragtrace::analyzer {

// Fills Timeline::gaps and Timeline::checkpoints, and notes those without an end. `remarks` must
// include their events, in ascending order.
void find_recording_spans(Timeline* timeline, const std::vector<EventIndex>& remarks);

}  // namespace fragtrace::analyzer
