// Finds everything that the report says about the holders of a device's memory.
#pragma once

#include "analyzer/analysis/holders/growth.h"
#include "analyzer/analysis/holders/part_growth.h"
#include "analyzer/analysis/holders/survivors.h"
#include "analyzer/analysis/metrics/other_processes.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// The known memory of a card outside the pool, at one instant.
struct CardMemory {
    std::uint64_t others_bytes = 0;  // context, libraries and other processes together
    std::uint64_t context_bytes = 0;
    std::uint64_t processes_bytes = 0;
};

// One instant whose address map is examined.
struct HeapInstant {
    EventIndex event = kNoEvent;
    const HeapSnapshot* heap = nullptr;
    CardMemory card = {};
    enum class Kind : std::uint8_t { kOutOfMemory, kMostAllocated, kPeakReserved, kRetry };
    Kind kind = Kind::kPeakReserved;
};

// The category under which reports show the blocks of a stack and label.
struct CategoryOfStack {
    OriginId origin = 0;     // one origin with this stack and label
    std::uint32_t name = 0;  // index into DeviceHolders::category_names
};

struct DeviceHolders {
    Iterations iterations;
    // First the out-of-memories or, without any, the peak of allocated memory; then the retries.
    // Reports describe the first entry.
    std::vector<Holders> holders;
    std::vector<IterationDifference> differences;  // one per entry of `holders`
    std::vector<HeldBy> at_peak;                   // memory in use at peak reserved, by line
    Growth growth;
    std::vector<PartGrowth> parts;  // growth by part of an iteration
    std::vector<Survivors> survivors;
    IterationPeaks peaks;
    std::vector<std::string> category_names;        // without "other"
    std::vector<CategoryOfStack> stack_categories;  // only of stacks with a name there
    std::vector<RuleUse> rule_uses;  // one per rule of the user, in the order of the file
    // Frames on which no rule was tried. 0 except for a made-up trace.
    std::uint64_t rule_frames_left_out = 0;
    // Their frames were not read, so their blocks count as "other".
    std::uint64_t stacks_left_out = 0;
};

// The comparison of the instant with the last good step; nullptr: there is none.
const IterationDifference* difference_at(const DeviceHolders& held, EventIndex event);

// Examines the instants in the order of their kinds. The peak of allocated memory is used only if
// no instant is an out-of-memory. `blocks`: the device has a caching pool. `failed`: all
// out-of-memories of the device, ascending. Uses its own symbolizer, so that the report's notes
// describe only the stacks that it shows. `rules`: the user's categories; nullptr = none.
DeviceHolders find_holders(const Timeline& timeline,
                           DeviceId device,
                           bool blocks,
                           std::vector<HeapInstant> instants,
                           const std::vector<EventIndex>& failed,
                           const PeakHistory& peaks,
                           const CategoryRules* rules);

}  // namespace fragtrace::analyzer
