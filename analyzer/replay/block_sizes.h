// The sizes of a snapshot's blocks, as a replay has them.
#pragma once

#include "analyzer/model/timeline.h"

namespace fragtrace::analyzer {

// A snapshot's history tells what was asked for, not how large the block was that served it: a
// block that was freed before the end may have had an unsplit remainder. A replay of the history
// knows. Its sizes are taken for each device on which it places every block where it was recorded,
// and has the sizes that the snapshot tells of the blocks at its end; elsewhere the sizes stay what
// the addresses tell.
void take_replayed_sizes(Timeline* timeline);

}  // namespace fragtrace::analyzer
