// Basics of the trace format: a checksum, variable-length integers, and a bounds-checked writer and
// reader of bytes.
//
// Header only. No allocation, no exceptions, no global state. So the recorder can use it in any
// process, and the analyzer can use it on untrusted bytes.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace fragtrace {

// ---- crc32 (polynomial 0xedb88320, as in zlib) --------------------------------------------------

struct CrcTable {
    uint32_t entry[256] = {};

    constexpr CrcTable() {
        for (uint32_t i = 0; i < 256; ++i) {
            uint32_t value = i;
            for (int bit = 0; bit < 8; ++bit) {
                value = (value & 1) != 0 ? 0xedb88320u ^ (value >> 1) : value >> 1;
            }
            entry[i] = value;
        }
    }
};

inline constexpr CrcTable kCrcTable;

// Continues a checksum: crc32(b, n, crc32(a, m)) is the checksum of a followed by b.
inline uint32_t crc32(const void* data, size_t size_bytes, uint32_t seed = 0) {
    const auto* byte = static_cast<const uint8_t*>(data);
    uint32_t crc = ~seed;
    for (size_t i = 0; i < size_bytes; ++i) {
        crc = kCrcTable.entry[(crc ^ byte[i]) & 0xff] ^ (crc >> 8);
    }
    return ~crc;
}

// ---- integers -----------------------------------------------------------------------------------

constexpr uint64_t zigzag(int64_t value) {
    return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}

constexpr int64_t unzigzag(uint64_t value) {
    return static_cast<int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

inline constexpr size_t kMaxVarintBytes = 10;

// Writes `value` at `to`, which must have room for kMaxVarintBytes. Returns the position after the
// last byte written.
inline uint8_t* put_varint(uint8_t* to, uint64_t value) {
    while (value >= 0x80) {
        *to++ = static_cast<uint8_t>(value) | 0x80;
        value >>= 7;
    }
    *to++ = static_cast<uint8_t>(value);
    return to;
}

// Appends to memory that the caller owns. An append that does not fit sets failed() and writes
// nothing.
class ByteWriter {
  public:
    ByteWriter(uint8_t* data, size_t capacity_bytes) : data_(data), capacity_(capacity_bytes) {}

    void varint(uint64_t value) {
        if (capacity_ - size_ < kMaxVarintBytes) {
            failed_ = true;
            return;
        }
        size_ = static_cast<size_t>(put_varint(data_ + size_, value) - data_);
    }

    void bytes(const void* source, size_t count) {
        if (capacity_ - size_ < count) {
            failed_ = true;
            return;
        }
        if (count != 0) {
            memcpy(data_ + size_, source, count);
        }
        size_ += count;
    }

    void text(const char* source, size_t count) {
        varint(count);
        bytes(source, count);
    }

    [[nodiscard]] const uint8_t* data() const { return data_; }

    [[nodiscard]] size_t size() const { return size_; }

    [[nodiscard]] bool failed() const { return failed_; }

    void clear() {
        size_ = 0;
        failed_ = false;
    }

  private:
    uint8_t* data_;
    size_t capacity_;
    size_t size_ = 0;
    bool failed_ = false;
};

// Reads untrusted bytes. After the first read past the end, failed() is true and every read returns
// 0.
class ByteReader {
  public:
    ByteReader(const uint8_t* data, size_t size_bytes) : next_(data), left_(size_bytes) {}

    uint64_t varint() {
        uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            if (left_ == 0) {
                return fail();
            }
            const uint8_t byte = *next_++;
            --left_;
            value |= static_cast<uint64_t>(byte & 0x7f) << shift;
            if ((byte & 0x80) == 0) {
                return value;
            }
        }
        return fail();
    }

    // Returns a view of the next `count` bytes, or nullptr if fewer are left.
    const uint8_t* bytes(uint64_t count) {
        if (count > left_) {
            fail();
            return nullptr;
        }
        const uint8_t* result = next_;
        next_ += count;
        left_ -= static_cast<size_t>(count);
        return result;
    }

    // Returns a reader for the next column: a length as varint, then that many bytes.
    ByteReader column() {
        const uint64_t size = varint();
        const uint8_t* data = bytes(size);
        ByteReader reader(data, data == nullptr ? 0 : static_cast<size_t>(size));
        reader.failed_ = failed_;
        return reader;
    }

    [[nodiscard]] size_t left() const { return left_; }

    [[nodiscard]] bool failed() const { return failed_; }

  private:
    uint64_t fail() {
        failed_ = true;
        left_ = 0;
        return 0;
    }

    const uint8_t* next_;
    size_t left_;
    bool failed_ = false;
};

}  // namespace fragtrace
