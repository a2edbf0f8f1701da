#include "analyzer/analysis/metrics/memory_at.h"

#include "analyzer/analysis/metrics/live_origins.h"
#include "analyzer/model/library_ranges.h"
#include "analyzer/model/recorded_state.h"
#include "analyzer/trace/event_stream.h"

#include <algorithm>
#include <deque>
#include <optional>

namespace fragtrace::analyzer {
namespace {

// The ranges that are open, the latest last. Ranges are matched as in trace/phases.cpp.
class OpenRanges {
  public:
    void add(const Event& event, std::uint32_t thread) {
        if (event.kind == EventKind::kRangeBegin) {
            any_ = true;
            if (open_.size() == kMost) {
                open_.erase(open_.begin());
            }
            open_.push_back({static_cast<std::uint32_t>(event.size_bytes),
                             thread,
                             event.address,
                             static_cast<RangeKind>(event.extra)});
        } else if (event.kind == EventKind::kRangeEnd) {
            const auto found = std::find_if(open_.rbegin(), open_.rend(), [&](const Range& range) {
                return event.address != 0
                           ? range.id == event.address
                           : range.id == 0 && range.thread == thread &&
                                 range.kind == static_cast<RangeKind>(event.extra) &&
                                 (event.size_bytes == 0 || event.size_bytes == range.name);
            });
            if (found != open_.rend()) {
                open_.erase(std::next(found).base());
            }
        } else if (event.kind == EventKind::kRecordingStopped) {
            open_.clear();
        }
    }

    // Empty: none is open.
    [[nodiscard]] std::string innermost(const Timeline& tables, std::uint32_t thread) const {
        std::string latest;
        for (auto range = open_.rbegin(); range != open_.rend(); ++range) {
            std::string name = text_of(tables, range->name);
            if (!library_of_range(name).empty()) {
                continue;
            }
            if (range->thread == thread) {
                return name;
            }
            if (latest.empty()) {
                latest = std::move(name);
            }
        }
        return latest;
    }

    [[nodiscard]] bool any() const { return any_; }

  private:
    struct Range {
        std::uint32_t name;
        std::uint32_t thread;
        std::uint64_t id;  // 0: ranges of the thread nest
        RangeKind kind;
    };

    static constexpr std::size_t kMost = 1000;

    std::vector<Range> open_;
    bool any_ = false;
};

}  // namespace

Result<MemoryAt> memory_at(const std::string& path, std::uint64_t time_ns) {
    Result<EventStream> stream = EventStream::open(path);
    if (!stream) {
        return stream.error();
    }
    RecordedDevices devices(stream->tables().facts);
    stream->for_each(
        [&](std::uint64_t, const Event& event, const EventRecord&) { devices.add(event); });
    std::deque<LiveOrigins> origins;
    std::vector<DeviceId> used;
    for (DeviceId device = 0; device < kMaxDevices; ++device) {
        if (devices.used[device]) {
            origins.emplace_back(device);
            used.push_back(device);
        }
    }
    MemoryAt found;
    RecordedState state(devices);
    OpenRanges ranges;
    std::uint32_t thread = 0;
    std::uint64_t last_ns = 0;
    stream->for_each([&](std::uint64_t index, const Event& event, const EventRecord& record) {
        if (event.time_ns > time_ns) {
            return;
        }
        const Origin origin{record.thread, record.native_stack, record.python_stack};
        for (LiveOrigins& of_device : origins) {
            of_device.begin(static_cast<EventIndex>(index), event, origin, state);
        }
        state.follow(event, record.pool);
        for (LiveOrigins& of_device : origins) {
            of_device.end(event);
        }
        ranges.add(event, record.thread);
        if (event.kind == EventKind::kRecordingStopped) {
            found.recording_stopped = true;
        } else if (event.kind == EventKind::kRecordingStarted) {
            found.recording_stopped = false;
        }
        found.sequence = record.sequence;
        thread = record.thread;
        last_ns = std::max(last_ns, event.time_ns);
    });
    found.tables = stream->tables();
    found.complete = found.tables.damage.events_lost == 0 && stream->events_left_out() == 0;
    found.idle_ns = time_ns - last_ns;
    found.phase = ranges.innermost(found.tables, thread);
    found.has_phases = ranges.any();
    for (std::size_t i = 0; i < used.size(); ++i) {
        found.devices.push_back({.device = used[i],
                                 .totals = state.totals(used[i]),
                                 .holders = list_of(origins[i].holders(state), &found.tables)});
    }
    return found;
}

}  // namespace fragtrace::analyzer
