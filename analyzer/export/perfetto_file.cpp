#include "analyzer/export/perfetto_file.h"

namespace fragtrace::analyzer {
namespace {

// Numbers of fields in Perfetto's protos/perfetto/trace/*.proto.
namespace trace {
constexpr std::uint32_t kPacket = 1;
}

namespace packet {
constexpr std::uint32_t kClockSnapshot = 6;
constexpr std::uint32_t kTimestamp = 8;
constexpr std::uint32_t kSequenceId = 10;
constexpr std::uint32_t kTrackEvent = 11;
constexpr std::uint32_t kInternedData = 12;
constexpr std::uint32_t kSequenceFlags = 13;
constexpr std::uint32_t kTimestampClockId = 58;  // also in TracePacketDefaults
constexpr std::uint32_t kDefaults = 59;
constexpr std::uint32_t kTrackDescriptor = 60;
}  // namespace packet

namespace clocks {
constexpr std::uint32_t kClock = 1;
constexpr std::uint32_t kPrimaryTraceClock = 2;
constexpr std::uint32_t kClockId = 1;  // in Clock
constexpr std::uint32_t kTimestamp = 2;
constexpr std::uint64_t kRealtime = 1;  // clock ids
constexpr std::uint64_t kBoottime = 6;
}  // namespace clocks

namespace descriptor {
constexpr std::uint32_t kUuid = 1;
constexpr std::uint32_t kName = 2;
constexpr std::uint32_t kProcess = 3;
constexpr std::uint32_t kThread = 4;
constexpr std::uint32_t kParentUuid = 5;
constexpr std::uint32_t kCounter = 8;
constexpr std::uint32_t kPid = 1;  // in ProcessDescriptor and ThreadDescriptor
constexpr std::uint32_t kTid = 2;
constexpr std::uint32_t kCommandLine = 2;
constexpr std::uint32_t kProcessName = 6;
constexpr std::uint32_t kProcessLabel = 8;
constexpr std::uint32_t kUnit = 3;  // in CounterDescriptor
constexpr std::uint64_t kUnitBytes = 3;
}  // namespace descriptor

namespace event {
constexpr std::uint32_t kCategory = 3;
constexpr std::uint32_t kArgument = 4;
constexpr std::uint32_t kType = 9;
constexpr std::uint32_t kName = 10;
constexpr std::uint32_t kTrackUuid = 11;
constexpr std::uint32_t kCounterValue = 30;
constexpr std::uint32_t kCounterReal = 44;
constexpr std::uint64_t kSliceBegin = 1;  // types
constexpr std::uint64_t kSliceEnd = 2;
constexpr std::uint64_t kInstant = 3;
constexpr std::uint64_t kCount = 4;
}  // namespace event

namespace argument {
constexpr std::uint32_t kName = 1;
constexpr std::uint32_t kNumber = 3;
constexpr std::uint32_t kText = 6;
constexpr std::uint32_t kPointer = 7;
constexpr std::uint32_t kTextNumber = 17;
}  // namespace argument

namespace interned {
constexpr std::uint32_t kCategories = 1;
constexpr std::uint32_t kNames = 2;
constexpr std::uint32_t kArgumentNames = 3;
constexpr std::uint32_t kArgumentTexts = 29;
constexpr std::uint32_t kNumber = 1;  // in each entry
constexpr std::uint32_t kText = 2;
}  // namespace interned

// The file has a single sequence of packets. Its numbers of texts stay valid to the end.
constexpr std::uint64_t kSequence = 1;
constexpr std::uint64_t kStateCleared = 1;  // flags
constexpr std::uint64_t kNeedsState = 2;
constexpr std::size_t kPacketBufferBytes = 64 << 10;

}  // namespace

// BOOTTIME is the default clock of readers. It is not known here, so the file sets it equal to
// REALTIME. Times are then unix times in every reader.
PerfettoFile::PerfettoFile(std::FILE* file, std::uint64_t start_unix_ns) : file_(file) {
    ProtoMessage first;
    ProtoMessage defaults;
    if (start_unix_ns != 0) {
        ProtoMessage snapshot;
        for (const std::uint64_t clock : {clocks::kRealtime, clocks::kBoottime}) {
            ProtoMessage entry;
            entry.number(clocks::kClockId, clock).number(clocks::kTimestamp, start_unix_ns);
            snapshot.message(clocks::kClock, entry);
        }
        snapshot.number(clocks::kPrimaryTraceClock, clocks::kRealtime);
        ProtoMessage packet;
        packet.message(packet::kClockSnapshot, snapshot);
        add(&packet);
        defaults.number(packet::kTimestampClockId, clocks::kRealtime);
    }
    first.message(packet::kDefaults, defaults);
    first.number(packet::kSequenceFlags, kStateCleared);
    add(&first);
}

PerfettoFile::Track PerfettoFile::add_process(const Process& process) {
    ProtoMessage inner;
    inner.number(descriptor::kPid, process.pid).text(descriptor::kProcessName, process.name);
    if (!process.command_line.empty()) {
        inner.text(descriptor::kCommandLine, process.command_line);
    }
    for (const std::string& label : process.labels) {
        inner.text(descriptor::kProcessLabel, label);
    }
    ProtoMessage outer;
    outer.number(descriptor::kUuid, ++last_track_).message(descriptor::kProcess, inner);
    add_descriptor(outer);
    return last_track_;
}

PerfettoFile::Track PerfettoFile::add_thread(std::uint32_t pid, std::uint32_t tid) {
    ProtoMessage inner;
    inner.number(descriptor::kPid, pid).number(descriptor::kTid, tid);
    ProtoMessage outer;
    outer.number(descriptor::kUuid, ++last_track_).message(descriptor::kThread, inner);
    add_descriptor(outer);
    return last_track_;
}

PerfettoFile::Track PerfettoFile::add_track(Track parent, const std::string& name) {
    ProtoMessage outer;
    outer.number(descriptor::kUuid, ++last_track_).text(descriptor::kName, name);
    if (parent != 0) {
        outer.number(descriptor::kParentUuid, parent);
    }
    add_descriptor(outer);
    return last_track_;
}

PerfettoFile::Track PerfettoFile::add_counter(Track parent, const std::string& name) {
    ProtoMessage counter;
    counter.number(descriptor::kUnit, descriptor::kUnitBytes);
    ProtoMessage outer;
    outer.number(descriptor::kUuid, ++last_track_)
        .text(descriptor::kName, name)
        .number(descriptor::kParentUuid, parent)
        .message(descriptor::kCounter, counter);
    add_descriptor(outer);
    return last_track_;
}

PerfettoFile::Text PerfettoFile::name(const std::string& text) {
    return intern_once(interned::kNames, &names_, text);
}

PerfettoFile::Text PerfettoFile::category(const std::string& text) {
    return text.empty() ? Text{} : intern_once(interned::kCategories, &categories_, text);
}

PerfettoFile::Text PerfettoFile::add_argument_text(const std::string& text) {
    return intern(interned::kArgumentTexts, ++last_argument_text_, text);
}

void PerfettoFile::begin(Track track,
                         std::uint64_t time,
                         Text name,
                         Text category,
                         const std::vector<Argument>& arguments) {
    ProtoMessage event;
    event.number(event::kType, event::kSliceBegin).number(event::kTrackUuid, track);
    event.number(event::kName, name.number);
    if (category.number != 0) {
        event.number(event::kCategory, category.number);
    }
    add_arguments(&event, arguments);
    add_event(time, event);
}

void PerfettoFile::end(Track track, std::uint64_t time, const std::vector<Argument>& arguments) {
    ProtoMessage event;
    event.number(event::kType, event::kSliceEnd).number(event::kTrackUuid, track);
    add_arguments(&event, arguments);
    add_event(time, event);
}

void PerfettoFile::instant(Track track,
                           std::uint64_t time,
                           Text name,
                           const std::vector<Argument>& arguments) {
    ProtoMessage event;
    event.number(event::kType, event::kInstant).number(event::kTrackUuid, track);
    event.number(event::kName, name.number);
    add_arguments(&event, arguments);
    add_event(time, event);
}

void PerfettoFile::count(Track track, std::uint64_t time, std::uint64_t value) {
    event_.clear();
    event_.number(event::kType, event::kCount).number(event::kTrackUuid, track);
    // Integer values are signed. Sums of a made-up trace may be larger.
    if (value >> 63 == 0) {
        event_.number(event::kCounterValue, value);
    } else {
        event_.real(event::kCounterReal, static_cast<double>(value));
    }
    add_event(time, event_);
}

void PerfettoFile::finish() {
    std::fwrite(buffer_.data(), 1, buffer_.size(), file_);
    buffer_.clear();
}

void PerfettoFile::add(ProtoMessage* packet) {
    packet->number(packet::kSequenceId, kSequence);
    ProtoMessage outer;
    outer.message(trace::kPacket, *packet);
    buffer_ += outer.bytes();
    if (buffer_.size() >= kPacketBufferBytes) {
        finish();
    }
}

void PerfettoFile::add_descriptor(const ProtoMessage& descriptor) {
    ProtoMessage packet;
    packet.message(packet::kTrackDescriptor, descriptor);
    add(&packet);
}

void PerfettoFile::add_event(std::uint64_t time, const ProtoMessage& event) {
    packet_.clear();
    packet_.number(packet::kTimestamp, time)
        .message(packet::kTrackEvent, event)
        .number(packet::kSequenceFlags, kNeedsState);
    add(&packet_);
}

void PerfettoFile::add_arguments(ProtoMessage* event, const std::vector<Argument>& arguments) {
    for (const Argument& argument : arguments) {
        const std::uint64_t name =
            intern_once(interned::kArgumentNames, &argument_names_, std::string(argument.name))
                .number;
        ProtoMessage entry;
        entry.number(argument::kName, name);
        if (const auto* number = std::get_if<std::uint64_t>(&argument.value)) {
            entry.number(argument::kNumber, *number);
        } else if (const auto* address = std::get_if<Address>(&argument.value)) {
            entry.number(argument::kPointer, address->value);
        } else if (const auto* text = std::get_if<Text>(&argument.value)) {
            entry.number(argument::kTextNumber, text->number);
        } else {
            entry.text(argument::kText, std::get<std::string>(argument.value));
        }
        event->message(event::kArgument, entry);
    }
}

PerfettoFile::Text PerfettoFile::intern(std::uint32_t table,
                                        std::uint64_t number,
                                        const std::string& text) {
    ProtoMessage entry;
    entry.number(interned::kNumber, number).text(interned::kText, text);
    ProtoMessage data;
    data.message(table, entry);
    ProtoMessage packet;
    packet.message(packet::kInternedData, data).number(packet::kSequenceFlags, kNeedsState);
    add(&packet);
    return {number};
}

PerfettoFile::Text PerfettoFile::intern_once(
    std::uint32_t table,
    std::unordered_map<std::string, std::uint64_t>* numbers,
    const std::string& text) {
    const auto [found, is_new] = numbers->try_emplace(text, numbers->size() + 1);
    return is_new ? intern(table, found->second, text) : Text{found->second};
}

}  // namespace fragtrace::analyzer
