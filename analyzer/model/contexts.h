// Which contexts of a device are known: with the last one goes all of the device's memory.
//
// Events of allocations do not name their context. Not thread-safe.
#pragma once

#include "analyzer/model/event.h"

#include <set>
#include <utility>

namespace fragtrace::analyzer {

class Contexts {
  public:
    void created(DeviceId device, std::uint64_t context) { known_.emplace(device, context); }

    // True: the device has no context left that is known.
    bool destroyed(DeviceId device, std::uint64_t context) {
        known_.erase({device, context});
        const auto next = known_.lower_bound({device, 0});
        return next == known_.end() || next->first != device;
    }

    void reset(DeviceId device) {
        known_.erase(known_.lower_bound({device, 0}),
                     known_.upper_bound({device, ~std::uint64_t{0}}));
    }

  private:
    std::set<std::pair<DeviceId, std::uint64_t>> known_;
};

}  // namespace fragtrace::analyzer
