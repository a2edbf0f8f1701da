// The figures of a run without its events, as `fraganalyze summarize` prints them. The numbers
// equal those of measure(). Memory grows with what the process has allocated at a time, not with
// the length of the trace.
#pragma once

#include "analyzer/analysis/metrics/device_metrics.h"
#include "analyzer/analysis/metrics/memory_curve.h"
#include "analyzer/model/held_by.h"
#include "analyzer/model/timeline.h"
#include "analyzer/model/unknown_segments.h"
#include "analyzer/support/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

class EventStream;

// A program that catches an out-of-memory, reports it and ends may request a few small buffers for
// that: at most so many, each of at most this size.
inline constexpr std::uint64_t kFewRequests = 100;
inline constexpr std::uint64_t kSmallRequestBytes = std::uint64_t{1} << 20;

struct DeviceSummary {
    DeviceId device = 0;
    DeviceMetrics metrics;  // summary.driver_time_ns is always 0
    std::uint64_t peak_time_ns = 0;
    // The first out-of-memory after which no request was served. nullopt: the run got past all.
    std::optional<std::uint64_t> final_oom_ns;
    // The first one after which only a few small requests were served. nullopt: there is none.
    std::optional<std::uint64_t> near_end_oom_ns;
    // Events of the trace, by index; nullopt: there is none.
    std::optional<std::uint64_t> first_oom_event;
    std::optional<std::uint64_t> last_oom_event;
    std::uint64_t peak_reserved_event = 0;
    std::uint64_t peak_allocated_event = 0;
    std::uint64_t most_blocks = 0;  // live at a time
    MemoryCurve curve;
    // Memory in use at the peak, most bytes first. Entries are by origin (in TraceSummary::tables),
    // not yet by line. They have a label only if no block has a stack: the size of the blocks.
    std::vector<HeldBy> holders;
};

// When the process had a context on a device: since the start of the trace, the last such time if
// there were several.
struct ContextTime {
    DeviceId device = 0;
    std::uint64_t begin_ns = 0;
    std::optional<std::uint64_t> end_ns = {};  // nullopt: until the process ended
};

struct TraceSummary {
    Timeline tables;  // without events
    std::uint64_t events = 0;
    std::uint64_t events_left_out = 0;  // events that came too late or twice
    std::uint64_t last_event_ns = 0;
    // The first request that a pool of the program's own could not serve; nullopt: there is none.
    std::optional<std::uint64_t> first_pool_failure;
    std::uint64_t pool_failures = 0;  // the number of these requests
    // Calls, not allocations, that failed because memory ran out, and whose device is not recorded,
    // such as the creation of a context.
    std::uint64_t calls_of_unknown_device = 0;
    bool recording_gaps = false;  // recording was stopped for a time, or began late
    std::vector<DeviceSummary> devices;
    std::vector<ContextTime> contexts;  // by device

    // Whether all failed requests are known: a count of 0 means none.
    [[nodiscard]] bool failures_known() const { return shows_failures(tables.facts); }
};

// Summarizes a trace, or a snapshot of PyTorch's allocator, which is read as a whole. Needs one
// pass for all devices, and a second one if the first 65536 events did not use all devices and
// pools. `holders` = false skips the search for holders and is faster.
Result<TraceSummary> summarize_trace(const std::string& path, bool holders = true);

// The same for an open trace.
TraceSummary summarize_stream(EventStream* stream, bool holders = true);

// The same for a timeline in memory, whose events it drops.
TraceSummary summarize_timeline(Timeline timeline, bool holders = true);

// Puts the figures of the whole run into metrics of a part of it. Times in calls are of the part,
// so they are left out. `measured` has the metrics of `devices`, in this order.
void take_whole_run(const TraceSummary& whole,
                    const std::vector<DeviceId>& devices,
                    std::vector<DeviceMetrics>* measured);

}  // namespace fragtrace::analyzer
