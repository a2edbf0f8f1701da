// The contexts of each device that are known. Destroying a device's last context frees all memory
// of that device.
//
// Allocation events do not name their context. Not thread-safe.
#pragma once

#include "analyzer/model/event.h"

#include <map>
#include <set>
#include <utility>

namespace fragtrace::analyzer {

class Contexts {
  public:
    void created(DeviceId device, std::uint64_t context) { known_.emplace(device, context); }

    // The event `at` destroyed the context. Returns true if the device has no known context left.
    bool destroyed(DeviceId device, std::uint64_t context, EventIndex at) {
        last_destroyed_[device] = at;
        known_.erase({device, context});
        const auto next = known_.lower_bound({device, 0});
        return next == known_.end() || next->first != device;
    }

    // The last event that destroyed a context of the device; kNoEvent if there is none.
    [[nodiscard]] EventIndex last_destroyed(DeviceId device) const {
        const auto found = last_destroyed_.find(device);
        return found == last_destroyed_.end() ? kNoEvent : found->second;
    }

    void reset(DeviceId device) {
        known_.erase(known_.lower_bound({device, 0}),
                     known_.upper_bound({device, ~std::uint64_t{0}}));
    }

  private:
    std::set<std::pair<DeviceId, std::uint64_t>> known_;
    std::map<DeviceId, EventIndex> last_destroyed_;
};

}  // namespace fragtrace::analyzer
