#include "analyzer/analysis/metrics/trace_summary.h"

#include "analyzer/model/device_layer.h"
#include "analyzer/model/request_outcomes.h"
#include "analyzer/snapshot/input.h"
#include "analyzer/trace/event_stream.h"
#include "analyzer/trace/symbols.h"
#include "analyzer/trace/user_frame.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// The number is 0, or the size of each block if no block in use has a stack.
using Holdings = std::map<std::pair<Origin, std::uint64_t>, HeldBy>;

// Tracks which origin each live block has.
class LiveOrigins {
  public:
    explicit LiveOrigins(DeviceId device) : device_(device) {}

    // Call it before the event is applied. `state` has all devices.
    void begin(EventIndex index,
               const Event& event,
               const Origin& origin,
               const RecordedState& state) {
        const bool block = event.kind == EventKind::kBlockAlloc;
        if (event.device == device_ && (block || is_device_allocation(event.kind))) {
            births_[index] = origin;
            held_[{event.kind, event.address}] = index;
        }
        if (event.kind == EventKind::kBlockLabel) {
            label(event);
        }
        // Blocks are gone if another block has taken their place. Forget them now and then.
        if (births_.size() > 2 * held_.size() + kept_ + kSlack) {
            forget_gone(state);
        }
    }

    // Call it after the event. A block that waits for other streams is remembered until its place
    // is taken. So is memory that can outlive its handle.
    void end(const Event& event) {
        if (event.kind == EventKind::kBlockFree && (event.flags & kFlagPending) == 0) {
            forget({EventKind::kBlockAlloc, event.address});
        } else if (event.kind == EventKind::kDeviceFree || event.kind == EventKind::kAsyncFree) {
            forget({EventKind::kDeviceAlloc, event.address});
            forget({EventKind::kAsyncAlloc, event.address});
        }
    }

    // Memory in use right now, by origin.
    [[nodiscard]] Holdings holders(const RecordedState& state) const {
        Holdings by_origin;
        const HeapSnapshot heap = state.snapshot(device_);
        const auto origin_of = [this](const HeapBlock& block) {
            const auto birth = births_.find(block.allocated_by);
            return birth != births_.end() ? birth->second : Origin{};
        };
        const bool by_size =
            std::none_of(heap.blocks.begin(), heap.blocks.end(), [&](const HeapBlock& block) {
                return block.state != BlockState::kFree && has_stack(origin_of(block));
            });
        for (const HeapBlock& block : heap.blocks) {
            if (block.state != BlockState::kFree) {
                by_origin[by_size ? std::pair(Origin{}, block.size_bytes)
                                  : std::pair(origin_of(block), std::uint64_t{0})]
                    .add(block.size_bytes, 1);
            }
        }
        return by_origin;
    }

  private:
    using Place = std::pair<EventKind, DeviceAddress>;  // an address, or a handle

    static constexpr std::size_t kSlack = 1024;

    void forget(const Place& place) {
        if (const auto found = held_.find(place); found != held_.end()) {
            births_.erase(found->second);
            held_.erase(found);
        }
    }

    void label(const Event& event) {
        const auto block = held_.find({EventKind::kBlockAlloc, event.address});
        if (block != held_.end() && event.size_bytes < kUnknown32) {
            births_[block->second].label = static_cast<std::uint32_t>(event.size_bytes);
        }
    }

    void forget_gone(const RecordedState& state) {
        std::unordered_map<EventIndex, Origin> kept;
        for (const auto& [place, index] : held_) {
            kept.insert(*births_.find(index));
        }
        for (const HeapBlock& block : state.snapshot(device_).blocks) {
            if (const auto birth = births_.find(block.allocated_by); birth != births_.end()) {
                kept.insert(*birth);
            }
        }
        births_ = std::move(kept);
        kept_ = 2 * births_.size();
    }

    DeviceId device_;
    std::unordered_map<EventIndex, Origin> births_;
    std::map<Place, EventIndex> held_;  // includes blocks that wait for streams
    std::size_t kept_ = 0;
};

// The events of a trace file, one by one, each with its origin.
class StreamedEvents {
  public:
    explicit StreamedEvents(EventStream* stream) : stream_(*stream) {}

    template <typename Visit>
    void for_each(Visit visit, std::uint64_t most = kAllEvents) {
        stream_.for_each(
            [&](EventIndex i, const Event& event, const EventRecord& record) {
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

// Finds the out-of-memory that a run did not get past.
class FinalFailure {
  public:
    explicit FinalFailure(DeviceId device) : device_(device) {}

    // Call it after the event.
    void follow(EventIndex i, const Event& event, const RecordedState& state) {
        if (!outcomes_) {
            outcomes_.emplace([&state](DeviceId id) { return state.has_block_layer(id); });
        }
        const RequestOutcome outcome = outcomes_->visit(i, event);
        if (event.device != device_) {
            return;
        }
        const bool served = state.has_block_layer(device_) ? event.kind == EventKind::kBlockAlloc
                                                           : is_device_allocation(event.kind);
        if (served) {
            time_ns_.reset();
        } else if (is_out_of_memory(outcome) && !time_ns_) {
            time_ns_ = event.time_ns;
        }
    }

    [[nodiscard]] std::optional<std::uint64_t> time_ns() const { return time_ns_; }

  private:
    DeviceId device_;
    std::optional<RequestOutcomes> outcomes_;  // set at the first event
    std::optional<std::uint64_t> time_ns_;
};

// Computes the summary of a device, event by event.
class DeviceSummarizer : public LedgerWatcher {
  public:
    // `origin` always refers to the origin of the current event.
    DeviceSummarizer(DeviceId device, bool holders, const Origin& origin)
        : holders_(holders),
          origin_(origin),
          origins_(device),
          final_failure_(device),
          measurement_(device, [this](const RecordedState& state) {
              if (holders_) {
                  at_peak_ = origins_.holders(state);
              }
          }) {
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
        final_failure_.follow(i, event, state);
        if (holders_) {
            origins_.end(event);
        }
        const MemoryTotals& now = state.totals(summary_.device);
        if (now.reserved > peak_reserved_) {
            peak_reserved_ = now.reserved;
            summary_.peak_time_ns = event.time_ns;
        }
        curve_.add(event.time_ns, now.reserved, now.allocated);
    }

    DeviceSummary finish(const RecordedState& state, Timeline* tables) {
        summary_.metrics = measurement_.finish(state);
        summary_.final_oom_ns = final_failure_.time_ns();
        summary_.curve = curve_.curve();
        for (auto& [key, holder] : at_peak_) {
            holder.origin = static_cast<OriginId>(tables->origins.size());
            holder.label = key.second != 0 ? label_by_size(key.second) : "";
            tables->origins.push_back(key.first);
            summary_.holders.push_back(std::move(holder));
        }
        std::stable_sort(summary_.holders.begin(),
                         summary_.holders.end(),
                         [](const HeldBy& a, const HeldBy& b) { return a.bytes > b.bytes; });
        return std::move(summary_);
    }

  private:
    bool holders_;
    const Origin& origin_;
    LiveOrigins origins_;
    Holdings at_peak_;
    FinalFailure final_failure_;
    DeviceMeasurement measurement_;
    MemoryCurveBuilder curve_;
    DeviceSummary summary_;
    std::uint64_t peak_reserved_ = 0;
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
        [&](EventIndex, const Event& event, const EventRecord&, const Origin&) {
            note_device(event, &believed);
        },
        kLook_events);
    Origin origin;
    std::deque<DeviceSummarizer> summarizers;
    std::optional<Ledger> ledger;
    for (bool right = false; !right;) {
        ledger.reset();
        summarizers.clear();
        std::vector<LedgerWatcher*> watchers;
        for (DeviceId device = 0; device < kMaxDevices; ++device) {
            if (believed.used[device]) {
                watchers.push_back(&summarizers.emplace_back(device, holders, origin));
            }
        }
        ledger.emplace(believed, watchers);
        RecordedDevices found = none;
        events.for_each([&](EventIndex index,
                            const Event& event,
                            const EventRecord& record,
                            const Origin& from) {
            note_device(event, &found);
            summary->events = std::uint64_t{index} + 1;
            summary->last_event_ns = event.time_ns;
            origin = from;
            ledger->apply(index, event, record.pool);
        });
        right = found.used == believed.used && found.has_pool == believed.has_pool;
        believed = found;
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
    TraceSummary summary;
    summary.tables = stream->tables();
    StreamedEvents events(&*stream);
    summarize_devices(events, holders, &summary);
    summary.events_left_out = stream->events_left_out();
    return summary;
}

}  // namespace fragtrace::analyzer
