#include "analyzer/trace/window_reader.h"

#include "analyzer/trace/builder.h"
#include "analyzer/trace/losses.h"
#include "analyzer/trace/possible_event.h"
#include "analyzer/trace/reading_notes.h"
#include "live/live_table.h"

#include <new>

namespace fragtrace::analyzer {
namespace {

// The recorder's table of live allocations: it yields checkpoints as the recorder writes them.
class LiveAllocations {
  public:
    explicit LiveAllocations(bool frees_lost) : frees_lost_(frees_lost) { create(); }

    LiveAllocations(const LiveAllocations&) = delete;
    LiveAllocations& operator=(const LiveAllocations&) = delete;

    ~LiveAllocations() { table_.abandon(); }

    void follow(EventRecord event) {
        blank_if_impossible(&event);
        if (event.kind == EventKind::kCheckpointBegin) {
            // The recorder lists everything again.
            table_.abandon();
            create();
        }
        table_.apply(event);
    }

    // The number of events that events() returns at most.
    [[nodiscard]] std::uint64_t count() const { return table_.event_count(); }

    std::vector<EventRecord> events() {
        table_.drop_overlapped();
        std::vector<EventRecord> all(table_.event_count());
        table_.copy_to(all.data());
        return all;
    }

  private:
    void create() {
        if (!table_.create()) {
            throw std::bad_alloc();
        }
        if (frees_lost_) {
            table_.expect_lost_frees();
        }
    }

    bool frees_lost_;
    preload::LiveTable table_;
};

class WindowReading {
  public:
    WindowReading(TimelineBuilder* builder, const std::vector<EventWindow>& windows)
        : builder_(*builder),
          windows_(windows),
          live_(losses_of(builder->facts()).events_lost != 0) {}

    void visit(std::uint64_t index, const EventRecord& event) {
        // A checkpoint of the recording stays whole.
        while (next_ < windows_.size() && index >= windows_[next_].end &&
               !(inside_ && in_checkpoint_)) {
            inside_ = false;
            ++next_;
        }
        if (!inside_ && next_ < windows_.size() && index >= windows_[next_].begin &&
            may_begin(event)) {
            begin(event);
        }
        if (inside_) {
            builder_.add_event(event);
            last_ = event;
        } else {
            ++left_out_;
            before_ = event;
        }
        note_state(event.kind);
        live_.follow(event);
        ++events_;
    }

    // Call it after the last event.
    void end() {
        if (left_out_ != 0 && !inside_) {
            stop();
            sums_.push_back(left_out_);
        }
    }

    // Tells the finished timeline which of its gaps are events that were left out.
    void describe_gaps(Timeline* timeline) const {
        timeline->events_in_file = events_;
        std::size_t next = 0;
        for (RecordingGap& gap : timeline->gaps) {
            const bool before_window = next < begins_.size() && gap.end == begins_[next];
            const bool at_the_end = next == begins_.size() && gap.end == timeline->events.size();
            if (next < sums_.size() && (before_window || at_the_end)) {
                gap.left_out = sums_[next++];
            }
        }
    }

  private:
    [[nodiscard]] bool may_begin(const EventRecord& event) const {
        constexpr std::uint64_t kMarkers = 4;
        return left_out_ == 0 ||
               (!stopped_ && !in_checkpoint_ && event.kind != EventKind::kCheckpointBegin &&
                event.sequence - last_.sequence > live_.count() + kMarkers);
    }

    void begin(const EventRecord& event) {
        inside_ = true;
        if (left_out_ == 0) {
            return;
        }
        if (builder_.event_count() != 0) {
            stop();
        }
        const std::vector<EventRecord> live = live_.events();
        std::uint64_t sequence = event.sequence - (live.size() + 3);
        begins_.push_back(static_cast<EventIndex>(builder_.event_count()));
        sums_.push_back(left_out_);
        left_out_ = 0;
        add_marker(EventKind::kRecordingStarted, sequence++, before_.time_ns);
        add_marker(EventKind::kCheckpointBegin, sequence++, before_.time_ns);
        for (EventRecord entry : live) {
            entry.sequence = sequence++;
            builder_.add_event(entry);
        }
        add_marker(EventKind::kCheckpointEnd, sequence, before_.time_ns);
    }

    void stop() { add_marker(EventKind::kRecordingStopped, last_.sequence + 1, last_.time_ns); }

    void add_marker(EventKind kind, std::uint64_t sequence, std::uint64_t time_ns) {
        EventRecord event = {};
        event.sequence = sequence;
        event.kind = kind;
        event.device = kDeviceUnknown;
        event.stream = kStreamUnknown;
        event.time_ns = time_ns;
        builder_.add_event(event);
    }

    void note_state(EventKind kind) {
        switch (kind) {
            case EventKind::kRecordingStopped:
                stopped_ = true;
                break;
            case EventKind::kRecordingStarted:
                stopped_ = false;
                break;
            case EventKind::kCheckpointBegin:
                in_checkpoint_ = true;
                break;
            case EventKind::kCheckpointEnd:
                in_checkpoint_ = false;
                break;
            default:
                break;
        }
    }

    TimelineBuilder& builder_;
    const std::vector<EventWindow>& windows_;
    LiveAllocations live_;
    std::size_t next_ = 0;  // the current or the next window
    bool inside_ = false;
    bool stopped_ = false;
    bool in_checkpoint_ = false;
    EventRecord last_ = {};    // the last event that was read
    EventRecord before_ = {};  // the last one that was left out
    std::uint64_t events_ = 0;
    std::uint64_t left_out_ = 0;       // since the last window
    std::vector<EventIndex> begins_;   // of windows after a gap: its last event in the timeline
    std::vector<std::uint64_t> sums_;  // events left out before each of them, and after the last
};

}  // namespace

Timeline read_windows(EventStream* stream, const std::vector<EventWindow>& windows) {
    std::optional<WindowReading> reading;
    Timeline timeline = stream->timeline([&](TimelineBuilder* builder) {
        reading.emplace(builder, windows);
        stream->for_each([&](std::uint64_t index, const Event&, const EventRecord& record) {
            reading->visit(index, record);
        });
        reading->end();
    });
    reading->describe_gaps(&timeline);
    if (stream->events_left_out() != 0) {
        timeline.damage.notes.push_back(out_of_order_note(stream->events_left_out()));
    }
    return timeline;
}

}  // namespace fragtrace::analyzer
