// Notes about what a reader of a trace could not find or had to leave out (TraceDamage::notes).
#pragma once

#include "analyzer/model/timeline.h"
#include "analyzer/trace/chunk_scanner.h"
#include "analyzer/trace/ring_reader.h"

#include <cstdint>
#include <string>

namespace fragtrace::analyzer {

// Parts of the file that the scanner gave up. Call it after the scanner's last chunk.
void note_gaps_of_file(const ChunkScanner& scanner, Timeline* timeline);

// A ring that is missing or unusable. `known_gone`: the process cannot run any more.
void note_ring(const RingContents& ring, bool known_gone, Timeline* timeline);

// The recorder's counters, which are facts. Adds lost events to the damage; other losses become
// notes.
void note_losses(Timeline* timeline);

// "N events are out of order or repeated, and left out": by a reader that stores no events, and so
// cannot sort them.
std::string out_of_order_note(std::uint64_t events);

// Events whose sizes or addresses no device has.
std::string impossible_events_note(std::uint64_t events);

// Sequence numbers without an event, of all that there should be.
std::string missing_numbers_note(std::uint64_t missing, std::uint64_t all);

}  // namespace fragtrace::analyzer
