#include "analyzer/trace/reading_notes.h"

#include "analyzer/support/units.h"
#include "analyzer/trace/absorb_ring.h"
#include "analyzer/trace/losses.h"

#include <fmt/format.h>

namespace fragtrace::analyzer {

void note_gaps_of_file(const ChunkScanner& scanner, Timeline* timeline) {
    if (scanner.gave_up()) {
        timeline->damage.notes.emplace_back(
            "the search for intact parts was stopped: too many false matches");
    }
    if (scanner.over_budget()) {
        timeline->damage.notes.emplace_back(
            "chunks that would decompress to many times the size of the file were left out");
    }
}

void note_ring(const RingContents& ring, bool known_gone, Timeline* timeline) {
    if (ring.state == RingContents::State::kIgnored) {
        timeline->damage.notes.push_back(
            fmt::format("the ring {} is ignored: {}", ring.path, ring.reason));
        return;
    }
    if (!ring.lost() || was_absorbed(timeline->facts)) {
        return;
    }
    if (timeline->ending == Ending::kKilled ||
        (timeline->ending == Ending::kNotRecorded && known_gone)) {
        timeline->damage.notes.push_back(
            fmt::format("the trace has no end, and the ring {} is gone: the process was killed, "
                        "or the file was cut off. The last events may be missing",
                        ring.path));
    } else if (timeline->ending == Ending::kNotRecorded) {
        timeline->damage.notes.push_back(fmt::format(
            "the trace has no end: its process died, or still runs in another container or on "
            "another host{}. The last events may be missing: `fraganalyze list --absorb` there "
            "gets them from {}",
            timeline->fact("host").empty() ? "" : " (" + timeline->fact("host") + ")",
            ring.path));
    }
}

void note_losses(Timeline* timeline) {
    TraceDamage& damage = timeline->damage;
    const Losses losses = losses_of(timeline->facts);
    damage.events_lost += losses.events_lost;
    damage.events_unfinished += losses.events_unfinished;
    const auto note = [timeline, &damage](
                          const char* key, const char* one, const char* many, const char* rest) {
        const std::uint64_t count = parse_count(timeline->fact(key));
        if (count != 0) {
            damage.notes.push_back(format_counted(count, one, many) + rest);
        }
    };
    note("lost.facts", "fact about the process was", "facts about the process were", " lost");
    note("stacks.without_room", "event has", "events have", " no stack: the stack tree was full");
    note("stacks.native_failures", "native stack", "native stacks", " could not be walked");
    note("stacks.python_failures",
         "Python stack is",
         "Python stacks are",
         " cut or missing: their frames could not be walked");
    note("trace.write_errors", "write", "writes", " to the trace file failed (disk full?)");
}

std::string out_of_order_note(std::uint64_t events) {
    return format_counted(events, "event is", "events are") +
           " out of order or repeated, and left out";
}

std::string impossible_events_note(std::uint64_t events) {
    return format_counted(events, "event is", "events are") +
           " left out: no device has such sizes or addresses";
}

std::string missing_numbers_note(std::uint64_t missing, std::uint64_t all) {
    return fmt::format("{} of {} sequence numbers have no event in the trace", missing, all);
}

}  // namespace fragtrace::analyzer
