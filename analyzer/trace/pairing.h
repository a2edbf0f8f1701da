// Finds for every allocation its release and the other way round, in both layers.
//
// Fills Timeline::partner, the device of events that lack one but have a partner, and the pairing
// counters and notes of Timeline::damage. A device reset or the end of the trace pairs nothing. A
// pool that is rewound ends its blocks: they get the kPoolRewind as partner, which has none itself.
#pragma once

#include "analyzer/model/timeline.h"

namespace fragtrace::analyzer {

void pair_events(Timeline* timeline);

}  // namespace fragtrace::analyzer
