// Memory that belongs to the process and to no device: pinned host memory and managed memory.
// docs/metrics.md has the definitions.
#pragma once

#include "analyzer/model/bytes_over_time.h"
#include "analyzer/model/timeline.h"

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

// Live bytes of one kind are summed, and the peak is kept. Allocations of unknown size count 0
// bytes.
struct SideMemory {
    std::uint64_t peak_bytes = 0;
    std::uint64_t allocations = 0;
    EventIndex peak_event = kNoEvent;
    std::vector<std::pair<OriginId, std::uint64_t>> holders;  // at the peak, most bytes first
};

// Live allocations of one kind, by address.
class SideSum {
  public:
    void begin(const Event& event, EventIndex i);
    void end(DeviceAddress address);
    void end_all();

    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

    [[nodiscard]] const SideMemory& memory() const { return memory_; }

    // The lines that have memory now, most bytes first.
    [[nodiscard]] std::vector<std::pair<OriginId, std::uint64_t>> holders() const;

  private:
    std::unordered_map<DeviceAddress, std::pair<std::uint64_t, OriginId>> live_;
    std::uint64_t bytes_ = 0;
    SideMemory memory_;
};

// Both kinds. Call visit() for all events in order; it ignores block events.
struct Sides {
    SideSum pinned;   // pinned or registered host memory
    SideSum managed;  // managed memory; it is virtual until touched

    void visit(const Event& event, EventIndex i);
};

// Live bytes of both kinds at every time of the trace, in nanoseconds since its start.
struct SidesOverTime {
    BytesOverTime pinned;
    BytesOverTime managed;
};

SidesOverTime sides_over_time(const Timeline& timeline);

}  // namespace fragtrace::analyzer
