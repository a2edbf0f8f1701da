// Builds chunks in the recorder's format, to absorb a ring into its trace and for tests.
#pragma once

#include <fragtrace/format.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

// Appends one chunk (header, payload, padding) to `out`. The size of `out` must be a multiple of 8.
void append_chunk(std::string* out,
                  ChunkType type,
                  std::string_view payload,
                  std::uint32_t count,
                  std::uint64_t first,
                  Compression compression = Compression::kZstd);

// Splits the events into chunks of at most `chunk_events`. Sequence numbers must increase.
void append_events(std::string* out,
                   const std::vector<EventRecord>& events,
                   std::size_t chunk_events = kMaxChunkEvents,
                   Compression compression = Compression::kZstd);

// Appends nodes [first, end) of a complete tree.
void append_nodes(std::string* out,
                  const std::vector<StackNode>& tree,
                  std::uint32_t first,
                  std::uint32_t end);

void append_facts(std::string* out, const std::map<std::string, std::string>& facts);

}  // namespace fragtrace::analyzer
