// How the page carries numbers: columns of little-endian integers of 1 to 8 bytes, optionally as
// differences, stored byte plane by byte plane, gzipped, in base64. viewer/src/data/columns.ts
// reads them back.
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

    // Appends a column of `rows` values, each cut to `width_bytes`; `value(row)` gives them.
    template <typename Value>
    void add(std::string_view name, unsigned width_bytes, bool as_difference, Value value) {
        const std::size_t begin = raw_.size();
        raw_.resize(begin + width_bytes * rows_);
        std::uint64_t previous = 0;
        for (std::size_t row = 0; row < rows_; ++row) {
            const auto current = static_cast<std::uint64_t>(value(row));
            const std::uint64_t stored = as_difference ? current - previous : current;
            previous = current;
            for (unsigned plane = 0; plane < width_bytes; ++plane) {
                raw_[begin + plane * rows_ + row] =
                    static_cast<std::uint8_t>(stored >> (8 * plane));
            }
        }
        columns_.push_back({std::string(name), width_bytes, as_difference});
    }

    // {"id": ..., "rows": ..., "bytes": ..., "columns": [[name, width, difference], ...]}
    [[nodiscard]] std::string describe(std::string_view id) const;
    // <script type="text/plain" id="...">base64(gzip(raw))</script>
    void append_element(std::string_view id, std::string& html) const;

  private:
    struct Column {
        std::string name;
        unsigned width_bytes;
        bool as_difference;
    };

    std::size_t rows_;
    std::vector<std::uint8_t> raw_;
    std::vector<Column> columns_;
};

// gzip with a fixed header: the same input gives the same bytes.
std::vector<std::uint8_t> gzip(std::span<const std::uint8_t> raw);
void append_base64(std::span<const std::uint8_t> raw, std::string& out);

}  // namespace fragtrace::analyzer
