#include "trace_file.h"

#include <fragtrace/codec.h>

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <zstd.h>

namespace fragtrace::tests {
namespace {

void require(bool condition, const char* what) {
    if (!condition) {
        throw std::runtime_error(std::string("trace: ") + what);
    }
}

std::string unescaped(const std::string& text) {
    std::string result;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\\' || i + 1 == text.size()) {
            result += text[i];
            continue;
        }
        const char escaped = text[++i];
        result += escaped == 't' ? '\t' : escaped == 'n' ? '\n' : escaped;
    }
    return result;
}

void read_facts(const std::string& payload, TraceContents* contents) {
    size_t begin = 0;
    while (begin < payload.size()) {
        const size_t end = payload.find('\n', begin);
        const size_t tab = payload.find('\t', begin);
        require(end != std::string::npos && tab < end, "a fact without a value");
        contents->facts[unescaped(payload.substr(begin, tab - begin))] =
            unescaped(payload.substr(tab + 1, end - tab - 1));
        begin = end + 1;
    }
}

std::string raw_payload(const ChunkHeader& header, const char* stored) {
    if (header.compression == Compression::kNone) {
        return {stored, header.stored_bytes};
    }
    std::string raw(header.raw_bytes, '\0');
    const size_t size = ZSTD_decompress(raw.data(), raw.size(), stored, header.stored_bytes);
    require(ZSTD_isError(size) == 0 && size == raw.size(), "a chunk does not decompress");
    return raw;
}

void read_chunk(const ChunkHeader& header, const std::string& payload, TraceContents* contents) {
    if (header.type == ChunkType::kFacts) {
        read_facts(payload, contents);
    } else if (header.type == ChunkType::kEnd) {
        contents->ended = true;
    } else if (header.type == ChunkType::kEvents) {
        const bool whole =
            decode_events(reinterpret_cast<const uint8_t*>(payload.data()),
                          payload.size(),
                          header.first,
                          header.count,
                          [&](const EventRecord& event) { contents->events.push_back(event); });
        require(whole, "a chunk of events does not decode");
    }
}

}  // namespace

std::vector<EventRecord> TraceContents::of_kind(EventKind kind) const {
    std::vector<EventRecord> found;
    for (const EventRecord& event : events) {
        if (event.kind == kind) {
            found.push_back(event);
        }
    }
    return found;
}

TraceContents read_trace(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string data{std::istreambuf_iterator<char>(file), {}};
    TraceHeader trace{};
    require(data.size() >= sizeof trace, "no header");
    memcpy(&trace, data.data(), sizeof trace);
    require(memcmp(trace.magic, kTraceMagic, sizeof trace.magic) == 0, "not a trace");
    TraceContents contents;
    size_t offset = trace.header_bytes;
    while (offset + sizeof(ChunkHeader) <= data.size()) {
        ChunkHeader header{};
        memcpy(&header, data.data() + offset, sizeof header);
        if (header.magic != kChunkMagic) {
            break;  // the trailer
        }
        const char* stored = data.data() + offset + sizeof header;
        require(offset + sizeof header + header.stored_bytes <= data.size(), "a chunk is cut");
        require(chunk_crc(header, stored) == header.crc, "a chunk's checksum is wrong");
        read_chunk(header, raw_payload(header, stored), &contents);
        offset += sizeof header + (header.stored_bytes + 7) / 8 * 8;
    }
    return contents;
}

}  // namespace fragtrace::tests
