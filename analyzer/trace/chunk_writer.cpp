#include "analyzer/trace/chunk_writer.h"

#include <fragtrace/codec.h>

#include <algorithm>
#include <zstd.h>

namespace fragtrace::analyzer {
namespace {

constexpr int kZstdLevel = 3;
// This number of nodes stays far below the limit on a chunk's raw bytes.
constexpr std::uint32_t kNodesPerChunk = 1u << 20;

void append_escaped(std::string* out, std::string_view text) {
    for (const char character : text) {
        switch (character) {
            case '\\':
                *out += "\\\\";
                break;
            case '\t':
                *out += "\\t";
                break;
            case '\n':
                *out += "\\n";
                break;
            default:
                *out += character;
        }
    }
}

std::string_view view(const ByteWriter& writer) {
    return {reinterpret_cast<const char*>(writer.data()), writer.size()};
}

}  // namespace

void append_chunk(std::string* out,
                  ChunkType type,
                  std::string_view payload,
                  std::uint32_t count,
                  std::uint64_t first,
                  Compression compression) {
    ChunkHeader header = {};
    header.magic = kChunkMagic;
    header.type = type;
    header.compression = Compression::kNone;
    header.raw_bytes = static_cast<std::uint32_t>(payload.size());
    header.count = count;
    header.first = first;
    std::string compressed;
    if (compression == Compression::kZstd) {
        compressed.resize(ZSTD_compressBound(payload.size()));
        const std::size_t size = ZSTD_compress(
            compressed.data(), compressed.size(), payload.data(), payload.size(), kZstdLevel);
        if (ZSTD_isError(size) == 0 && size < payload.size()) {
            compressed.resize(size);
            payload = compressed;
            header.compression = Compression::kZstd;
        }
    }
    header.stored_bytes = static_cast<std::uint32_t>(payload.size());
    header.crc = chunk_crc(header, payload.data());
    out->append(reinterpret_cast<const char*>(&header), sizeof header);
    out->append(payload);
    out->append((8 - out->size() % 8) % 8, '\0');
}

void append_events(std::string* out,
                   const std::vector<EventRecord>& events,
                   std::size_t chunk_events,
                   Compression compression) {
    std::vector<std::uint8_t> scratch;
    std::vector<std::uint8_t> payload;
    for (std::size_t begin = 0; begin < events.size(); begin += chunk_events) {
        const std::size_t count = std::min(chunk_events, events.size() - begin);
        scratch.resize(event_scratch_bytes(count));
        payload.resize(scratch.size() + 256);
        ByteWriter writer(payload.data(), payload.size());
        const auto event = [&](std::size_t i) -> const EventRecord& { return events[begin + i]; };
        encode_events(event, count, scratch.data(), scratch.size(), &writer);
        append_chunk(out,
                     ChunkType::kEvents,
                     view(writer),
                     static_cast<std::uint32_t>(count),
                     events[begin].sequence,
                     compression);
    }
}

void append_nodes(std::string* out,
                  const std::vector<StackNode>& tree,
                  std::uint32_t first,
                  std::uint32_t end) {
    std::vector<std::uint8_t> payload;
    for (; first < end; first += std::min(kNodesPerChunk, end - first)) {
        const std::uint32_t count = std::min(kNodesPerChunk, end - first);
        payload.resize(std::size_t{count} * 3 * kMaxVarintBytes + kMaxVarintBytes);
        ByteWriter writer(payload.data(), payload.size());
        encode_nodes(tree.data(), first, count, &writer);
        append_chunk(out, ChunkType::kStacks, view(writer), count, first);
    }
}

void append_facts(std::string* out, const std::map<std::string, std::string>& facts) {
    std::string payload;
    for (const auto& [key, value] : facts) {
        append_escaped(&payload, key);
        payload += '\t';
        append_escaped(&payload, value);
        payload += '\n';
    }
    append_chunk(out, ChunkType::kFacts, payload, static_cast<std::uint32_t>(facts.size()), 0);
}

}  // namespace fragtrace::analyzer
