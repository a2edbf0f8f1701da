#include "analyzer/trace/event_decoder.h"

#include "analyzer/trace/event_columns.h"
#include "analyzer/trace/possible_event.h"

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

void append(const EventBlock& block, EventRecord* to) {
    for (std::uint32_t i = 0; i < block.count; ++i) {
        to[i] = {.sequence = block.sequence[i],
                 .time_ns = block.time_ns[i],
                 .address = block.address[i],
                 .size = block.size[i],
                 .extra = block.extra[i],
                 .stream = block.stream[i],
                 .native_stack = block.native_stack[i],
                 .python_stack = block.python_stack[i],
                 .thread = block.thread[i],
                 .duration_ns = block.duration_ns[i],
                 .pool = block.pool[i],
                 .device = block.device[i],
                 .kind = block.kind[i],
                 .flags = block.flags[i]};
    }
}

bool decode_all(EventColumns* columns, std::vector<EventRecord>* events) {
    events->resize(columns->left());
    EventRecord* to = events->data();
    EventBlock block;
    while (columns->left() != 0) {
        if (!columns->read(std::min(columns->left(), NumberColumn::kBlock), &block)) {
            return false;
        }
        append(block, to);
        to += block.count;
    }
    return true;
}

}  // namespace

bool decode_event_columns(const std::uint8_t* payload,
                          std::size_t size_bytes,
                          std::uint64_t first_sequence,
                          std::uint32_t count,
                          std::vector<EventRecord>* events) {
    EventColumns columns;
    return columns.open(payload, size_bytes, first_sequence, count) && decode_all(&columns, events);
}

bool EventRecords::decode(const Chunk& chunk, std::uint64_t /*first_event*/) {
    EventColumns columns;
    if (!columns.open(chunk) || !decode_all(&columns, &all)) {
        return false;
    }
    for (EventRecord& event : all) {
        blank_if_impossible(&event);
    }
    return true;
}

}  // namespace fragtrace::analyzer
