#include "stacks/python_lines.h"

namespace fragtrace::preload {
namespace {

constexpr int kCodeUnit_bytes = 2;

uint32_t as_line(int line) {
    return line < 0 ? 0 : static_cast<uint32_t>(line);
}

// Little-endian groups of six bits; bit 6 means that another group follows. The lowest bit is the
// sign.
int signed_varint(const uint8_t* at, const uint8_t* end) {
    uint32_t value = 0;
    for (unsigned shift = 0; at < end && shift < 32; shift += 6) {
        value |= static_cast<uint32_t>(*at & 63) << shift;
        if ((*at & 64) == 0) {
            break;
        }
        ++at;
    }
    return (value & 1) != 0 ? -static_cast<int>(value >> 1) : static_cast<int>(value >> 1);
}

}  // namespace

uint32_t line_in_location_table(const uint8_t* table,
                                size_t size_bytes,
                                int first_line,
                                int lasti) {
    // Encodings of an entry's location: the values of bits 3 to 6 of its first byte.
    enum Form : uint8_t {
        kOneLine0 = 10,
        kOneLine1 = 11,
        kOneLine2 = 12,
        kNoColumns = 13,
        kLong = 14,
        kNone = 15
    };

    if (lasti < 0) {
        return as_line(first_line);
    }
    const uint8_t* at = table;
    const uint8_t* end = table + size_bytes;
    int line = first_line;
    int address = 0;
    while (at < end) {
        const uint8_t head = *at++;
        const auto form = static_cast<uint8_t>((head >> 3) & 15);
        switch (form) {
            case kOneLine0:
                break;
            case kOneLine1:
                line += 1;
                break;
            case kOneLine2:
                line += 2;
                break;
            case kNoColumns:
            case kLong:
                line += signed_varint(at, end);
                break;
            default:
                break;
        }
        address += ((head & 7) + 1) * kCodeUnit_bytes;
        if (lasti < address) {
            return form == kNone ? 0 : as_line(line);
        }
        while (at < end && (*at & 0x80) == 0) {  // only the first byte of an entry has bit 7 set
            ++at;
        }
    }
    return 0;
}

uint32_t line_in_line_table(const uint8_t* table, size_t size_bytes, int first_line, int lasti) {
    if (lasti < 0) {
        return as_line(first_line);
    }
    constexpr int kNoLine = -128;
    int line = first_line;
    int address = 0;
    for (size_t i = 0; i + 1 < size_bytes; i += 2) {
        const int step = static_cast<int8_t>(table[i + 1]);
        address += table[i];
        line += step == kNoLine ? 0 : step;
        if (lasti < address) {
            return step == kNoLine ? 0 : as_line(line);
        }
    }
    return 0;
}

uint32_t line_in_lnotab(const uint8_t* table, size_t size_bytes, int first_line, int lasti) {
    int line = first_line;
    int address = 0;
    for (size_t i = 0; i + 1 < size_bytes; i += 2) {
        address += table[i];
        if (address > lasti) {
            break;
        }
        line += static_cast<int8_t>(table[i + 1]);
    }
    return as_line(line);
}

}  // namespace fragtrace::preload
