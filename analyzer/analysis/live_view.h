// The live memory of a running process, as far as its trace file and its ring buffer show it.
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

    // Reads new events. False once the process has stopped recording; by then everything it left is
    // read.
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
