// The analyzer's decoder of kEvents payloads: the same answers as decode_events of codec.h, column
// by column, which is several times faster.
#pragma once

#include <fragtrace/format.h>

#include "analyzer/trace/chunk_scanner.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// Makes `events` as long as the chunk's header says. False when the payload is damaged; what the
// events hold is then of no use.
bool decode_event_columns(const std::uint8_t* payload,
                          std::size_t size_bytes,
                          std::uint64_t first_sequence,
                          std::uint32_t count,
                          std::vector<EventRecord>* events);

// The events of one chunk as records.
struct EventRecords {
    // The chunk's header is checked first. False: the payload is damaged.
    bool decode(const Chunk& chunk, std::uint64_t first_event);

    std::vector<EventRecord> all;
};

}  // namespace fragtrace::analyzer
