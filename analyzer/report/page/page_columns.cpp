#include "analyzer/report/page/page_columns.h"

#include <algorithm>
#include <array>
#include <bit>
#include <fmt/format.h>
#include <stdexcept>
#include <zlib.h>

namespace fragtrace::analyzer {

std::vector<std::uint8_t> gzip(std::span<const std::uint8_t> raw) {
    z_stream stream{};
    constexpr int kGzipWindow = 15 + 16;
    if (deflateInit2(&stream, 6, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        throw std::bad_alloc();
    }
    std::vector<std::uint8_t> packed;
    std::array<std::uint8_t, 65536> buffer;
    std::size_t taken = 0;
    int status = Z_OK;
    while (status != Z_STREAM_END) {
        if (stream.avail_in == 0 && taken < raw.size()) {
            // zlib's input size has only 32 bits.
            const std::size_t step = std::min<std::size_t>(raw.size() - taken, 1u << 30);
            stream.next_in = const_cast<std::uint8_t*>(raw.data() + taken);
            stream.avail_in = static_cast<unsigned>(step);
            taken += step;
        }
        stream.next_out = buffer.data();
        stream.avail_out = static_cast<unsigned>(buffer.size());
        status = deflate(&stream, taken == raw.size() ? Z_FINISH : Z_NO_FLUSH);
        packed.insert(
            packed.end(),
            buffer.begin(),
            buffer.begin() + static_cast<std::ptrdiff_t>(buffer.size() - stream.avail_out));
    }
    deflateEnd(&stream);
    return packed;
}

void append_base64(std::span<const std::uint8_t> raw, std::string& out) {
    constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::size_t begin = out.size();
    out.resize(begin + (raw.size() + 2) / 3 * 4, '=');
    char* to = out.data() + begin;
    for (std::size_t i = 0; i < raw.size(); i += 3, to += 4) {
        const std::size_t have = std::min<std::size_t>(3, raw.size() - i);
        std::uint32_t bits = 0;
        for (std::size_t k = 0; k < 3; ++k) {
            bits = bits << 8 | (k < have ? raw[i + k] : 0u);
        }
        for (std::size_t k = 0; k <= have; ++k) {
            to[k] = kDigits[bits >> (18 - 6 * k) & 63];
        }
    }
}

void ColumnPack::append_planes(std::string_view name,
                               unsigned width_bytes,
                               bool as_difference,
                               std::uint64_t bits) {
    if (!as_difference || width_bytes == 4) {
        const unsigned needed = static_cast<unsigned>(std::bit_width(bits) + 7) / 8;
        // The reader would sum 1-byte differences in 8 bits, so use 2 bytes.
        width_bytes = as_difference && needed == 1 ? 2 : needed;
    }
    const std::size_t begin = raw_.size();
    raw_.resize(begin + width_bytes * rows_);
    for (unsigned plane = 0; plane < width_bytes; ++plane) {
        std::uint8_t* to = raw_.data() + begin + plane * rows_;
        for (std::size_t row = 0; row < rows_; ++row) {
            to[row] = static_cast<std::uint8_t>(stored_[row] >> (8 * plane));
        }
    }
    columns_.push_back({std::string(name), width_bytes, as_difference});
}

std::string ColumnPack::describe(std::string_view id) const {
    std::string text =
        fmt::format(R"({{"id":"{}","rows":{},"bytes":{},"columns":[)", id, rows_, raw_.size());
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        const Column& column = columns_[i];
        text += fmt::format(R"({}["{}",{},{}])",
                            i == 0 ? "" : ",",
                            column.name,
                            column.width_bytes,
                            column.as_difference ? 1 : 0);
    }
    return text + "]}";
}

std::string ColumnPack::element(std::string_view id) const {
    std::string html = fmt::format(R"(<template id="{}">)", id);
    append_base64(gzip(raw_), html);
    html += "</template>\n";
    return html;
}

}  // namespace fragtrace::analyzer
