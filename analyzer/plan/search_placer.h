// Placement within a given capacity by search. Buffers are placed from the bottom up, each on top
// of those already there. The search backtracks when some moment has too little room left.
//
// Any solution can be compacted downwards until every buffer rests on another one or on the ground.
// If its buffers are placed in the order of their offsets, each gets its lowest possible offset. So
// searching such orders is enough, as MiniMalloc does (doi 10.1145/3623278.3624752). Exact for
// small problems. The number of steps is limited, so kGaveUp proves nothing.
#pragma once

#include "analyzer/plan/lifetimes.h"

#include <cstdint>
#include <span>
#include <vector>

namespace fragtrace::analyzer {

enum class SearchOutcome : std::uint8_t { kFound, kImpossible, kGaveUp };

class SearchPlacer {
  public:
    // Keeps references: both must stay unchanged while the placer is used.
    SearchPlacer(std::span<const Lifetime> lifetimes, const Overlaps& overlaps);

    // One step places one buffer. Among buffers that fit at the same height, those earlier in
    // `order` are tried first. `offsets` is filled only if a placement was found.
    SearchOutcome place(std::uint64_t capacity_bytes,
                        const std::vector<std::uint32_t>& order,
                        std::uint64_t steps,
                        std::vector<std::uint64_t>* offsets);

    // For each buffer, how often it had no room in the last call. A high count means hard to place.
    [[nodiscard]] const std::vector<std::uint64_t>& blame() const { return blame_; }

    // Maximum cost of a step, in visits to a buffer.
    [[nodiscard]] std::uint64_t work_per_step() const { return work_per_step_; }

  private:
    struct Change {
        std::uint32_t buffer;
        std::uint64_t least_offset;
    };

    struct PutDown {
        std::uint32_t buffer;
        std::size_t changes;  // length of trail_ before
    };

    SearchOutcome place_parts(const std::vector<std::uint32_t>& rest, std::uint64_t last_offset);
    SearchOutcome place_part(const std::vector<std::uint32_t>& part, std::uint64_t last_offset);
    bool put_down(std::uint32_t buffer,
                  std::uint64_t offset,
                  const std::vector<std::uint32_t>& rest);
    void take_back(std::uint32_t buffer, std::size_t changes);
    [[nodiscard]] bool moment_has_room(std::uint32_t moment, std::uint64_t last_offset) const;

    std::span<const Lifetime> lifetimes_;
    const Overlaps& overlaps_;
    std::vector<std::uint32_t> buffers_;               // buffers that need a place, by begin
    std::vector<std::vector<std::uint32_t>> live_at_;  // per moment
    std::vector<Moments> moments_of_;
    std::uint64_t work_per_step_ = 0;

    std::uint64_t capacity_ = 0;
    std::uint64_t steps_left_ = 0;
    std::vector<std::uint32_t> rank_;
    std::vector<std::uint64_t> least_offset_;  // given the placed buffers
    std::vector<std::uint64_t> offset_;
    std::vector<std::uint8_t> placed_;
    std::vector<std::uint64_t> unplaced_bytes_;  // per moment
    std::vector<Change> trail_;
    std::vector<PutDown> down_;
    std::vector<std::uint64_t> blame_;
};

}  // namespace fragtrace::analyzer
