#include "analyzer/trace/event_decoder.h"

#include <fragtrace/bytes.h>
#include <fragtrace/codec.h>

#include <bit>
#include <cstring>

namespace fragtrace::analyzer {
namespace {

static_assert(kEventColumnCount == 14, "each column has its place below");
static_assert(std::endian::native == std::endian::little);

struct Column {
    const std::uint8_t* begin = nullptr;
    const std::uint8_t* end = nullptr;
};

// A number of at most 8 bytes that ends within `word`: its groups of 7 bits moved together.
std::uint64_t gather(std::uint64_t word, std::uint64_t ends) {
    word &= (ends ^ (ends - 1)) & 0x7f7f7f7f7f7f7f7f;
    word = (word & 0x007f007f007f007f) | ((word & 0x7f007f007f007f00) >> 1);
    word = (word & 0x00003fff00003fff) | ((word & 0x3fff00003fff0000) >> 2);
    return (word & 0x000000000fffffff) | ((word & 0x0fffffff00000000) >> 4);
}

bool all_one_byte(const std::uint8_t* data, std::uint32_t count) {
    std::uint8_t seen = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        seen |= data[i];
    }
    return seen < 0x80;
}

// Calls apply(i, value) for each of `count` numbers; false where the column is too short.
template <typename Apply>
bool for_each_number(const Column& column, std::uint32_t count, Apply apply) {
    const std::uint8_t* at = column.begin;
    if (static_cast<std::size_t>(column.end - at) == count && all_one_byte(at, count)) {
        for (std::uint32_t i = 0; i < count; ++i) {
            apply(i, std::uint64_t{at[i]});
        }
        return true;
    }
    constexpr std::uint64_t kContinues = 0x8080808080808080;
    for (std::uint32_t i = 0; i < count; ++i) {
        if (column.end - at >= 8) {
            std::uint64_t word = 0;
            std::memcpy(&word, at, sizeof word);
            if (const std::uint64_t ends = ~word & kContinues; ends != 0) {
                apply(i, gather(word, ends));
                at += std::countr_zero(ends) / 8 + 1;
                continue;
            }
        }
        ByteReader rest(at, static_cast<std::size_t>(column.end - at));
        const std::uint64_t value = rest.varint();
        if (rest.failed()) {
            return false;
        }
        apply(i, value);
        at = column.end - rest.left();
    }
    return true;
}

std::uint64_t plus(std::uint64_t before, std::uint64_t difference) {
    return before + static_cast<std::uint64_t>(unzigzag(difference));
}

// A column of differences to the event before, of a field that begins at 0.
template <typename Field>
bool add_up(const Column& column,
            std::uint32_t count,
            EventRecord* events,
            Field EventRecord::*field) {
    Field before = 0;
    return for_each_number(column, count, [&](std::uint32_t i, std::uint64_t value) {
        before = static_cast<Field>(plus(before, value));
        events[i].*field = before;
    });
}

// A column of the field's own values, less `shift`.
template <typename Field>
bool copy(const Column& column,
          std::uint32_t count,
          EventRecord* events,
          Field EventRecord::*field,
          std::uint64_t shift = 0) {
    return for_each_number(column, count, [=](std::uint32_t i, std::uint64_t value) {
        events[i].*field = static_cast<Field>(value - shift);
    });
}

}  // namespace

bool decode_event_columns(const std::uint8_t* payload,
                          std::size_t size_bytes,
                          std::uint64_t first_sequence,
                          std::uint32_t count,
                          std::vector<EventRecord>* events) {
    Column columns[kEventColumnCount];
    ByteReader reader(payload, size_bytes);
    for (std::size_t i = 0; i < kEventColumnCount; ++i) {
        if (i == kEventColumnsAlways && reader.left() == 0) {
            break;  // no pools
        }
        const std::uint64_t bytes = reader.varint();
        const std::uint8_t* data = reader.bytes(bytes);
        if (reader.failed()) {
            return false;
        }
        columns[i] = {data, data + bytes};
    }
    events->resize(count);
    EventRecord* to = events->data();
    std::uint64_t sequence = first_sequence - 1;
    const bool decoded = copy(columns[0], count, to, &EventRecord::kind) &&
                         copy(columns[1], count, to, &EventRecord::flags) &&
                         for_each_number(columns[2],
                                         count,
                                         [&](std::uint32_t i, std::uint64_t value) {
                                             sequence += value + 1;
                                             to[i].sequence = sequence;
                                         }) &&
                         add_up(columns[3], count, to, &EventRecord::time_ns) &&
                         add_up(columns[4], count, to, &EventRecord::address) &&
                         copy(columns[5], count, to, &EventRecord::size, 1) &&
                         for_each_number(columns[6],
                                         count,
                                         [to](std::uint32_t i, std::uint64_t value) {
                                             to[i].extra = plus(to[i].size, value);
                                         }) &&
                         copy(columns[7], count, to, &EventRecord::stream, 1) &&
                         add_up(columns[8], count, to, &EventRecord::native_stack) &&
                         add_up(columns[9], count, to, &EventRecord::python_stack) &&
                         add_up(columns[10], count, to, &EventRecord::thread) &&
                         copy(columns[11], count, to, &EventRecord::duration_ns) &&
                         copy(columns[12], count, to, &EventRecord::device, 1);
    if (!decoded) {
        return false;
    }
    if (columns[kEventColumnsAlways].begin != nullptr) {
        return copy(columns[kEventColumnsAlways], count, to, &EventRecord::pool);
    }
    for (std::uint32_t i = 0; i < count; ++i) {
        to[i].pool = 0;
    }
    return true;
}

bool decode_event_chunk(const Chunk& chunk, std::vector<EventRecord>* events) {
    const ChunkHeader& header = chunk.header;
    return header.count <= kMaxChunkEvents &&
           header.count <= header.raw_bytes / kEventColumnCount &&
           decode_event_columns(
               chunk.payload, header.raw_bytes, header.first, header.count, events);
}

}  // namespace fragtrace::analyzer
