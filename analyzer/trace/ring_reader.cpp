#include "analyzer/trace/ring_reader.h"

#include <fragtrace/codec.h>

#include "analyzer/support/input_file.h"
#include "analyzer/support/look_at.h"
#include "analyzer/trace/possible_event.h"
#include "analyzer/trace/process_end.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint32_t kMaxRingNodes = 1u << 27;
constexpr std::size_t kSlotsPerRead = 4096;
constexpr std::uint64_t kMostEvents = std::uint64_t{1} << 62;  // more than any process can record
constexpr std::uint32_t kMostSlots = 1u << 24;                 // the recorder's own limit

// Returns why the ring cannot be used; empty if all areas that its header describes are inside the
// file.
std::string check_ring(const RingHeader& ring, const TraceHeader& trace, std::uint64_t size) {
    const auto fits = [size](std::uint64_t offset, std::uint64_t bytes) {
        return offset <= size && bytes <= size - offset;
    };
    if (std::memcmp(ring.magic, kRingMagic, sizeof kRingMagic) != 0) {
        return "it is not a ring";
    }
    if (ring.version != kFormatVersion || (ring.header_bytes != sizeof(RingHeader) &&
                                           ring.header_bytes != offsetof(RingHeader, losses))) {
        return "it has another format version";
    }
    if (std::memcmp(ring.session, trace.session, sizeof ring.session) != 0) {
        return "it belongs to another trace";
    }
    if (ring.part != trace.part) {
        return fmt::format("it continues part {} of this recording", ring.part);
    }
    if (ring.slot_bytes != sizeof(EventRecord) || !std::has_single_bit(ring.slot_count) ||
        !fits(ring.slots_offset, std::uint64_t{ring.slot_count} * sizeof(EventRecord)) ||
        ring.node_capacity > kMaxRingNodes ||
        !fits(ring.nodes_offset, std::uint64_t{ring.node_capacity} * sizeof(StackNode)) ||
        !fits(ring.code_offset, ring.code_capacity_bytes) || ring.node_count > ring.node_capacity ||
        ring.code_bytes > ring.code_capacity_bytes || ring.tail > ring.head ||
        ring.head > kMostEvents || ring.slot_count > kMostSlots ||
        !fits(ring.facts_offset, ring.facts_capacity_bytes) ||
        ring.facts_bytes > ring.facts_capacity_bytes ||
        ring.facts_bytes_written > ring.facts_bytes) {
        return "it is damaged";
    }
    return {};
}

// A file with holes is small on the disk, and tables in its holes would fill the memory. File
// systems that compress make the used parts of a ring smaller as well.
bool tables_are_there(const RingHeader& ring, std::uint64_t allocated_bytes) {
    constexpr std::uint64_t kCompressed = 64;
    constexpr std::uint64_t kAlways = std::uint64_t{1} << 20;
    return std::uint64_t{ring.node_count} * sizeof(StackNode) + ring.code_bytes +
               ring.facts_bytes <=
           kAlways + allocated_bytes * kCompressed;
}

// Reads the events (tail, head]. A slot without the expected number counts as unfinished.
void read_slots(const InputFile& file, RingContents* ring) {
    const RingHeader& header = ring->header;
    std::uint64_t next = header.tail + 1;
    if (header.head > header.slot_count && next <= header.head - header.slot_count) {
        next = header.head - header.slot_count + 1;  // older events are overwritten
    }
    // Sequence numbers up to this one belong to a checkpoint and have no slots.
    std::uint64_t set_aside = 0;
    std::vector<EventRecord> window(kSlotsPerRead);
    while (next <= header.head) {
        const std::uint64_t slot = (next - 1) & (header.slot_count - 1);
        const std::size_t wanted = static_cast<std::size_t>(std::min<std::uint64_t>(
            {kSlotsPerRead, header.head - next + 1, header.slot_count - slot}));
        const std::size_t got = file.read_at(header.slots_offset + slot * sizeof(EventRecord),
                                             window.data(),
                                             wanted * sizeof(EventRecord)) /
                                sizeof(EventRecord);
        for (std::size_t i = 0; i < wanted; ++i, ++next) {
            if (i < got && window[i].sequence == next) {
                ring->events.push_back(window[i]);
                if (window[i].kind == EventKind::kRecordingStarted) {
                    set_aside = next + std::min(window[i].size, header.head - next);
                }
            } else if (next > set_aside) {
                ++ring->events_unfinished;
            }
        }
    }
}

// The drain of a running process advances the tail, after which slots are overwritten. An event is
// complete if a second read of its slot gives the same bytes.
void keep_unchanged(const InputFile& file, RingContents* ring) {
    const RingHeader& header = ring->header;
    std::erase_if(ring->events, [&](const EventRecord& event) {
        EventRecord again = {};
        const std::uint64_t slot = (event.sequence - 1) & (header.slot_count - 1);
        file.read_at(header.slots_offset + slot * sizeof again, &again, sizeof again);
        return std::memcmp(&again, &event, sizeof again) != 0;
    });
    ring->events_unfinished = 0;  // the process is still writing them
}

void read_tables(const InputFile& file, RingContents* ring) {
    const RingHeader& header = ring->header;
    ring->nodes.resize(header.node_count);
    const std::size_t node_bytes = file.read_at(
        header.nodes_offset, ring->nodes.data(), ring->nodes.size() * sizeof(StackNode));
    ring->nodes.resize(node_bytes / sizeof(StackNode));
    ring->codes.resize(header.code_bytes);
    ring->codes.resize(file.read_at(header.code_offset, ring->codes.data(), ring->codes.size()));
    ring->facts.resize(header.facts_bytes);
    ring->facts.resize(file.read_at(header.facts_offset, ring->facts.data(), ring->facts.size()));
}

void read_losses(RingContents* ring) {
    const RingHeader& header = ring->header;
    const auto add = [ring](const char* key, std::uint64_t count) {
        if (count != 0) {
            ring->losses[key] = std::to_string(count);
        }
    };
    add("lost.ring_full", header.lost_ring_full);
    add("lost.reentrant", header.lost_reentrant);
    add("lost.unfinished_in_ring", ring->events_unfinished);
    add("stacks.without_room", header.stacks_without_room);
    add("stacks.native_failures", header.native_unwind_failures);
    add("stacks.python_failures", header.python_walk_failures);
    add("trace.write_errors", header.trace_write_errors);
    for (unsigned i = 0; i < kRingLossCount && header.header_bytes == sizeof header; ++i) {
        add(kRingLosses[i], header.losses[i]);
    }
}

}  // namespace

RingContents read_ring(const std::string& trace_path, const TraceHeader& trace, bool process_runs) {
    RingContents ring;
    ring.path.assign(trace.ring_path, strnlen(trace.ring_path, sizeof trace.ring_path));
    if (ring.path.empty()) {
        return ring;
    }
    // The recorder writes an absolute path. Another one would depend on where the reader is.
    Result<InputFile> file = ring.path.front() == '/'
                                 ? look_at(ring.path)
                                 : Error{ErrorCode::kInput, "no absolute path"};
    if (!file.ok()) {
        const std::filesystem::path name = std::filesystem::path(ring.path).filename();
        const std::string beside = std::filesystem::path(trace_path).replace_filename(name);
        file = look_at(beside);
        if (!file.ok()) {
            return ring;
        }
        ring.path = beside;
    }
    RingHeader& header = ring.header;
    const bool whole = file->read_at(0, &header, sizeof header) == sizeof header;
    // A trace may name any file. Only a ring must not be replaced by a result.
    if (whole && std::memcmp(header.magic, kRingMagic, sizeof kRingMagic) == 0) {
        file->count_as_read();
    }
    ring.reason = whole ? check_ring(header, trace, file->size()) : "it is cut off";
    if (ring.reason.empty() && !tables_are_there(header, file->allocated_bytes())) {
        ring.reason = "it is damaged";
    }
    if (!ring.reason.empty()) {
        ring.state = RingContents::State::kIgnored;
        return ring;
    }
    ring.state = RingContents::State::kRead;
    read_slots(*file, &ring);
    if (process_runs) {
        keep_unchanged(*file, &ring);
        // Stacks of these events may have been added after the header was read.
        RingHeader later = {};
        if (file->read_at(0, &later, sizeof later) == sizeof later &&
            check_ring(later, trace, file->size()).empty() &&
            tables_are_there(later, file->allocated_bytes())) {
            header.node_count = later.node_count;
            header.code_bytes = later.code_bytes;
            header.facts_bytes = later.facts_bytes;
        }
    }
    for (EventRecord& event : ring.events) {
        blank_if_impossible(&event);
    }
    read_tables(*file, &ring);
    read_losses(&ring);
    if (!process_runs && header.alive_ns != 0) {
        ring.losses[kAliveFact] = std::to_string(header.alive_ns);
    }
    if (header.next_program_ns != 0) {
        ring.losses[kNextProgramFact] = std::to_string(header.next_program_ns);
    }
    ring.file = std::move(file).value();
    return ring;
}

RingSurplus add_ring_tables(const RingContents& ring, TimelineBuilder* builder) {
    RingSurplus surplus;
    surplus.first_node = builder->whole_nodes();
    builder->add_nodes(0, ring.nodes);
    ByteReader reader(ring.codes.data(), ring.codes.size());
    while (reader.left() != 0) {
        const std::uint8_t* begin = ring.codes.data() + (ring.codes.size() - reader.left());
        CodeRecord code = {};
        if (!decode_code(&reader, &code)) {
            break;
        }
        if (!builder->has_code(code.id)) {
            const auto size = static_cast<std::size_t>(ring.codes.data() +
                                                       (ring.codes.size() - reader.left()) - begin);
            surplus.codes.insert(surplus.codes.end(), begin, begin + size);
            ++surplus.code_count;
        }
    }
    builder->add_codes(surplus.codes.data(), surplus.codes.size(), surplus.code_count);
    builder->add_facts(ring.facts);
    surplus.facts = ring.facts.substr(
        std::min<std::size_t>(ring.header.facts_bytes_written, ring.facts.size()));
    return surplus;
}

RingSurplus add_ring(const RingContents& ring, TimelineBuilder* builder) {
    RingSurplus surplus = add_ring_tables(ring, builder);
    builder->put_in_order();
    // The drain would have dropped events that happened while recording was stopped.
    bool stopped = builder->recording_is_stopped();
    for (const EventRecord& event : ring.events) {
        if (builder->has_event(event.sequence)) {
            continue;
        }
        stopped = stopped && event.kind != EventKind::kRecordingStarted;
        if (!stopped) {
            surplus.events.push_back(event);
        }
        stopped = stopped || event.kind == EventKind::kRecordingStopped;
    }
    for (const EventRecord& event : surplus.events) {
        builder->add_event(event);
    }
    return surplus;
}

}  // namespace fragtrace::analyzer
