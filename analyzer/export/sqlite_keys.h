// How rows of the format `sqlite` refer to events, times, stacks, phases and steps.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/export/stack_numbers.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fragtrace::analyzer {

// NULL for an empty text.
inline std::optional<std::string_view> if_any(const std::string& text) {
    return text.empty() ? std::nullopt : std::optional<std::string_view>(text);
}

template <typename Number>
std::optional<Number> unless(Number nothing, Number number) {
    return number == nothing ? std::nullopt : std::optional(number);
}

// `analysis` must outlive this object.
class SqliteKeys {
  public:
    explicit SqliteKeys(const Analysis& analysis)
        : analysis_(analysis), timeline_(analysis.timeline), stacks_(timeline_) {
        for (const DeviceAnalysis& device : analysis.devices) {
            iterations_[device.device] = &device.held.iterations;
        }
    }

    [[nodiscard]] std::uint64_t time_of(EventIndex event) const {
        return timeline_.events[event].time_ns;
    }

    // For ends that may never come, and may be the number of events.
    [[nodiscard]] std::optional<std::uint64_t> event_if_any(std::uint64_t event) const {
        return event < timeline_.events.size() ? std::optional(event) : std::nullopt;
    }

    [[nodiscard]] std::optional<std::uint64_t> time_if_any(std::uint64_t event) const {
        return event < timeline_.events.size()
                   ? std::optional(time_of(static_cast<EventIndex>(event)))
                   : std::nullopt;
    }

    [[nodiscard]] std::optional<StreamId> stream_if_any(StreamId stream) const {
        return stream < timeline_.streams.size() ? std::optional(stream) : std::nullopt;
    }

    [[nodiscard]] std::optional<std::uint64_t> step_of(DeviceId device, std::uint64_t event) const {
        const Iterations* iterations = iterations_[device];
        if (iterations == nullptr || event >= timeline_.events.size()) {
            return std::nullopt;
        }
        return unless(std::size_t{0}, iterations->of(static_cast<EventIndex>(event)));
    }

    [[nodiscard]] std::optional<std::uint32_t> phase_of(EventIndex event) const {
        return analysis_.phases ? unless(PhaseIndex::kNone, analysis_.phases->phase_of(event))
                                : std::nullopt;
    }

    [[nodiscard]] static std::optional<DeviceId> device_if_any(const Event& event) {
        return event.device < kMaxDevices ? std::optional(DeviceId{event.device}) : std::nullopt;
    }

    [[nodiscard]] std::uint32_t stack_of(OriginId origin) const { return stacks_.of(origin); }

    [[nodiscard]] const StackNumbers& stacks() const { return stacks_; }

  private:
    const Analysis& analysis_;
    const Timeline& timeline_;
    StackNumbers stacks_;
    std::array<const Iterations*, kMaxDevices + 1> iterations_ = {};
};

}  // namespace fragtrace::analyzer
