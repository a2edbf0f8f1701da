// All that the report says of a device's holders, in one go.
#pragma once

#include "analyzer/analysis/holders/growth.h"
#include "analyzer/analysis/holders/part_growth.h"
#include "analyzer/analysis/holders/survivors.h"
#include "analyzer/analysis/metrics/other_processes.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// One instant that is looked into.
struct HeapInstant {
    EventIndex event = kNoEvent;
    const HeapSnapshot* heap = nullptr;
    enum class Kind : std::uint8_t { kOutOfMemory, kMostAllocated, kPeakReserved, kRetry };
    Kind kind = Kind::kPeakReserved;
};

struct DeviceHolders {
    Iterations iterations;
    // Of the out-of-memories, else of the peak of allocated memory; then of the retries. The first
    // is what a report speaks of.
    std::vector<Holders> holders;
    std::vector<IterationDifference> differences;  // per entry of `holders`
    std::vector<HeldBy> at_peak;                   // what was held at peak reserved
    Growth growth;
    std::vector<PartGrowth> parts;  // of iterations
    std::vector<Survivors> survivors;
    IterationPeaks peaks;
    std::uint64_t stacks_left_out = 0;  // whose frames were not looked at: "other"
};

// What is known of a card beside the pool.
struct CardMemory {
    std::uint64_t others_bytes = 0;  // context, libraries and other processes together
    std::uint64_t context_bytes = 0;
    std::uint64_t processes_bytes = 0;
};

// Instants by kind: those of out-of-memories and retries, and the peak of allocated memory where no
// out-of-memory is among them. `blocks`: the device has a caching pool; `failed`: all its
// out-of-memories, ascending. Names of places are looked up apart from the report's own, so that
// its notes tell of what it shows.
DeviceHolders find_holders(const Timeline& timeline,
                           DeviceId device,
                           bool blocks,
                           std::vector<HeapInstant> instants,
                           const std::vector<EventIndex>& failed,
                           const CardMemory& card,
                           const PeakHistory& peaks);

}  // namespace fragtrace::analyzer
