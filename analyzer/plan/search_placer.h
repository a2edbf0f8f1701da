// Placement within a given capacity by search: the buffers are put down from the bottom up, each on
// what is already there, with everything taken back that leaves some moment with too little room.
//
// A solution may be pushed down until every buffer rests on another one or on the ground; put down
// in the order of their offsets, each lies as low as it can. So only that order is searched, as
// MiniMalloc does (doi 10.1145/3623278.3624752). Exact for small problems; the number of steps is
// bounded, so that "not found" is no proof.
#pragma once

#include "analyzer/plan/lifetimes.h"

#include <cstdint>
#include <span>
#include <vector>

namespace fragtrace::analyzer {

enum class SearchOutcome : std::uint8_t { kFound, kImpossible, kGaveUp };

class SearchPlacer {
  public:
    // Both must remain as they are while the placer is used.
    SearchPlacer(std::span<const Lifetime> lifetimes, const Overlaps& overlaps);

    // Of buffers that could be put down at the same height those earlier in `order` are tried
    // first. `offsets` is filled only when found. A step is a buffer put down.
    SearchOutcome place(std::uint64_t capacity_bytes,
                        const std::vector<std::uint32_t>& order,
                        std::uint64_t steps,
                        std::vector<std::uint64_t>* offsets);

    // How often each buffer had no room in the last call: those are hard to place.
    [[nodiscard]] const std::vector<std::uint64_t>& blame() const { return blame_; }

    // What a step costs at most, in visits to a buffer.
    [[nodiscard]] std::uint64_t work_per_step() const { return work_per_step_; }

  private:
    struct Change {
        std::uint32_t buffer;
        std::uint64_t least_offset;
    };

    struct PutDown {
        std::uint32_t buffer;
        std::size_t changes;  // on the trail before
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
    std::vector<std::uint32_t> buffers_;               // that need a place, by begin
    std::vector<std::vector<std::uint32_t>> live_at_;  // per moment
    std::vector<Moments> moments_of_;
    std::uint64_t work_per_step_ = 0;

    std::uint64_t capacity_ = 0;
    std::uint64_t steps_left_ = 0;
    std::vector<std::uint32_t> rank_;
    std::vector<std::uint64_t> least_offset_;  // as the placed ones leave it
    std::vector<std::uint64_t> offset_;
    std::vector<std::uint8_t> placed_;
    std::vector<std::uint64_t> unplaced_bytes_;  // per moment
    std::vector<Change> trail_;
    std::vector<PutDown> down_;
    std::vector<std::uint64_t> blame_;
};

}  // namespace fragtrace::analyzer
