#include "analyzer/analysis/windows.h"

#include <algorithm>
#include <optional>

namespace fragtrace::analyzer {
namespace {

// The moments to read, most important first. The end of the trace is not among them.
std::vector<std::uint64_t> moments_of(const TraceSummary& summary) {
    std::vector<std::uint64_t> moments;
    const auto add = [&moments](std::optional<std::uint64_t> event) {
        if (event && std::find(moments.begin(), moments.end(), *event) == moments.end()) {
            moments.push_back(*event);
        }
    };
    for (const DeviceSummary& device : summary.devices) {
        add(device.first_oom_event);
    }
    for (const DeviceSummary& device : summary.devices) {
        add(device.last_oom_event);
    }
    for (const DeviceSummary& device : summary.devices) {
        add(device.peak_reserved_event);
    }
    for (const DeviceSummary& device : summary.devices) {
        add(device.peak_allocated_event);
    }
    add(summary.first_pool_failure);
    return moments;
}

// Each window has `size` events, most of them before its moment. Windows with less than
// `least_gap` events between them are joined.
std::vector<EventWindow> windows_of_size(const std::vector<std::uint64_t>& moments,
                                         std::uint64_t events,
                                         std::uint64_t size,
                                         std::uint64_t least_gap) {
    constexpr std::uint64_t kMostAfter = 100'000;
    const std::uint64_t after = std::min(size / 8, kMostAfter);
    std::vector<EventWindow> windows = {{events - std::min(size, events), events}};
    for (const std::uint64_t moment : moments) {
        const std::uint64_t end = std::min(events, moment + 1 + after);
        windows.push_back({end - std::min(size, end), end});
    }
    std::sort(windows.begin(), windows.end(), [](const EventWindow& a, const EventWindow& b) {
        return a.begin < b.begin;
    });
    std::vector<EventWindow> joined;
    for (const EventWindow& window : windows) {
        if (!joined.empty() && window.begin < joined.back().end + least_gap) {
            joined.back().end = std::max(joined.back().end, window.end);
        } else {
            joined.push_back(window);
        }
    }
    if (joined.front().begin < least_gap) {
        joined.front().begin = 0;
    }
    return joined;
}

}  // namespace

std::vector<EventWindow> choose_windows(const TraceSummary& summary, std::uint64_t most_events) {
    std::uint64_t live = 0;  // allocations in a checkpoint, at most about
    for (const DeviceSummary& device : summary.devices) {
        live += device.most_blocks;
    }
    std::vector<std::uint64_t> moments = moments_of(summary);
    while (!moments.empty() && (moments.size() + 1) * live > most_events / 2) {
        moments.pop_back();
    }
    // A checkpoint needs the numbers of events that were left out before it.
    const std::uint64_t least_gap = 2 * live + most_events / 16;
    const auto cost_of = [live](const std::vector<EventWindow>& windows) {
        std::uint64_t cost = 0;
        for (const EventWindow& window : windows) {
            cost += window.end - window.begin + (window.begin == 0 ? 0 : live);
        }
        return cost;
    };
    // The largest size that is affordable.
    std::uint64_t least = 1;
    std::uint64_t most = std::max<std::uint64_t>(1, std::min(most_events, summary.events));
    while (least < most) {
        const std::uint64_t size = most - (most - least) / 2;
        if (cost_of(windows_of_size(moments, summary.events, size, least_gap)) <= most_events) {
            least = size;
        } else {
            most = size - 1;
        }
    }
    return windows_of_size(moments, summary.events, least, least_gap);
}

}  // namespace fragtrace::analyzer
