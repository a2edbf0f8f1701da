// The live memory of a running process, as far as its trace file and its ring buffer show it.
#pragma once

#include "analyzer/model/recorded_state.h"
#include "analyzer/model/request_outcomes.h"
#include "analyzer/trace/live_trace.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
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
        // Since the begin of the recording, as far as its files are still there.
        std::uint64_t retries = 0;
        std::uint64_t ooms = 0;
        // What the driver can still give this process, if other processes use as much as at the
        // driver's last report. Unknown before the first report.
        std::optional<std::uint64_t> headroom_bytes;
    };

    explicit LiveView(LiveTrace trace) : trace_(std::move(trace)) {}

    // Reads new events. False once the process has stopped recording; by then everything it left is
    // read.
    bool update() {
        return trace_.update(&state_, [this](const Event& event) { count(event); });
    }

    [[nodiscard]] std::vector<Device> devices() const {
        std::vector<Device> devices;
        for (const DeviceId device : state_.devices()) {
            const MemoryTotals& totals = state_.totals(device);
            const Troubles& troubles = troubles_[state_.has_block_layer(device) ? 1 : 0].at(device);
            devices.push_back({device,
                               totals.allocated,
                               totals.reserved,
                               state_.largest_free_bytes(device),
                               troubles.retries,
                               troubles.ooms,
                               headroom(device)});
        }
        return devices;
    }

    [[nodiscard]] const LiveTrace& trace() const { return trace_; }

  private:
    struct Troubles {
        std::uint64_t retries = 0;
        std::uint64_t ooms = 0;
    };

    // Whether a device has a pool shows only with its first block. Until then both are counted.
    void count(const Event& event) {
        events_ = (events_ + 1) % kNoEvent;
        for (std::size_t pool = 0; pool < outcomes_.size(); ++pool) {
            const RequestOutcome outcome = outcomes_[pool].visit(events_, event);
            Troubles& troubles = troubles_[pool].at(event.device);
            troubles.retries += outcome == RequestOutcome::kRetry ? 1 : 0;
            troubles.ooms += is_out_of_memory(outcome) ? 1 : 0;
        }
    }

    [[nodiscard]] std::optional<std::uint64_t> headroom(DeviceId device) const {
        const MemorySample& sample = state_.sample(device);
        if (sample.event == kNoEvent) {
            return std::nullopt;
        }
        const std::uint64_t available = sample.free_bytes + sample.own_bytes;
        return available - std::min(available, state_.totals(device).own);
    }

    LiveTrace trace_;
    RecordedState state_;
    EventIndex events_ = 0;
    std::array<RequestOutcomes, 2> outcomes_ = {RequestOutcomes([](DeviceId) { return false; }),
                                                RequestOutcomes([](DeviceId) { return true; })};
    std::array<std::array<Troubles, kMaxDevices + 1>, 2> troubles_ = {};
};

}  // namespace fragtrace::analyzer
