// Decodes the columns of a kEvents payload, one block of events at a time. Each field of a block is
// an array of its own, and a block fits into the first-level cache. Not thread-safe.
#pragma once

#include <fragtrace/codec.h>
#include <fragtrace/format.h>

#include "analyzer/trace/chunk_scanner.h"
#include "analyzer/trace/number_column.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace fragtrace::analyzer {

// A block of events, with the fields of EventRecord.
struct EventBlock {
    template <typename Field>
    using Column = std::array<Field, NumberColumn::kBlock>;

    std::uint32_t count = 0;
    Column<std::uint64_t> sequence;
    Column<std::uint64_t> time_ns;
    Column<std::uint64_t> address;
    Column<std::uint64_t> size;
    Column<std::uint64_t> extra;
    Column<std::uint64_t> stream;
    Column<std::uint32_t> native_stack;
    Column<std::uint32_t> python_stack;
    Column<std::uint32_t> thread;
    Column<std::uint32_t> duration_ns;
    Column<std::uint32_t> pool;
    Column<std::uint16_t> device;
    Column<EventKind> kind;
    Column<std::uint8_t> flags;
};

class EventColumns {
  public:
    // Returns false if the columns do not fit into the payload. The payload must outlive the
    // object.
    bool open(const std::uint8_t* payload,
              std::size_t size_bytes,
              std::uint64_t first_sequence,
              std::uint32_t count);

    // Checks the chunk's header first, then opens its payload.
    bool open(const Chunk& chunk);

    [[nodiscard]] std::uint32_t left() const { return left_; }

    // Reads the next `count` events, at most left() and NumberColumn::kBlock. Returns false if the
    // payload is damaged.
    bool read(std::uint32_t count, EventBlock* block);

  private:
    template <typename Field>
    bool copy(std::size_t column, std::uint32_t count, Field* fields, std::uint64_t shift = 0);
    template <typename Field>
    bool add_up(std::size_t column, std::uint32_t count, Field* fields);
    bool read_sequence(std::uint32_t count, std::uint64_t* fields);
    bool read_extra(std::uint32_t count, const std::uint64_t* sizes, std::uint64_t* fields);
    const std::uint64_t* numbers(std::size_t column, std::uint32_t count);

    std::array<NumberColumn, kEventColumnCount> columns_;
    std::array<std::uint64_t, kEventColumnCount> before_ = {};  // fields stored as differences
    std::array<std::uint64_t, NumberColumn::kBlock> numbers_;
    std::uint32_t left_ = 0;
    bool has_pools_ = false;
};

}  // namespace fragtrace::analyzer
