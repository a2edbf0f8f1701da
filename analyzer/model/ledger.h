// One walk over the events of a recorded run. The ledger applies each event to the recorded state.
// Its watchers see every event before and after that, so that all metrics share one walk.
#pragma once

#include "analyzer/model/recorded_state.h"
#include "analyzer/model/timeline.h"

#include <utility>
#include <vector>

namespace fragtrace::analyzer {

class LedgerWatcher {
  public:
    virtual ~LedgerWatcher() = default;

    // `state` does not include the event yet.
    virtual void before(EventIndex /*index*/,
                        const Event& /*event*/,
                        const RecordedState& /*state*/) {}

    // `state` includes the event.
    virtual void after(EventIndex index, const Event& event, const RecordedState& state) = 0;
};

// Not thread-safe.
class Ledger {
  public:
    // `devices` covers all devices that the events will name. The watchers must outlive the ledger.
    Ledger(const RecordedDevices& devices, std::vector<LedgerWatcher*> watchers)
        : state_(devices), watchers_(std::move(watchers)) {}

    Ledger(const Timeline& timeline, std::vector<LedgerWatcher*> watchers)
        : Ledger(RecordedDevices(timeline), std::move(watchers)) {}

    // Applies the next event; `pool` is the number of the event's pool.
    void apply(EventIndex index, const Event& event, std::uint32_t pool) {
        for (LedgerWatcher* watcher : watchers_) {
            watcher->before(index, event, state_);
        }
        state_.follow(event, pool);
        for (LedgerWatcher* watcher : watchers_) {
            watcher->after(index, event, state_);
        }
    }

    // Applies all events of a timeline.
    void walk(const Timeline& timeline) {
        std::size_t pool_cursor = 0;
        const auto count = static_cast<EventIndex>(timeline.events.size());
        for (EventIndex i = 0; i < count; ++i) {
            apply(i, timeline.events[i], timeline.event_pools.at(i, &pool_cursor));
        }
    }

    [[nodiscard]] const RecordedState& state() const { return state_; }

  private:
    RecordedState state_;
    std::vector<LedgerWatcher*> watchers_;
};

}  // namespace fragtrace::analyzer
