// Tables of a recording as columns in memory, for libraries that compute with columns (Arrow,
// NumPy). docs/python.md describes the columns.
#pragma once

#include "analyzer/analysis/analysis.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// The type of a column's values: its letter in Arrow's C data interface.
enum class ColumnType : char { kU8 = 'C', kU16 = 'S', kU32 = 'I', kU64 = 'L', kWord = 'i' };

// The values of one column, in one piece. A null has the value 0.
struct Column {
    std::string name;
    ColumnType type = ColumnType::kU64;
    std::vector<std::byte> values;
    std::vector<std::uint8_t> valid;  // one bit per row, the lowest first; 0 = null
    std::uint64_t nulls = 0;
    std::vector<std::string> words;  // kWord: the values are 32-bit indices into these texts
};

struct Columns {
    std::uint64_t rows = 0;
    std::vector<Column> columns;
};

// One row for each block of each device, in the order of their allocation.
Columns block_columns(const Analysis& analysis);
// One row for each event.
Columns event_columns(const Analysis& analysis);

}  // namespace fragtrace::analyzer
