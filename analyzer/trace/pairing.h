// Finds the release of every allocation and the allocation of every release, in both layers.
//
// Fills Timeline::partner, and sets the device of events that lack one but have a partner. Also
// fills the pairing counters and notes of Timeline::damage. Allocations that are live at the end of
// the trace have no partner. Physical memory is paired with the event that ends it: its last
// release or its last unmap. A device reset, or the end of a device's last context, ends everything
// on the device. A rewind ends the blocks of its pool. Such an event becomes the partner of each
// allocation that it ends, but has no partner itself.
#pragma once

#include "analyzer/model/timeline.h"

#include <memory>

namespace fragtrace::analyzer {

class EventPairing {
  public:
    // The timeline must have no partners yet, and must not move.
    explicit EventPairing(Timeline* timeline);
    EventPairing(EventPairing&&) = delete;
    EventPairing& operator=(EventPairing&&) = delete;
    ~EventPairing();

    // Pairs the events that were added since the last call. Gaps in recording must be known.
    void advance();
    // Removes all pairs again.
    void undo();
    // Call after the last event: adds the defects to the damage.
    void finish();

  private:
    class State;
    std::unique_ptr<State> state_;
};

// Pairs all events of a timeline at once.
void pair_events(Timeline* timeline);

}  // namespace fragtrace::analyzer
