// What a running process holds, as far as its trace and its ring tell.
#pragma once

#include "analyzer/model/recorded_state.h"
#include "analyzer/trace/live_trace.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

class LiveView {
  public:
    struct Device {
        DeviceId device = 0;
        std::uint64_t allocated_bytes = 0;
        std::uint64_t reserved_bytes = 0;
        std::uint64_t largest_hole_bytes = 0;
    };

    explicit LiveView(LiveTrace trace) : trace_(std::move(trace)) {}

    // Reads what is new. False once the process records no more; all that it left is read then.
    bool update() { return trace_.update(&state_); }

    [[nodiscard]] std::vector<Device> devices() const {
        std::vector<Device> devices;
        for (const DeviceId device : state_.devices()) {
            const MemoryTotals& totals = state_.totals(device);
            devices.push_back(
                {device, totals.allocated, totals.reserved, state_.largest_free_bytes(device)});
        }
        return devices;
    }

    [[nodiscard]] const LiveTrace& trace() const { return trace_; }

  private:
    LiveTrace trace_;
    RecordedState state_;
};

}  // namespace fragtrace::analyzer
