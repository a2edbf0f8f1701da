#include "analyzer/trace/event_stream.h"

#include "analyzer/model/steady_time.h"
#include "analyzer/trace/absorb_ring.h"
#include "analyzer/trace/builder.h"
#include "analyzer/trace/chunk_pipeline.h"
#include "analyzer/trace/chunk_scanner.h"
#include "analyzer/trace/job_place.h"
#include "analyzer/trace/losses.h"
#include "analyzer/trace/possible_event.h"
#include "analyzer/trace/trace_header.h"
#include "analyzer/trace/traced_process.h"

#include <cstring>
#include <unordered_map>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// Gives frees without a device the device of their allocation.
class DeviceOfFrees {
  public:
    void complete(Event* event) {
        switch (event->kind) {
            case EventKind::kDeviceAlloc:
            case EventKind::kAsyncAlloc:
            case EventKind::kManagedAlloc:
                devices_[event->address] = event->device;
                break;
            case EventKind::kDeviceFree:
            case EventKind::kAsyncFree:
                if (const auto found = devices_.find(event->address); found != devices_.end()) {
                    if (event->device == kMaxDevices) {
                        event->device = found->second & 31u;
                    }
                    devices_.erase(found);
                }
                break;
            default:
                break;
        }
    }

  private:
    std::unordered_map<DeviceAddress, DeviceId> devices_;  // device of each live allocation
};

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
    left_out_ = 0;
    bool ended = false;
    const auto pass_on = [&](const EventRecord& record) {
        if (index == most) {
            return;
        }
        if (index != 0 && record.sequence <= last) {
            ++left_out_;
            return;
        }
        last = record.sequence;
        Event event = event_of(record);
        event.time_ns = steady.of(event.kind, event.time_ns);
        devices.complete(&event);
        visit(index++, event, record);
    };
    ChunkScanner scanner(file_, header_.header_bytes, state_ == ProcessState::kRuns);
    ChunkPipeline<EventRecords> pipeline(&scanner);
    while (const auto* item = index == most ? nullptr : pipeline.next()) {
        ended = ended || item->chunk.header.type == ChunkType::kEnd;
        if (item->chunk.header.type == ChunkType::kEvents && item->decoded) {
            for (const EventRecord& record : item->events.all) {
                pass_on(record);
            }
        }
    }
    if (!ended) {
        for (const EventRecord& record : ring_.events) {
            if (record.sequence > last) {
                pass_on(record);
            }
        }
    }
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
    if (!builder.ended() && ring_.state == RingContents::State::kRead) {
        builder.add_nodes(0, ring_.nodes);
        builder.add_facts(ring_.facts);
    }
    const bool ended = builder.ended();
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
    tables.damage.events_lost += losses_of(tables.facts).events_lost;
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
