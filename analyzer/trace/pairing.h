// Finds for every allocation its release and the other way round, in both layers.
//
// Fills Timeline::partner, the device of events that lack one but have a partner, and the pairing
// counters and notes of Timeline::damage. The end of the trace pairs nothing. Physical memory gets
// the event that ends it as partner: its last release or its last unmap. A device reset, or the end
// of a device's last context, ends all that is the device's, and a rewind the blocks of its pool:
// they get it as partner, and it has none itself.
#pragma once

#include "analyzer/model/timeline.h"

#include <memory>

namespace fragtrace::analyzer {

class EventPairing {
  public:
    // The timeline has no partners yet, and stays where it is.
    explicit EventPairing(Timeline* timeline);
    EventPairing(EventPairing&&) = delete;
    EventPairing& operator=(EventPairing&&) = delete;
    ~EventPairing();

    // Pairs the events that were added since. Gaps in recording have to be known.
    void advance();
    // Takes everything back.
    void undo();
    // After the last event: adds what was found to the damage.
    void finish();

  private:
    class State;
    std::unique_ptr<State> state_;
};

// All of it at once.
void pair_events(Timeline* timeline);

}  // namespace fragtrace::analyzer
