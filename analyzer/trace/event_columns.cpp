#include "analyzer/trace/event_columns.h"

#include <fragtrace/bytes.h>

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

static_assert(kEventColumnCount == 14, "each column has its place below");

enum Place : std::size_t {
    kKind,
    kFlags,
    kSequence,
    kTime,
    kAddress,
    kSize,
    kExtra,
    kStream,
    kNativeStack,
    kPythonStack,
    kThread,
    kDuration,
    kDevice,
    kPool
};

static_assert(kPool == kEventColumnsAlways, "only pools may be missing");

}  // namespace

bool EventColumns::open(const std::uint8_t* payload,
                        std::size_t size_bytes,
                        std::uint64_t first_sequence,
                        std::uint32_t count) {
    has_pools_ = false;
    left_ = count;
    before_ = {};
    before_[kSequence] = first_sequence - 1;
    ByteReader reader(payload, size_bytes);
    for (std::size_t i = 0; i < kEventColumnCount; ++i) {
        if (i == kPool) {
            if (reader.left() == 0) {
                break;
            }
            has_pools_ = true;
        }
        const std::uint64_t bytes = reader.varint();
        const std::uint8_t* data = reader.bytes(bytes);
        if (reader.failed()) {
            return false;
        }
        columns_[i] = NumberColumn(data, data + bytes, count);
    }
    return true;
}

bool EventColumns::open(const Chunk& chunk) {
    const ChunkHeader& header = chunk.header;
    return header.count <= kMaxChunkEvents &&
           header.count <= header.raw_bytes / kEventColumnsAlways &&
           open(chunk.payload, header.raw_bytes, header.first, header.count);
}

bool EventColumns::read(std::uint32_t count, EventBlock* block) {
    block->count = count;
    left_ -= count;
    if (!has_pools_) {
        std::fill_n(block->pool.data(), count, 0u);
    }
    return copy(kKind, count, block->kind.data()) && copy(kFlags, count, block->flags.data()) &&
           read_sequence(count, block->sequence.data()) &&
           add_up(kTime, count, block->time_ns.data()) &&
           add_up(kAddress, count, block->address.data()) &&
           copy(kSize, count, block->size.data(), 1) &&
           read_extra(count, block->size.data(), block->extra.data()) &&
           copy(kStream, count, block->stream.data(), 1) &&
           add_up(kNativeStack, count, block->native_stack.data()) &&
           add_up(kPythonStack, count, block->python_stack.data()) &&
           add_up(kThread, count, block->thread.data()) &&
           copy(kDuration, count, block->duration_ns.data()) &&
           copy(kDevice, count, block->device.data(), 1) &&
           (!has_pools_ || copy(kPool, count, block->pool.data()));
}

// Returns nullptr if the column is too short.
const std::uint64_t* EventColumns::numbers(std::size_t column, std::uint32_t count) {
    if (!columns_[column].one_byte()) {
        return columns_[column].read(count, numbers_.data()) ? numbers_.data() : nullptr;
    }
    std::copy_n(columns_[column].bytes(count), count, numbers_.data());
    return numbers_.data();
}

// Reads a column that stores the field's own values, and subtracts `shift`.
template <typename Field>
bool EventColumns::copy(std::size_t column,
                        std::uint32_t count,
                        Field* fields,
                        std::uint64_t shift) {
    if (columns_[column].one_byte()) {
        const std::uint8_t* bytes = columns_[column].bytes(count);
        for (std::uint32_t i = 0; i < count; ++i) {
            fields[i] = static_cast<Field>(bytes[i] - shift);
        }
        return true;
    }
    const std::uint64_t* values = numbers(column, count);
    for (std::uint32_t i = 0; values != nullptr && i < count; ++i) {
        fields[i] = static_cast<Field>(values[i] - shift);
    }
    return values != nullptr;
}

// Reads a column that stores differences to the previous event. The field's first predecessor is 0.
template <typename Field>
bool EventColumns::add_up(std::size_t column, std::uint32_t count, Field* fields) {
    const std::uint64_t* values = numbers(column, count);
    auto sum = static_cast<Field>(before_[column]);
    for (std::uint32_t i = 0; values != nullptr && i < count; ++i) {
        sum = static_cast<Field>(sum + static_cast<Field>(unzigzag(values[i])));
        fields[i] = sum;
    }
    before_[column] = sum;
    return values != nullptr;
}

bool EventColumns::read_sequence(std::uint32_t count, std::uint64_t* fields) {
    const std::uint64_t* values = numbers(kSequence, count);
    std::uint64_t sum = before_[kSequence];
    for (std::uint32_t i = 0; values != nullptr && i < count; ++i) {
        sum += values[i] + 1;
        fields[i] = sum;
    }
    before_[kSequence] = sum;
    return values != nullptr;
}

bool EventColumns::read_extra(std::uint32_t count,
                              const std::uint64_t* sizes,
                              std::uint64_t* fields) {
    const std::uint64_t* values = numbers(kExtra, count);
    for (std::uint32_t i = 0; values != nullptr && i < count; ++i) {
        fields[i] = sizes[i] + static_cast<std::uint64_t>(unzigzag(values[i]));
    }
    return values != nullptr;
}

}  // namespace fragtrace::analyzer
