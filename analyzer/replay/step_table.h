// The steps of a script, stored in 8 bytes each and returned as Step by value.
//
// Nearly every step allocates or frees a block of the default pool, and consists only of its event
// and one number. Steps with more data are stored unpacked in a second vector. Safe to share
// between threads once filled.
#pragma once

#include "analyzer/model/chunked_vector.h"
#include "analyzer/model/event.h"
#include "analyzer/pools/pool.h"

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace fragtrace::analyzer {

struct Step {
    enum class Kind : std::uint8_t {
        kAllocate,
        kRelease,
        kComplete,    // a cross-stream event completed
        kEmptyCache,  // empties only one private pool if private_pool is not 0
        kStreamEnd,   // work of the stream ended
        kMemoryFraction,
        kPlace,        // a private pool was reset: places a block where an earlier one lay
        kPoolOptions,  // a private pool is used for the first time, used again, or unused
        kAdopt,        // the recorded state at a checkpoint
        kSettings,     // the program changed the allocator's settings
        kMemoryInfo,   // the program queried the free memory and may adapt to it
        kPastPool,     // a request that bypassed the pool because caching was off
        kPastPoolFree,
        kSegmentUnmapped,     // the program unmapped a segment that the pool still has
        kSegmentMapped,       // it mapped this segment again
        kUnmappedSegmentEnd,  // the pool released this segment
    };
    Kind kind = Kind::kAllocate;
    bool recorded_oom = false;  // kAllocate: the request failed in the recorded run
    bool in_capture = false;    // kAllocate: as in Request
    bool upper_end = false;     // kAllocate: as in Request
    StreamId stream = 0;
    EventIndex event = kNoEvent;  // the event in the timeline
    BlockId block = 0;  // allocations and frees: index of the allocating (unmapping) event
    std::uint32_t private_pool = 0;
    // Depends on the kind: requested bytes, pending id, bits of the fraction, kPool bits, index
    // into checkpoints or settings, free bytes of the device, or bytes of the driver.
    std::uint64_t value = 0;
    BlockId placed_as = 0;            // kPlace: the earlier block whose place is reused
    std::uint32_t first_pending = 0;  // kRelease: range in ReplayScript::pending
    std::uint32_t pending_count = 0;
    std::uint32_t first_refusal = 0;  // kAllocate: range in ReplayScript::refusals
    std::uint32_t refusal_count = 0;
};

class StepTable {
  public:
    [[nodiscard]] std::size_t size() const { return packed_.size(); }

    [[nodiscard]] bool empty() const { return packed_.empty(); }

    // For an empty range only the count is stored, not the start.
    Step operator[](std::size_t at) const {
        const Packed packed = packed_[at];
        if (packed.form == Form::kWide) {
            return wide_[packed.value];
        }
        const EventIndex event = first_events_[at / kGroupSteps] + packed.event;
        const bool serves = packed.form == Form::kAllocate;
        return {.kind = serves ? Step::Kind::kAllocate : Step::Kind::kRelease,
                .stream = packed.stream,
                .event = event,
                .block = serves ? event : packed.value,
                .value = serves ? packed.value : 0};
    }

    // False if no step was ever of one of these kinds.
    [[nodiscard]] bool may_have(std::initializer_list<Step::Kind> kinds) const {
        return std::any_of(
            kinds.begin(), kinds.end(), [this](Step::Kind kind) { return had_[index_of(kind)]; });
    }

    [[nodiscard]] Step back() const { return (*this)[size() - 1]; }

    void push_back(const Step& step) {
        if (size() % kGroupSteps == 0) {
            first_events_.push_back(step.event);
        }
        packed_.push_back({});
        set(size() - 1, step);
    }

    // Appends a step of another table. Faster than push_back(), because most steps stay packed.
    void append(const StepTable& other, std::size_t at) {
        Packed packed = other.packed_[at];
        const EventIndex event = other.first_events_[at / kGroupSteps] + packed.event;
        if (packed.form == Form::kWide || size() % kGroupSteps == 0 ||
            event - first_events_.back() > 0xffff) {
            push_back(other[at]);
            return;
        }
        packed.event = static_cast<std::uint16_t>(event - first_events_.back());
        packed_.push_back(packed);
        had_[index_of(packed.form == Form::kAllocate ? Step::Kind::kAllocate
                                                     : Step::Kind::kRelease)] = true;
    }

    void set(std::size_t at, const Step& step) {
        had_[index_of(step.kind)] = true;
        const EventIndex distance = step.event - first_events_[at / kGroupSteps];
        Packed& packed = packed_[at];
        const bool was_wide = packed.form == Form::kWide;
        if (distance <= 0xffff && is_plain_allocate(step)) {
            packed = {.value = static_cast<std::uint32_t>(step.value),
                      .event = static_cast<std::uint16_t>(distance),
                      .stream = static_cast<std::uint8_t>(step.stream),
                      .form = Form::kAllocate};
        } else if (distance <= 0xffff && is_plain_release(step)) {
            packed = {.value = step.block,
                      .event = static_cast<std::uint16_t>(distance),
                      .stream = static_cast<std::uint8_t>(step.stream),
                      .form = Form::kRelease};
        } else if (was_wide) {
            wide_[packed.value] = step;
        } else {
            packed = {.value = static_cast<std::uint32_t>(wide_.size()), .form = Form::kWide};
            wide_.push_back(step);
        }
    }

  private:
    enum class Form : std::uint8_t { kAllocate, kRelease, kWide };

    struct Packed {
        std::uint32_t value = 0;  // requested bytes, block, or index in wide_
        std::uint16_t event = 0;  // distance from the group's first event
        std::uint8_t stream = 0;
        Form form = Form::kRelease;
    };

    static_assert(sizeof(Packed) == 8);

    static constexpr std::size_t kGroupSteps = 256;

    static constexpr std::size_t index_of(Step::Kind kind) {
        return static_cast<std::size_t>(kind);
    }

    static bool is_plain(const Step& step) {
        return step.event != kNoEvent && step.stream <= 0xff && step.private_pool == 0 &&
               !step.recorded_oom && !step.in_capture && !step.upper_end && step.placed_as == 0 &&
               step.pending_count == 0 && step.refusal_count == 0;
    }

    static bool is_plain_allocate(const Step& step) {
        return step.kind == Step::Kind::kAllocate && step.block == step.event &&
               step.value <= 0xffffffffu && is_plain(step);
    }

    static bool is_plain_release(const Step& step) {
        return step.kind == Step::Kind::kRelease && step.value == 0 && is_plain(step);
    }

    ChunkedVector<Packed> packed_;
    std::vector<EventIndex> first_events_;  // first event of each group
    std::vector<Step> wide_;
    std::bitset<16> had_;  // kinds of all steps, also of those that were replaced
};

}  // namespace fragtrace::analyzer
