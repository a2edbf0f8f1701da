#include "analyzer/trace/event_stream.h"

#include "analyzer/model/pair_map.h"
#include "analyzer/model/steady_time.h"
#include "analyzer/trace/absorb_ring.h"
#include "analyzer/trace/builder.h"
#include "analyzer/trace/chunk_pipeline.h"
#include "analyzer/trace/chunk_scanner.h"
#include "analyzer/trace/job_place.h"
#include "analyzer/trace/losses.h"
#include "analyzer/trace/possible_event.h"
#include "analyzer/trace/reading_notes.h"
#include "analyzer/trace/trace_header.h"
#include "analyzer/trace/traced_process.h"

#include <cstring>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// Gives events that end something, and name no device, the device of the event that began it.
class DeviceOfFrees {
  public:
    void complete(Event* event) {
        if (event->kind == EventKind::kCheckpointBegin) {
            devices_.clear();  // it lists all that is live
        }
        const EventEffect effect = effect_of(event->kind);
        const auto key = static_cast<std::uint32_t>(effect.begins);
        if (effect.begins != Thing::kNone) {
            devices_.set(event->address, key, event->device);
        } else if (effect.ends != Thing::kNone) {
            const std::uint32_t device =
                devices_.take(event->address, static_cast<std::uint32_t>(effect.ends));
            if (device != PairMap::kAbsent && event->device == kUnknownDevice) {
                event->device = device & 31u;
            }
        }
    }

  private:
    static EventEffect effect_of(EventKind kind) {
        switch (kind) {
            case EventKind::kBlockAlloc:  // blocks name their device
            case EventKind::kBlockFree:
                return {};
            case EventKind::kPhysicalCreate:
                return event_rows::begins(Thing::kPhysical);
            case EventKind::kPhysicalRelease:  // the first one of a handle that was retained
                return event_rows::ends(Thing::kPhysical);
            default:
                return info_of(kind).effect;
        }
    }

    PairMap devices_;  // (address or handle, thing) -> device
};

// Whether this end says that the recording goes on in another file.
bool continues(const Chunk& end) {
    EndRecord record = {};
    if (end.header.raw_bytes < sizeof record) {
        return false;
    }
    std::memcpy(&record, end.payload, sizeof record);
    return record.reason == EndReason::kContinued;
}

}  // namespace

Event event_of(const EventRecord& record) {
    Event event = {};
    event.time_ns = record.time_ns;
    event.address = record.address;
    event.size_bytes = record.size;
    event.extra = record.extra;
    event.stream = kNoStream;
    event.device = (record.device < kMaxDevices ? record.device : kMaxDevices) & 31u;
    event.flags = record.flags & 7u;
    event.kind = is_possible(record.kind, record.address, record.size, record.extra)
                     ? record.kind
                     : EventKind::kNone;
    return event;
}

EventStream::EventStream(std::string path, InputFile file, const TraceHeader& header)
    : path_(std::move(path)), file_(std::move(file)), header_(header) {}

Result<EventStream> EventStream::open(const std::string& path) {
    Result<OpenTrace> trace = open_trace(path);
    if (!trace.ok()) {
        return trace.error();
    }
    const TraceHeader header = trace->header;
    EventStream stream(path, std::move(trace->file), header);
    stream.state_ = process_state(path, stream.file_, header);
    // Read the ring before the file: events that leave the ring in the meantime are then in the
    // file.
    const bool gone = stream.state_ == ProcessState::kGone;
    stream.ring_ = read_ring(path, header, !gone);
    if (!gone) {
        Result<InputFile> again = InputFile::open(path);
        if (again.ok()) {
            stream.file_ = std::move(again).value();
        }
    }
    return stream;
}

void EventStream::for_each(
    const std::function<void(std::uint64_t, const Event&, const EventRecord&)>& visit,
    std::uint64_t most) {
    DeviceOfFrees devices;
    std::uint64_t index = 0;
    std::uint64_t last = 0;
    SteadyTime steady;
    passed_on_ = 0;
    left_out_ = 0;
    impossible_ = 0;
    numbers_missing_ = 0;
    bool ended = false;
    bool stopped = false;
    const auto pass_on = [&](const EventRecord& record) {
        if (index == most) {
            return;
        }
        if (index != 0 && record.sequence <= last) {
            ++left_out_;
            return;
        }
        // Numbers are skipped before a checkpoint and where recording was stopped.
        if (record.sequence > last + 1 && record.kind != EventKind::kCheckpointBegin &&
            record.kind != EventKind::kRecordingStarted) {
            numbers_missing_ += record.sequence - last - 1;
        }
        last = record.sequence;
        stopped = record.kind == EventKind::kRecordingStopped ||
                  (stopped && record.kind != EventKind::kRecordingStarted);
        Event event = event_of(record);
        impossible_ += event.kind == EventKind::kNone ? 1 : 0;
        event.time_ns = steady.of(event.kind, event.time_ns);
        devices.complete(&event);
        visit(index++, event, record);
        passed_on_ = index;
    };
    ChunkScanner scanner(file_, header_.header_bytes, state_ == ProcessState::kRuns);
    ChunkPipeline<EventRecords> pipeline(&scanner);
    while (const auto* item = index == most ? nullptr : pipeline.next()) {
        ended = ended || (item->chunk.header.type == ChunkType::kEnd &&
                          !goes_on_in_ring(continues(item->chunk)));
        if (item->chunk.header.type == ChunkType::kEvents && item->decoded) {
            for (const EventRecord& record : item->events.all) {
                pass_on(record);
            }
        }
    }
    if (!ended) {
        for (const EventRecord& record : ring_.events) {
            // The drain would have dropped events that happened while recording was stopped.
            if (record.sequence > last &&
                (!stopped || record.kind == EventKind::kRecordingStarted)) {
                pass_on(record);
            }
        }
    }
}

std::vector<std::string> EventStream::notes_of_pass() const {
    std::vector<std::string> notes;
    if (impossible_ != 0) {
        notes.push_back(impossible_events_note(impossible_));
    }
    if (left_out_ != 0) {  // their numbers are not missing
        notes.push_back(out_of_order_note(left_out_));
    } else if (numbers_missing_ != 0) {
        notes.push_back(missing_numbers_note(numbers_missing_, passed_on_ + numbers_missing_));
    }
    return notes;
}

Timeline EventStream::tables() {
    return timeline([](TimelineBuilder*) {});
}

Timeline EventStream::timeline(const std::function<void(TimelineBuilder*)>& add_events) {
    TimelineBuilder builder(file_.size());
    ChunkScanner scanner(file_, header_.header_bytes, state_ == ProcessState::kRuns);
    std::uint64_t undecodable = 0;
    for (Chunk chunk; scanner.next(&chunk);) {
        if (chunk.header.type != ChunkType::kEvents) {
            undecodable += builder.add_chunk(chunk) ? 0 : 1;
        }
    }
    const bool continued = builder.ended() && builder.ending() == Ending::kContinued;
    if (continued && !goes_on_in_ring(continued)) {
        ring_.state = RingContents::State::kAbsent;  // it is that of a later part
    }
    const bool ended = builder.ended() && !goes_on_in_ring(continued) &&
                       !(continued && was_absorbed(builder.facts()));
    if (!ended && ring_.state == RingContents::State::kRead) {
        add_ring_tables(ring_, &builder);
    }
    add_events(&builder);
    Timeline tables = builder.finish();
    tables.path = path_;
    tables.pid = header_.pid;
    tables.rank = job_place(header_, tables.facts).rank;
    tables.start_unix_ns = header_.start_unix_ns;
    merge_losses(ring_.losses, &tables.facts);
    if (!ended) {
        tables.ending = ending_without_mark(path_, header_, state_, tables.facts, ring_.lost());
    }
    tables.damage.bytes_unreadable = scanner.bytes_unreadable();
    tables.damage.chunks_unreadable = scanner.chunks_unreadable() + undecodable;
    note_gaps_of_file(scanner, &tables);
    note_ring(ring_, is_known_gone(header_, state_, tables.facts), &tables);
    note_losses(&tables);
    return tables;
}

std::optional<std::uint64_t> EventStream::take_over_ring() {
    if (state_ != ProcessState::kGone || ring_.state != RingContents::State::kRead) {
        return std::nullopt;
    }
    // Reads all tables, but only two kinds of events: those that may also be in the ring, and those
    // that stop or start recording.
    TimelineBuilder builder(file_.size());
    ChunkScanner scanner(file_, header_.header_bytes, false);
    ChunkPipeline<EventRecords> pipeline(&scanner);
    while (const auto* item = pipeline.next()) {
        if (item->chunk.header.type != ChunkType::kEvents) {
            builder.add_chunk(item->chunk);
            continue;
        }
        for (const EventRecord& record : item->events.all) {
            if (record.sequence > ring_.header.tail ||
                record.kind == EventKind::kRecordingStopped ||
                record.kind == EventKind::kRecordingStarted) {
                builder.add_event(record);
            }
        }
    }
    const RingSurplus surplus = add_ring(ring_, &builder);
    if (!absorb_ring(path_, file_, ring_, surplus)) {
        return std::nullopt;
    }
    return surplus.events.size();
}

Result<std::optional<std::uint64_t>> take_over_ring(const std::string& path) {
    Result<EventStream> stream = EventStream::open(path);
    if (!stream.ok()) {
        return stream.error();
    }
    return stream->take_over_ring();
}

}  // namespace fragtrace::analyzer
