// Writes and reads messages in the binary encoding of Protocol Buffers.
// https://protobuf.dev/programming-guides/encoding
#pragma once

#include "analyzer/support/byte_stream.h"

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fragtrace::analyzer {

class ProtoMessage {
  public:
    // For every integer type, enum and bool. Signed numbers are passed as their two's complement.
    ProtoMessage& number(std::uint32_t field, std::uint64_t value) {
        varint(field << 3);
        varint(value);
        return *this;
    }

    ProtoMessage& real(std::uint32_t field, double value) {
        varint(field << 3 | 1);
        auto bits = std::bit_cast<std::uint64_t>(value);
        for (int i = 0; i < 8; ++i, bits >>= 8) {
            bytes_ += static_cast<char>(bits);
        }
        return *this;
    }

    // `value` must be UTF-8 unless the field has the type bytes.
    ProtoMessage& text(std::uint32_t field, std::string_view value) {
        varint(field << 3 | 2);
        varint(value.size());
        bytes_ += value;
        return *this;
    }

    ProtoMessage& message(std::uint32_t field, const ProtoMessage& value) {
        return text(field, value.bytes_);
    }

    [[nodiscard]] const std::string& bytes() const { return bytes_; }

    void clear() { bytes_.clear(); }

  private:
    void varint(std::uint64_t value) {
        for (; value >= 0x80; value >>= 7) {
            bytes_ += static_cast<char>(value | 0x80);
        }
        bytes_ += static_cast<char>(value);
    }

    std::string bytes_;
};

struct ProtoField {
    std::uint32_t number = 0;
    bool is_bytes = false;    // a text, a message or bytes
    std::uint64_t value = 0;  // the number, or the bits of a real; the length if is_bytes
};

// Reads a message field by field. The bytes are untrusted, and a message may be larger than memory.
// Not thread-safe.
class ProtoReader {
  public:
    // The file, also gzipped, must outlive the reader.
    explicit ProtoReader(const InputFile& file) : stream_(file) {}

    // The next field of the message that ends at the offset `end`; kEndOfFile for the outermost
    // one. nullopt: the message has ended, or problem() says why it cannot be read. After a field
    // with is_bytes, call text() or skip(), or read its content with next() up to
    // offset() + value.
    std::optional<ProtoField> next(std::uint64_t end);

    static constexpr std::uint64_t kEndOfFile = ~std::uint64_t{0};

    // The content of a field, whole. A text longer than `most` bytes is a problem, and empty.
    std::string text(const ProtoField& field, std::size_t most);

    // Skips the content of a field; does nothing for a number.
    void skip(const ProtoField& field);

    [[nodiscard]] std::uint64_t offset() const { return stream_.offset(); }

    // Empty = none. Once there is one, next() returns nullopt.
    [[nodiscard]] const std::string& problem() const { return problem_; }

  private:
    std::optional<std::uint64_t> varint(std::uint64_t end);
    bool available(std::uint64_t count, std::uint64_t end);

    ByteStream stream_;
    std::string problem_;
};

}  // namespace fragtrace::analyzer
