// The holders of a device's memory at one instant, by kind and by place in the program. Also what
// holds more than at the same place of an earlier iteration. Plain data; docs/metrics.md, Holders.
#pragma once

#include "analyzer/analysis/holders/held_pools.h"
#include "analyzer/analysis/holders/run_history.h"
#include "analyzer/model/heap_snapshot.h"
#include "analyzer/model/held_by.h"
#include "analyzer/trace/symbols.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

// Live blocks of one kind that the same line allocated.
struct HoldingLine {
    HeldBy held;  // in a difference: more (or less) than before
    Category category = Category::kOther;
    std::string user_category = {};  // by a rule of the user; empty = no rule matches
};

// Live blocks of one kind and of one category of the user.
struct Holding {
    Category category = Category::kOther;
    std::string user_category = {};  // empty = no rule matches
    std::uint64_t bytes = 0;
    std::uint64_t blocks = 0;
    // Part of `bytes` that was allocated before the instant's iteration.
    std::uint64_t earlier_bytes = 0;
    // Part of `bytes` that was allocated in an iteration, and before the last complete one. It
    // excludes memory that one step allocates and the next step frees.
    std::uint64_t old_bytes = 0;
};

// Memory of the card outside the pool, at the same instant.
struct OutsideMemory {
    std::uint64_t libraries = 0;  // allocations of this process whose stack has a CUDA library
    // Requests that PyTorch passed to the driver while caching was off.
    std::uint64_t past_pool = 0;
    std::uint64_t other = 0;  // all other allocations of this process, mappings included
    std::uint64_t context = 0;
    std::uint64_t processes = 0;  // other processes, as far as the driver's library reported them
    // Memory that the driver reports as used, but whose owner is unknown.
    std::uint64_t not_known = 0;
};

struct Holders {
    EventIndex event = kNoEvent;
    bool at_peak = false;               // the instant is the peak of allocated memory
    std::uint64_t allocated_bytes = 0;  // all live blocks: exactly the sum of `categories`
    std::vector<Holding> categories;    // those with at least one block, most bytes first
    std::vector<HoldingLine> places;    // most bytes first, at most kMostPlaces
    std::uint64_t places_left_out = 0;
    std::vector<PrivatePool> private_pools;
    OutsideMemory outside;
};

inline constexpr std::size_t kMostPlaces = 40;

// The name under which a report shows the blocks: the user's category, else the built-in one.
template <typename Row>
std::string_view shown_category(const Row& row) {
    return row.user_category.empty() ? category_name(row.category)
                                     : std::string_view(row.user_category);
}

// Whether shown_category() says more than "other".
template <typename Row>
bool category_known(const Row& row) {
    return !row.user_category.empty() || row.category != Category::kOther;
}

// The row for the same line of code and the same category; nullptr: there is none.
const HoldingLine* same_line(const std::vector<HoldingLine>& rows, const HoldingLine& row);

// Labels the blocks of an address map: by line, or by size if no block has a stack.
class BlockLabels {
  public:
    // All arguments must outlive this object.
    BlockLabels(const Timeline& timeline, const HeapSnapshot& heap, Symbolizer* symbols);

    // Blocks with equal keys have the same label.
    [[nodiscard]] std::pair<OriginId, std::uint64_t> key_of(const HeapBlock& block) const;
    [[nodiscard]] std::string label_of(const std::pair<OriginId, std::uint64_t>& key) const;

  private:
    const Timeline& timeline_;
    Symbolizer* symbols_;
    bool by_size_ = true;
};

// The lines that hold most memory in an address map: at most ten, most bytes first. Counts all
// blocks that are not free, pending ones included.
std::vector<HeldBy> held_lines(const Timeline& timeline,
                               const HeapSnapshot& heap,
                               Symbolizer* symbols);

// The holders in an address map at `event`. `symbols` names the places.
Holders holders_of(const Timeline& timeline,
                   const HeapSnapshot& heap,
                   EventIndex event,
                   const RunHistory& history,
                   StackMarks* marks,
                   RuleFinder* rules,
                   Symbolizer* symbols);

// Compares an instant with the same place in the last iteration without an out-of-memory.
struct IterationDifference {
    // The instant's iteration, from 1; 0 = there is nothing to compare with.
    std::size_t iteration = 0;
    std::size_t against = 0;
    EventIndex event = kNoEvent;
    // The same place in the earlier iteration: right after this request.
    EventIndex place = kNoEvent;
    std::int64_t bytes = 0;              // difference of allocated bytes
    std::uint64_t asked_bytes = 0;       // requested since the iteration began
    std::uint64_t asked_bytes_then = 0;  // requested in the earlier iteration up to the same place
    std::vector<HoldingLine> places;     // largest difference first, at most kMostPlaces
};

// `failed`: out-of-memory events of the device, ascending.
IterationDifference difference_to_last_good(const Timeline& timeline,
                                            EventIndex event,
                                            const std::vector<EventIndex>& failed,
                                            const RunHistory& history,
                                            const RuleFinder& rules,
                                            Symbolizer* symbols);

// Bytes and blocks of one stack with one label.
struct StackSum {
    std::uint32_t labelled = 0;  // an index of Requests::labelled_stacks
    std::int64_t bytes = 0;
    std::int64_t blocks = 0;
};

// Joins the bytes of stacks by line and kind. The largest absolute value comes first.
std::vector<HoldingLine> places_of(const std::vector<StackSum>& sums,
                                   const RunHistory& history,
                                   const RuleFinder& rules,
                                   Symbolizer* symbols);

// The line, the kind and the user's category of a stack with a label. Its bytes are 0.
HoldingLine line_of(std::uint32_t labelled,
                    const RunHistory& history,
                    const RuleFinder& rules,
                    Symbolizer* symbols);

}  // namespace fragtrace::analyzer
