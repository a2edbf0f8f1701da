// One line of text per event, for `fraganalyze dump`. The format is stable and easy to search.
#pragma once

#include "analyzer/model/timeline.h"
#include "analyzer/trace/symbols.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace fragtrace::analyzer {

// "block_alloc", "device_free", ...; "kind_N" for kinds that this version does not know.
std::string kind_name(EventKind kind);
// "api", "nvtx", "cell"; "other" for kinds that this version does not know.
std::string_view range_kind_name(RangeKind kind);

// The event's flags, separated by spaces: "from_allocator", "pending", ...; empty if it has none.
std::string flag_words(const Event& event);

// INDEX TIME_S DEVICE KIND key=value ... | line of the user's program. The symbolizer may be null;
// the last part is then left out. The timeline has the event's stream and origin, but may not have
// the event: `index` counts those of the trace. `pool` is the number of its pool.
std::string describe_event(const Timeline& timeline,
                           std::uint64_t index,
                           const Event& event,
                           std::uint32_t pool,
                           Symbolizer* symbols);

// The same for an event of the timeline.
std::string describe_event(const Timeline& timeline, EventIndex index, Symbolizer* symbols);

}  // namespace fragtrace::analyzer
