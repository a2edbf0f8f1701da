// Reads unwind tables (.eh_frame). Every read is checked against the end of the table.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace fragtrace::preload {

// Reads within [at, end). After a read past the end, every read returns 0 and failed() is true.
class TableReader {
  public:
    TableReader(const uint8_t* at, const uint8_t* end) : at_(at), end_(end) {}

    template <typename T>
    T fixed() {
        T value{};
        if (static_cast<size_t>(end_ - at_) < sizeof value) {
            fail();
            return T{};
        }
        memcpy(&value, at_, sizeof value);
        at_ += sizeof value;
        return value;
    }

    uint64_t unsigned_number() {  // ULEB128
        uint64_t value = 0;
        for (uint32_t shift = 0; shift < 64; shift += 7) {
            const auto byte = fixed<uint8_t>();
            value |= uint64_t{byte & 0x7fu} << shift;
            if ((byte & 0x80) == 0) {
                return value;
            }
        }
        fail();
        return 0;
    }

    int64_t signed_number() {  // SLEB128
        uint64_t value = 0;
        for (uint32_t shift = 0; shift < 64; shift += 7) {
            const auto byte = fixed<uint8_t>();
            value |= uint64_t{byte & 0x7fu} << shift;
            if ((byte & 0x80) == 0) {
                const bool negative = (byte & 0x40) != 0 && shift + 7 < 64;
                return static_cast<int64_t>(negative ? value | (~uint64_t{0} << (shift + 7))
                                                     : value);
            }
        }
        fail();
        return 0;
    }

    // Reads a pointer in one of the encodings that linkers use. Relative ones are relative to their
    // own address.
    uint64_t pointer(uint8_t encoding) {
        const auto place = reinterpret_cast<uint64_t>(at_);
        uint64_t value = 0;
        switch (encoding & 0x0f) {
            case 0x00:  // absptr
            case 0x04:  // udata8
            case 0x0c:  // sdata8
                value = fixed<uint64_t>();
                break;
            case 0x03:  // udata4
                value = fixed<uint32_t>();
                break;
            case 0x0b:  // sdata4
                value = static_cast<uint64_t>(int64_t{fixed<int32_t>()});
                break;
            default:
                fail();
        }
        if ((encoding & 0xf0) == 0x10) {  // pcrel
            return value + place;
        }
        if ((encoding & 0xf0) != 0) {
            fail();
        }
        return value;
    }

    void skip(uint64_t count) {
        if (count > static_cast<uint64_t>(end_ - at_)) {
            fail();
        } else {
            at_ += count;
        }
    }

    void end_at(const uint8_t* end) {
        if (end < at_ || end > end_) {
            fail();
        } else {
            end_ = end;
        }
    }

    [[nodiscard]] const uint8_t* at() const { return at_; }

    [[nodiscard]] bool done() const { return at_ == end_; }

    [[nodiscard]] bool failed() const { return failed_; }

  private:
    void fail() {
        failed_ = true;
        at_ = end_;
    }

    const uint8_t* at_;
    const uint8_t* end_;
    bool failed_ = false;
};

}  // namespace fragtrace::preload
