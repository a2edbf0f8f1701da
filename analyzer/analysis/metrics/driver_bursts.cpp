#include "analyzer/analysis/metrics/driver_bursts.h"

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kFewest = 8;            // requests that make a burst
constexpr std::uint64_t kStretchesOfRun = 500;  // a pause longer than run time / this ends a burst

}  // namespace

std::vector<DriverBurst> find_driver_bursts(const Timeline& timeline,
                                            DeviceId device,
                                            std::size_t limit) {
    std::vector<DriverBurst> bursts;
    if (timeline.events.empty()) {
        return bursts;
    }
    const std::uint64_t pause_ns =
        (timeline.events.back().time_ns - timeline.events[0].time_ns) / kStretchesOfRun;
    DriverBurst open;
    std::uint64_t last_ns = 0;
    const auto close = [&] {
        if (open.requests >= kFewest) {
            bursts.push_back(open);
        }
        open = {};
    };
    for (EventIndex i = 0; i < timeline.events.size(); ++i) {
        const EventKind kind = timeline.events.kind(i);
        if ((kind != EventKind::kDeviceAlloc && kind != EventKind::kMap) ||
            timeline.events.device(i) != device) {
            continue;
        }
        const Event event = timeline.events[i];
        if (open.requests != 0 && event.time_ns > last_ns + pause_ns) {
            close();
        }
        if (open.requests == 0) {
            open.first = i;
        }
        open.last = i;
        ++open.requests;
        open.bytes += event.size_bytes;
        last_ns = event.time_ns;
    }
    close();
    if (bursts.size() > limit) {
        const auto cut = bursts.begin() + static_cast<std::ptrdiff_t>(limit);
        std::nth_element(
            bursts.begin(), cut, bursts.end(), [](const DriverBurst& a, const DriverBurst& b) {
                return a.requests != b.requests ? a.requests > b.requests : a.first < b.first;
            });
        bursts.resize(limit);
        std::sort(bursts.begin(), bursts.end(), [](const DriverBurst& a, const DriverBurst& b) {
            return a.first < b.first;
        });
    }
    return bursts;
}

}  // namespace fragtrace::analyzer
