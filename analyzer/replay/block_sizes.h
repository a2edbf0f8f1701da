// Corrects block sizes of a snapshot with the sizes from a replay.
#pragma once

#include "analyzer/model/timeline.h"
#include "analyzer/replay/compare_replay.h"

namespace fragtrace::analyzer {

// A snapshot's history contains requested sizes, but not the size of the block that served a
// request. A block that was freed before the end may have included an unsplit remainder. A replay
// of the history knows its size. A device's replayed sizes are used only if the replay places every
// block where it was recorded, and reproduces the sizes that the snapshot contains for blocks live
// at its end. Otherwise the sizes remain those derived from addresses.
void take_replayed_sizes(Timeline* timeline);

// The same with the sizes of a replay that has run. Returns true if a size changed.
bool correct_sizes(const OtherSizes& sizes, Timeline* timeline);

// Whether the timeline was made from a snapshot.
bool needs_replayed_sizes(const Timeline& timeline);

}  // namespace fragtrace::analyzer
