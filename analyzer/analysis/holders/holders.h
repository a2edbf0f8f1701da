// Who holds the memory of a device at one instant, by kind and by place in the program; and what
// holds more than at the same place of an earlier iteration. Plain data; docs/metrics.md, Holders.
#pragma once

#include "analyzer/analysis/holders/run_history.h"
#include "analyzer/model/heap_snapshot.h"
#include "analyzer/model/held_by.h"
#include "analyzer/trace/symbols.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

// The live blocks that came from the same line and are of one kind.
struct HoldingPlace {
    HeldBy held;  // of a difference: more (or less) than before
    Category category = Category::kOther;
};

struct Holding {
    Category category = Category::kOther;
    std::uint64_t bytes = 0;
    std::uint64_t blocks = 0;
    std::uint64_t earlier_bytes = 0;  // of them, allocated before the iteration of the instant
    // Allocated in an iteration before the last one that was complete: what a step makes and the
    // next one gives back is not counted.
    std::uint64_t old_bytes = 0;
};

// Memory of the card that is not the pool's, at the same instant.
struct OutsideMemory {
    std::uint64_t libraries = 0;  // allocations of this process whose stack names a library of CUDA
    std::uint64_t past_pool = 0;  // requests that PyTorch passed to the driver, its caching off
    std::uint64_t other = 0;      // other ones of this process, mappings included
    std::uint64_t context = 0;
    std::uint64_t processes = 0;  // other processes, as far as the driver's library told
    std::uint64_t not_known = 0;  // nobody's, of what the driver says is taken
};

struct Holders {
    EventIndex event = kNoEvent;
    bool at_peak = false;               // after the request that made allocated greatest
    std::uint64_t allocated_bytes = 0;  // of all live blocks: the sum of `categories`, exactly
    std::vector<Holding> categories;    // those that hold anything, most bytes first
    std::vector<HoldingPlace> places;   // most bytes first, at most kMostPlaces
    std::uint64_t places_left_out = 0;
    OutsideMemory outside;
};

inline constexpr std::size_t kMostPlaces = 40;

// Names the blocks of an address map: by line, or by size where none of them has a stack.
class BlockLabels {
  public:
    // All must outlive the labels.
    BlockLabels(const Timeline& timeline, const HeapSnapshot& heap, Symbolizer* symbols);

    // Blocks of one key have one label.
    [[nodiscard]] std::pair<OriginId, std::uint64_t> key_of(const HeapBlock& block) const;
    [[nodiscard]] std::string label_of(const std::pair<OriginId, std::uint64_t>& key) const;

  private:
    const Timeline& timeline_;
    Symbolizer* symbols_;
    bool by_size_ = true;
};

// Of an address map: all blocks that are not free, pending ones included, most bytes first, at most
// ten lines.
std::vector<HeldBy> held_lines(const Timeline& timeline,
                               const HeapSnapshot& heap,
                               Symbolizer* symbols);

// Of an address map at `event`. `symbols` names the places.
Holders holders_of(const Timeline& timeline,
                   const HeapSnapshot& heap,
                   EventIndex event,
                   const RunHistory& history,
                   StackMarks* marks,
                   Symbolizer* symbols);

// An instant against the same place of the last iteration without an out-of-memory.
struct IterationDifference {
    std::size_t iteration = 0;  // of the instant, from 1; 0 = there is nothing to compare with
    std::size_t against = 0;
    EventIndex event = kNoEvent;
    EventIndex place = kNoEvent;         // the same place: after this request
    std::int64_t bytes = 0;              // allocated, more or less
    std::uint64_t asked_bytes = 0;       // by requests since the iteration began
    std::uint64_t asked_bytes_then = 0;  // up to the same place
    std::vector<HoldingPlace> places;    // most difference first, at most kMostPlaces
};

// `failed`: out-of-memory events of the device, ascending.
IterationDifference difference_to_last_good(const Timeline& timeline,
                                            EventIndex event,
                                            const std::vector<EventIndex>& failed,
                                            const RunHistory& history,
                                            Symbolizer* symbols);

// What stands to one stack's account.
struct StackSum {
    std::uint32_t stack = 0;
    std::int64_t bytes = 0;
    std::int64_t blocks = 0;
};

// Bytes of stacks, joined by line and kind; the greatest first (by absolute value).
std::vector<HoldingPlace> places_of(const std::vector<StackSum>& sums,
                                    const RunHistory& history,
                                    Symbolizer* symbols);

}  // namespace fragtrace::analyzer
