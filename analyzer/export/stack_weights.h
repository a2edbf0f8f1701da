// Bytes by stack: the input of the formats that draw stacks.
#pragma once

#include "analyzer/export/formats.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

struct StackWeight {
    OriginId origin = 0;
    std::uint64_t bytes = 0;
};

// The moment that is shown if the user names none: the first out-of-memory of any device, else the
// peak of allocated memory of the device that allocated most. kNoEvent: no event at all.
EventIndex default_moment(const Analysis& analysis);

// The event right after which formats show the memory: the one of the options, else the default. An
// event of a checkpoint stands for the whole checkpoint.
EventIndex shown_moment(const Analysis& analysis, const ExportOptions& options);

// Most bytes first, without stacks of 0 bytes. Includes pending blocks (freed, but not reusable).
// kWaste is known at the moments of analysis.devices[].diagnoses and at the peak of reserved
// memory; the one nearest to `moment` is used.
std::vector<StackWeight> stack_weights(const Analysis& analysis,
                                       const DeviceAnalysis& device,
                                       StackQuantity quantity,
                                       EventIndex moment);

// The frames of a stack, outermost first, each as one word of a flame graph: "function
// (file:line)". Never empty: a block without a stack has the frame "unknown".
std::vector<std::string> flame_frames(Symbolizer* symbols, OriginId origin);

}  // namespace fragtrace::analyzer
