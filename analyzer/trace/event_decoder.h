// The analyzer's decoder of kEvents payloads. It gives the same results as decode_events in
// codec.h. It works column by column, which is several times faster.
#pragma once

#include <fragtrace/format.h>

#include "analyzer/trace/chunk_scanner.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// Resizes `events` to `count`. Returns false if the payload is damaged; the content of `events` is
// then meaningless.
bool decode_event_columns(const std::uint8_t* payload,
                          std::size_t size_bytes,
                          std::uint64_t first_sequence,
                          std::uint32_t count,
                          std::vector<EventRecord>* events);

// The events of one chunk as records.
struct EventRecords {
    // Checks the chunk's header first. Returns false if the payload is damaged.
    bool decode(const Chunk& chunk, std::uint64_t first_event);

    std::vector<EventRecord> all;
};

}  // namespace fragtrace::analyzer
