// Bytes by stack: the input of the formats that draw stacks.
#pragma once

#include "analyzer/export/formats.h"
#include "analyzer/model/recorded_state.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

struct StackWeight {
    OriginId origin = 0;
    std::uint64_t bytes = 0;
};

struct WeightedStacks {
    std::vector<StackWeight> stacks;  // most bytes first, without stacks of 0 bytes
    // The event after which the bytes are true. kNoEvent: they belong to no moment, or there is
    // none.
    EventIndex moment = kNoEvent;
};

// The earliest of the devices' reported out-of-memories (reported_oom()); kNoEvent = none.
EventIndex oom_moment(const Analysis& analysis);
// The peak of allocated memory of the device that allocated most; kNoEvent = no allocation.
EventIndex peak_moment(const Analysis& analysis);

// The event right after which formats show the memory: the one that the options name, else the
// reported out-of-memory, else the peak of allocated memory. An event of a checkpoint stands for
// the whole checkpoint. kNoEvent: there is none of these.
EventIndex shown_moment(const Analysis& analysis, const ExportOptions& options);
// The recorded memory after shown_moment().
RecordedState state_at_moment(const Analysis& analysis, const ExportOptions& options);

// - kHolders: the blocks of `state`, also freed ones that cannot be reused yet
// - kWaste: known for the diagnosed out-of-memories and retries, and at the peak of reserved
// memory.
//   The one nearest to `state` is used.
// - kAllocations: all allocations during the recording. Those that were live when it began are left
//   out
WeightedStacks weighted_stacks(const Analysis& analysis,
                               const DeviceAnalysis& device,
                               StackQuantity quantity,
                               const RecordedState& state);

// The frames of a stack, outermost first, each as one word of a flame graph: "function
// (file:line)". Never empty: a block without a stack has the frame "unknown".
std::vector<std::string> flame_frames(Symbolizer* symbols, OriginId origin);

}  // namespace fragtrace::analyzer
