// Encoding and decoding of a trace's chunks. Both directions are in one file, so that they stay
// consistent.
//
// Header only. No allocation, no exceptions, no global state. So the recorder can use it in any
// process, and the analyzer can use it on untrusted bytes: every read is checked, and a reader that
// read past its end stays failed.
//
// A column is its length in bytes (varint), then its data. A reader can skip columns that it does
// not need. zstd compresses columns well because the iterations of a program repeat.
#pragma once

#include <fragtrace/bytes.h>
#include <fragtrace/format.h>

#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace fragtrace {

// ---- checksums ----------------------------------------------------------------------------------

inline uint32_t chunk_crc(ChunkHeader header, const void* payload) {
    header.crc = 0;
    return crc32(payload, header.stored_bytes, crc32(&header, sizeof header));
}

inline uint32_t header_crc(TraceHeader header) {
    header.crc = 0;
    return crc32(&header, sizeof header);
}

// ---- events -------------------------------------------------------------------------------------

inline constexpr size_t kEventColumnCount = 14;
// Columns that every payload has. The columns after them were added later: a payload that ends
// before one of them has zeros there.
inline constexpr size_t kEventColumnsAlways = 13;
// The most bytes that one event can need in one column.
inline constexpr size_t kEventColumnBytes = kMaxVarintBytes;

// Returns the value of column `column` for `event`. `previous` is the event before it. For the
// first event of a chunk, `previous` is all zeros except for sequence = ChunkHeader::first - 1.
// Small numbers need few bytes, so columns whose values tend to repeat are stored as the difference
// to the previous event.
inline uint64_t event_column(const EventRecord& event, const EventRecord& previous, size_t column) {
    const auto difference = [](uint64_t now, uint64_t before) {
        return zigzag(static_cast<int64_t>(now - before));
    };
    switch (column) {
        case 0:
            return static_cast<uint64_t>(event.kind);
        case 1:
            return event.flags;
        case 2:
            return event.sequence - previous.sequence - 1;
        case 3:
            return difference(event.time_ns, previous.time_ns);
        case 4:
            return difference(event.address, previous.address);
        case 5:
            return event.size + 1;  // kUnknown64 becomes 0
        case 6:
            return difference(event.extra, event.size);
        case 7:
            return event.stream + 1;
        case 8:
            return difference(event.native_stack, previous.native_stack);
        case 9:
            return difference(event.python_stack, previous.python_stack);
        case 10:
            return difference(event.thread, previous.thread);
        case 11:
            return event.duration_ns;
        case 12:
            return static_cast<uint16_t>(event.device + 1);
        default:
            return event.pool;
    }
}

// The inverse of event_column for one column. Columns must be applied in increasing order.
inline void set_event_column(EventRecord* event,
                             const EventRecord& previous,
                             size_t column,
                             uint64_t value) {
    const auto add = [value](uint64_t before) {
        return before + static_cast<uint64_t>(unzigzag(value));
    };
    switch (column) {
        case 0:
            event->kind = static_cast<EventKind>(value);
            break;
        case 1:
            event->flags = static_cast<uint8_t>(value);
            break;
        case 2:
            event->sequence = previous.sequence + value + 1;
            break;
        case 3:
            event->time_ns = add(previous.time_ns);
            break;
        case 4:
            event->address = add(previous.address);
            break;
        case 5:
            event->size = value - 1;
            break;
        case 6:
            event->extra = add(event->size);
            break;
        case 7:
            event->stream = value - 1;
            break;
        case 8:
            event->native_stack = static_cast<uint32_t>(add(previous.native_stack));
            break;
        case 9:
            event->python_stack = static_cast<uint32_t>(add(previous.python_stack));
            break;
        case 10:
            event->thread = static_cast<uint32_t>(add(previous.thread));
            break;
        case 11:
            event->duration_ns = static_cast<uint32_t>(value);
            break;
        case 12:
            event->device = static_cast<uint16_t>(value - 1);
            break;
        default:
            event->pool = static_cast<uint32_t>(value);
            break;
    }
}

inline EventRecord event_before(uint64_t first_sequence) {
    EventRecord previous{};
    previous.sequence = first_sequence - 1;
    return previous;
}

// Returns the size of the scratch memory that encode_events needs for `count` events.
constexpr size_t event_scratch_bytes(size_t count) {
    return count * kEventColumnBytes * kEventColumnCount;
}

// Appends `count` events to `out` as columns, in one pass over the events. `event(i)` returns the
// i-th event by reference. `scratch` needs at least event_scratch_bytes(count) bytes. Returns false
// if `scratch` or `out` is too small.
template <typename EventAt>
bool encode_events(
    EventAt event, size_t count, uint8_t* scratch, size_t scratch_bytes, ByteWriter* out) {
    if (count == 0) {
        return true;
    }
    if (scratch_bytes < event_scratch_bytes(count)) {
        return false;
    }
    const size_t stride = count * kEventColumnBytes;
    uint8_t* ends[kEventColumnCount];
    for (size_t column = 0; column < kEventColumnCount; ++column) {
        ends[column] = scratch + column * stride;
    }
    const EventRecord before = event_before(event(0).sequence);
    const EventRecord* previous = &before;
    for (size_t i = 0; i < count; ++i) {
        const EventRecord& now = event(i);
#pragma GCC unroll 14
        for (size_t column = 0; column < kEventColumnCount; ++column) {
            ends[column] = put_varint(ends[column], event_column(now, *previous, column));
        }
        previous = &now;
    }
    for (size_t column = 0; column < kEventColumnCount; ++column) {
        const uint8_t* begin = scratch + column * stride;
        const auto size = static_cast<size_t>(ends[column] - begin);
        out->varint(size);
        out->bytes(begin, size);
    }
    return !out->failed();
}

// Decodes a kEvents payload. Calls `sink(const EventRecord&)` once per event, in order. Returns
// false if the payload is damaged; `sink` may then have been called for some events.
template <typename Sink>
bool decode_events(
    const uint8_t* payload, size_t size_bytes, uint64_t first, uint32_t count, Sink sink) {
    ByteReader reader(payload, size_bytes);
    ByteReader columns[kEventColumnsAlways] = {reader.column(),
                                               reader.column(),
                                               reader.column(),
                                               reader.column(),
                                               reader.column(),
                                               reader.column(),
                                               reader.column(),
                                               reader.column(),
                                               reader.column(),
                                               reader.column(),
                                               reader.column(),
                                               reader.column(),
                                               reader.column()};
    const bool has_pools = reader.left() != 0;
    ByteReader pools = has_pools ? reader.column() : ByteReader(payload, 0);
    if (reader.failed()) {
        return false;
    }
    EventRecord previous = event_before(first);
    for (uint32_t i = 0; i < count; ++i) {
        EventRecord event{};
        for (size_t column = 0; column < kEventColumnsAlways; ++column) {
            set_event_column(&event, previous, column, columns[column].varint());
            if (columns[column].failed()) {
                return false;
            }
        }
        if (has_pools) {
            set_event_column(&event, previous, kEventColumnsAlways, pools.varint());
            if (pools.failed()) {
                return false;
            }
        }
        sink(event);
        previous = event;
    }
    return true;
}

// ---- stack nodes --------------------------------------------------------------------------------

// Appends nodes [first, first + count): first all parents, each as the distance to its node, then
// all lines, then all frames, each as the difference to the previous frame.
inline bool encode_nodes(const StackNode* nodes, uint32_t first, uint32_t count, ByteWriter* out) {
    for (uint32_t i = 0; i < count; ++i) {
        out->varint(first + i - nodes[first + i].parent);
    }
    for (uint32_t i = 0; i < count; ++i) {
        out->varint(nodes[first + i].line);
    }
    uint64_t previous = 0;
    for (uint32_t i = 0; i < count; ++i) {
        out->varint(zigzag(static_cast<int64_t>(nodes[first + i].frame - previous)));
        previous = nodes[first + i].frame;
    }
    return !out->failed();
}

// Decodes `count` nodes into `nodes`, which must have room for them. Returns false if a parent does
// not have a smaller number than its node, or if bytes are missing.
inline bool decode_nodes(
    const uint8_t* payload, size_t size_bytes, uint32_t first, uint32_t count, StackNode* nodes) {
    ByteReader reader(payload, size_bytes);
    for (uint32_t i = 0; i < count; ++i) {
        const uint64_t distance = reader.varint();
        if (distance == 0 || distance > first + i) {
            return false;
        }
        nodes[i].parent = static_cast<uint32_t>(first + i - distance);
    }
    for (uint32_t i = 0; i < count; ++i) {
        nodes[i].line = static_cast<uint32_t>(reader.varint());
    }
    uint64_t previous = 0;
    for (uint32_t i = 0; i < count; ++i) {
        previous += static_cast<uint64_t>(unzigzag(reader.varint()));
        nodes[i].frame = previous;
    }
    return !reader.failed();
}

// ---- Python code objects and native modules -----------------------------------------------------

// Texts are not NUL-terminated. They belong to the caller (encoding) or to the payload (decoding).
struct CodeRecord {
    uint32_t id;
    uint32_t first_line;
    const char* function;
    size_t function_bytes;
    const char* file;
    size_t file_bytes;
};

inline bool encode_code(const CodeRecord& code, ByteWriter* out) {
    out->varint(code.id);
    out->varint(code.first_line);
    out->text(code.function, code.function_bytes);
    out->text(code.file, code.file_bytes);
    return !out->failed();
}

inline bool decode_text(ByteReader* reader, const char** text, size_t* size_bytes) {
    const uint64_t count = reader->varint();
    const uint8_t* data = reader->bytes(count);
    *text = reinterpret_cast<const char*>(data);
    *size_bytes = data == nullptr ? 0 : static_cast<size_t>(count);
    return !reader->failed();
}

inline bool decode_code(ByteReader* reader, CodeRecord* code) {
    code->id = static_cast<uint32_t>(reader->varint());
    code->first_line = static_cast<uint32_t>(reader->varint());
    return decode_text(reader, &code->function, &code->function_bytes) &&
           decode_text(reader, &code->file, &code->file_bytes) && code->id <= kMaxCodeId;
}

// One executable mapping: addresses [begin, end) contain the module. `bias` is the load bias: the
// address in the process minus the address in the file's symbol table.
struct ModuleRecord {
    uint64_t begin;
    uint64_t end;
    uint64_t bias;
    const char* path;
    size_t path_bytes;
    const uint8_t* build_id;
    size_t build_id_bytes;
};

inline bool encode_module(const ModuleRecord& module, ByteWriter* out) {
    out->varint(module.begin);
    out->varint(module.end - module.begin);
    out->varint(module.bias);
    out->text(module.path, module.path_bytes);
    out->text(reinterpret_cast<const char*>(module.build_id), module.build_id_bytes);
    return !out->failed();
}

inline bool decode_module(ByteReader* reader, ModuleRecord* module) {
    module->begin = reader->varint();
    module->end = module->begin + reader->varint();
    module->bias = reader->varint();
    const char* id = nullptr;
    if (!decode_text(reader, &module->path, &module->path_bytes) ||
        !decode_text(reader, &id, &module->build_id_bytes)) {
        return false;
    }
    module->build_id = reinterpret_cast<const uint8_t*>(id);
    return module->end >= module->begin;
}

}  // namespace fragtrace
