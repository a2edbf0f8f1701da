// The page's format for numbers: columns of little-endian integers of 0 to 8 bytes, optionally as
// differences, stored byte plane by byte plane, gzipped, in base64. viewer/src/data/columns.ts
// reads them. A column has only as many planes as its values need. This saves unpacking time, and
// the column's description names the type that can store it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

class ColumnPack {
  public:
    explicit ColumnPack(std::size_t rows) : rows_(rows) {}

    // Appends a column of `rows` values from `value(row)`, each truncated to `width_bytes`. The
    // reader sums differences in 8 bits (1 byte wide), 32 bits (up to 4 bytes), or their full
    // width.
    template <typename Value>
    void add(std::string_view name, unsigned width_bytes, bool as_difference, Value value) {
        stored_.resize(rows_);
        const std::uint64_t mask = width_bytes == 8 ? ~0ull : (1ull << (8 * width_bytes)) - 1;
        std::uint64_t previous = 0;
        std::uint64_t bits = 0;
        for (std::size_t row = 0; row < rows_; ++row) {
            const auto current = static_cast<std::uint64_t>(value(row));
            stored_[row] = (as_difference ? current - previous : current) & mask;
            previous = current;
            bits |= stored_[row];
        }
        append_planes(name, width_bytes, as_difference, bits);
    }

    // {"id": ..., "rows": ..., "bytes": ..., "columns": [[name, width, difference], ...]}
    [[nodiscard]] std::string describe(std::string_view id) const;
    // <template id="...">base64(gzip(raw))</template>. Browsers parse text in a template
    // faster than text in a script.
    [[nodiscard]] std::string element(std::string_view id) const;

  private:
    struct Column {
        std::string name;
        unsigned width_bytes;
        bool as_difference;
    };

    void append_planes(std::string_view name,
                       unsigned width_bytes,
                       bool as_difference,
                       std::uint64_t bits);

    std::size_t rows_;
    std::vector<std::uint8_t> raw_;
    std::vector<std::uint64_t> stored_;  // the column being added
    std::vector<Column> columns_;
};

// gzip with a fixed header: the same input gives the same bytes.
std::vector<std::uint8_t> gzip(std::span<const std::uint8_t> raw);
void append_base64(std::span<const std::uint8_t> raw, std::string& out);

}  // namespace fragtrace::analyzer
