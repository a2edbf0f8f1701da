// Writes messages in the binary encoding of Protocol Buffers.
// https://protobuf.dev/programming-guides/encoding
#pragma once

#include <bit>
#include <cstdint>
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

}  // namespace fragtrace::analyzer
