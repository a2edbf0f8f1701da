// Reads a long trace in part: windows of its events, as one Timeline with a limited number of
// events. Between two windows the timeline has a gap, as if recording had been stopped, and then a
// checkpoint: the allocations that are live at the begin of the window, with their stacks and
// times. So everything that understands gaps of a recording can work with windows.
#pragma once

#include "analyzer/model/timeline.h"
#include "analyzer/trace/event_stream.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// Events [begin, end) of the trace, as EventStream::for_each() counts them.
struct EventWindow {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;

    bool operator==(const EventWindow&) const = default;
};

// `windows` are ascending and apart. A window can begin later than asked: not while recording is
// stopped, and only where enough events were left out to give their numbers to the checkpoint.
// Reads the file twice. Needs memory for the events in the windows, for a checkpoint of each, and
// 105 bytes for each allocation that is live at a time.
Timeline read_windows(EventStream* stream, const std::vector<EventWindow>& windows);

}  // namespace fragtrace::analyzer
