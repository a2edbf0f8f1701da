#include "analyzer/analysis/metrics/trace_summary.h"

#include "analyzer/analysis/metrics/live_origins.h"
#include "analyzer/model/contexts.h"
#include "analyzer/model/request_outcomes.h"
#include "analyzer/snapshot/input.h"
#include "analyzer/trace/event_stream.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// The events of a trace file, one by one, each with its origin.
class StreamedEvents {
  public:
    explicit StreamedEvents(EventStream* stream) : stream_(*stream) {}

    template <typename Visit>
    void for_each(Visit visit, std::uint64_t most = kAllEvents) {
        stream_.for_each(
            [&](std::uint64_t i, const Event& event, const EventRecord& record) {
                visit(i,
                      event,
                      record,
                      Origin{record.thread, record.native_stack, record.python_stack});
            },
            most);
    }

  private:
    EventStream& stream_;
};

// The same for the events of a timeline.
class TimelineEvents {
  public:
    explicit TimelineEvents(const Timeline& timeline) : timeline_(timeline) {}

    template <typename Visit>
    void for_each(Visit visit, std::uint64_t most = kAllEvents) const {
        std::size_t pool_cursor = 0;
        const std::uint64_t end = std::min<std::uint64_t>(most, timeline_.events.size());
        for (EventIndex i = 0; i < end; ++i) {
            const Event event = timeline_.events[i];
            const bool known = event.origin < timeline_.origins.size();
            const Origin origin = known ? timeline_.origins[event.origin] : Origin{};
            EventRecord record = {};
            record.pool = timeline_.event_pools.at(i, &pool_cursor);
            visit(i, event, record, origin);
        }
    }

  private:
    const Timeline& timeline_;
};

// Finds when each device had a context.
class ContextTimes {
  public:
    void follow(const Event& event) {
        if (event.device >= kMaxDevices) {
            return;
        }
        if (event.kind == EventKind::kContextCreate) {
            contexts_.created(event.device, event.address);
            const auto [at, is_first] = times_.try_emplace(event.device);
            if (is_first || at->second.end_ns) {
                at->second = {.device = event.device, .begin_ns = event.time_ns};
            }
        } else if (event.kind == EventKind::kDeviceReset) {
            contexts_.reset(event.device);
            end(event);
        } else if (event.kind == EventKind::kContextDestroy &&
                   contexts_.destroyed(event.device, event.address, 0)) {
            end(event);
        }
    }

    [[nodiscard]] std::vector<ContextTime> times() const {
        std::vector<ContextTime> all;
        for (const auto& [device, time] : times_) {
            all.push_back(time);
        }
        return all;
    }

  private:
    void end(const Event& event) {
        const auto at = times_.find(event.device);
        if (at != times_.end() && !at->second.end_ns) {
            at->second.end_ns = event.time_ns;
        }
    }

    Contexts contexts_;
    std::map<DeviceId, ContextTime> times_;
};

// Finds the out-of-memories that a run did not get past, or after which it was served only a few
// small requests.
class FinalFailures {
  public:
    explicit FinalFailures(DeviceId device) : device_(device) {}

    // Call it after the event. Returns true if it is an out-of-memory of this device.
    bool follow(EventIndex i, const Event& event, const RecordedState& state) {
        if (!outcomes_) {
            outcomes_.emplace([&state](DeviceId id) { return state.has_block_layer(id); });
        }
        const RequestOutcome outcome = outcomes_->visit(i, event);
        if (event.device != device_) {
            return false;
        }
        const bool served = state.has_block_layer(device_) ? event.kind == EventKind::kBlockAlloc
                                                           : is_device_allocation(event.kind);
        if (served) {
            ++served_;
            if (event.size_bytes > kSmallRequestBytes) {
                failures_.clear();
            }
            while (!failures_.empty() && served_ - failures_.front().served > kFewRequests) {
                failures_.pop_front();
            }
        } else if (is_out_of_memory(outcome) &&
                   (failures_.empty() || failures_.back().served != served_)) {
            failures_.push_back({event.time_ns, served_});
        }
        return is_out_of_memory(outcome);
    }

    // The first out-of-memory after which the device served no request.
    [[nodiscard]] std::optional<std::uint64_t> final_ns() const {
        return failures_.empty() || failures_.back().served != served_
                   ? std::nullopt
                   : std::optional(failures_.back().time_ns);
    }

    // The first one after which it served at most kFewRequests, all of them small.
    [[nodiscard]] std::optional<std::uint64_t> near_end_ns() const {
        return failures_.empty() ? std::nullopt : std::optional(failures_.front().time_ns);
    }

  private:
    struct Failure {
        std::uint64_t time_ns = 0;
        std::uint64_t served = 0;  // requests before it
    };

    DeviceId device_;
    std::optional<RequestOutcomes> outcomes_;  // set at the first event
    std::uint64_t served_ = 0;
    std::deque<Failure> failures_;  // those that count, at most one per number of served requests
};

// Computes the summary of a device, event by event.
class DeviceSummarizer : public LedgerWatcher {
  public:
    // `index` and `origin` always refer to the current event: the trace's index of it, which does
    // not wrap around, and its origin.
    // `only_peak`: what missed_peak() of an earlier pass over the events returned; 0 = it is the
    // first pass.
    DeviceSummarizer(DeviceId device,
                     bool holders,
                     const std::uint64_t& index,
                     const Origin& origin,
                     std::uint64_t only_peak)
        : holders_(holders),
          only_peak_(only_peak),
          index_(index),
          origin_(origin),
          origins_(device),
          failures_(device),
          measurement_(device, [this](const RecordedState& state) { list_holders(state); }) {
        summary_.device = device;
    }

    DeviceSummarizer(const DeviceSummarizer&) = delete;
    DeviceSummarizer& operator=(const DeviceSummarizer&) = delete;

    void before(EventIndex i, const Event& event, const RecordedState& state) override {
        if (holders_) {
            origins_.begin(i, event, origin_, state);
        }
        measurement_.before(i, event, state);
    }

    void after(EventIndex i, const Event& event, const RecordedState& state) override {
        measurement_.after(i, event, state);
        if (failures_.follow(i, event, state)) {
            summary_.first_oom_event = summary_.first_oom_event.value_or(index_);
            summary_.last_oom_event = index_;
        }
        if (holders_) {
            origins_.end(event);
        }
        const MemoryTotals& now = state.totals(summary_.device);
        if (now.reserved > peak_reserved_) {
            peak_reserved_ = now.reserved;
            summary_.peak_time_ns = event.time_ns;
            summary_.peak_reserved_event = index_;
        }
        if (now.allocated > peak_allocated_) {
            peak_allocated_ = now.allocated;
            summary_.peak_allocated_event = index_;
        }
        summary_.most_blocks = std::max(summary_.most_blocks, now.blocks);
        curve_.add(event.time_ns, now.reserved, now.allocated);
    }

    [[nodiscard]] DeviceId device() const { return summary_.device; }

    // The number of the highest peak if its holders were not listed, because listing those of each
    // peak would take too long: another pass must list them. 0 = they were listed.
    [[nodiscard]] std::uint64_t missed_peak() const {
        return holders_ && listed_peak_ != peaks_ ? peaks_ : 0;
    }

    DeviceSummary finish(const RecordedState& state, Timeline* tables) {
        summary_.metrics = measurement_.finish(state);
        summary_.final_oom_ns = failures_.final_ns();
        summary_.near_end_oom_ns = failures_.near_end_ns();
        summary_.curve = curve_.finished();
        summary_.holders = list_of(std::move(at_peak_), tables);
        return std::move(summary_);
    }

  private:
    // Without a pool, each allocation may be a new peak. To list the live blocks of each of them
    // takes quadratic time.
    void list_holders(const RecordedState& state) {
        constexpr std::uint64_t kMostBlocks = 4'000'000;
        ++peaks_;
        if (holders_ && (only_peak_ == 0 ? listed_blocks_ < kMostBlocks : peaks_ == only_peak_)) {
            at_peak_ = origins_.holders(state, &listed_blocks_);
            listed_peak_ = peaks_;
        }
    }

    bool holders_;
    std::uint64_t only_peak_;
    std::uint64_t peaks_ = 0;        // so far, each higher than the one before
    std::uint64_t listed_peak_ = 0;  // the peak of at_peak_
    std::uint64_t listed_blocks_ = 0;
    const std::uint64_t& index_;
    const Origin& origin_;
    LiveOrigins origins_;
    LiveOrigins::Holdings at_peak_;
    FinalFailures failures_;
    DeviceMeasurement measurement_;
    MemoryCurveBuilder curve_;
    DeviceSummary summary_;
    std::uint64_t peak_reserved_ = 0;
    std::uint64_t peak_allocated_ = 0;
};

// A state must know from its start which devices there are and which have a pool. Usually the first
// events show all of them. If not, the events are read again.
template <typename Events>
void summarize_devices(Events& events, bool holders, TraceSummary* summary) {
    constexpr std::uint64_t kLook_events = 65536;
    // A call that failed for want of memory shows its device, too.
    const auto note_device = [](const Event& event, RecordedDevices* devices) {
        devices->add(event);
        if (event.kind == EventKind::kCallOutOfMemory && event.device < kMaxDevices) {
            devices->used[event.device] = true;
        }
    };
    const RecordedDevices none(summary->tables.facts);
    RecordedDevices believed = none;
    events.for_each(
        [&](std::uint64_t, const Event& event, const EventRecord&, const Origin&) {
            note_device(event, &believed);
        },
        kLook_events);
    Origin origin;
    std::uint64_t at = 0;  // index of the current event
    std::array<std::uint64_t, kMaxDevices> only_peaks = {};
    std::deque<DeviceSummarizer> summarizers;
    std::optional<Ledger> ledger;
    for (bool right = false; !right;) {
        ledger.reset();
        summarizers.clear();
        std::vector<LedgerWatcher*> watchers;
        for (DeviceId device = 0; device < kMaxDevices; ++device) {
            if (believed.used[device]) {
                watchers.push_back(
                    &summarizers.emplace_back(device, holders, at, origin, only_peaks[device]));
            }
        }
        ledger.emplace(believed, watchers);
        RecordedDevices found = none;
        ContextTimes contexts;
        summary->first_pool_failure.reset();
        summary->pool_failures = 0;
        summary->calls_of_unknown_device = 0;
        events.for_each([&](std::uint64_t index,
                            const Event& event,
                            const EventRecord& record,
                            const Origin& from) {
            note_device(event, &found);
            at = index;
            summary->events = index + 1;
            if (event.kind == EventKind::kProgramRequestFailed) {
                summary->first_pool_failure = summary->first_pool_failure.value_or(index);
                ++summary->pool_failures;
            }
            summary->calls_of_unknown_device +=
                event.kind == EventKind::kCallOutOfMemory && event.device >= kMaxDevices ? 1 : 0;
            summary->last_event_ns = event.time_ns;
            summary->recording_gaps =
                summary->recording_gaps || event.kind == EventKind::kRecordingStarted;
            origin = from;
            contexts.follow(event);
            ledger->apply(static_cast<EventIndex>(index), event, record.pool);
        });
        summary->contexts = contexts.times();
        right = found.used == believed.used && found.has_pool == believed.has_pool;
        believed = found;
        for (const DeviceSummarizer& summarizer : summarizers) {
            if (right && summarizer.missed_peak() != 0) {
                only_peaks[summarizer.device()] = summarizer.missed_peak();
            }
        }
        right = right && std::all_of(summarizers.begin(), summarizers.end(), [](const auto& one) {
                    return one.missed_peak() == 0;
                });
    }
    for (DeviceSummarizer& summarizer : summarizers) {
        summary->devices.push_back(summarizer.finish(ledger->state(), &summary->tables));
    }
}

}  // namespace

TraceSummary summarize_timeline(Timeline timeline, bool holders) {
    TraceSummary summary;
    summary.tables = std::move(timeline);
    TimelineEvents events(summary.tables);
    summarize_devices(events, holders, &summary);
    summary.tables.events = {};
    summary.tables.partner = {};
    return summary;
}

TraceSummary summarize_stream(EventStream* stream, bool holders) {
    TraceSummary summary;
    summary.tables = stream->tables();
    StreamedEvents events(stream);
    summarize_devices(events, holders, &summary);
    summary.events_left_out = stream->events_left_out();
    return summary;
}

Result<TraceSummary> summarize_trace(const std::string& path, bool holders) {
    if (is_snapshot(path) || !import_name(path).empty()) {
        Result<Timeline> timeline = read_input(path);
        return timeline
                   ? Result<TraceSummary>(summarize_timeline(std::move(timeline).value(), holders))
                   : Result<TraceSummary>(timeline.error());
    }
    Result<EventStream> stream = EventStream::open(path);
    if (!stream.ok()) {
        return stream.error();
    }
    return summarize_stream(&*stream, holders);
}

void take_whole_run(const TraceSummary& whole,
                    const std::vector<DeviceId>& devices,
                    std::vector<DeviceMetrics>* measured) {
    for (std::size_t i = 0; i < devices.size(); ++i) {
        const auto found = std::find_if(
            whole.devices.begin(), whole.devices.end(), [&](const DeviceSummary& device) {
                return device.device == devices[i];
            });
        if (found != whole.devices.end()) {
            (*measured)[i].summary = found->metrics.summary;
            (*measured)[i].state_only = found->metrics.state_only;
        }
    }
}

}  // namespace fragtrace::analyzer
