// The opcodes of a pickle, and the numbers in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fragtrace::analyzer {

// The opcodes that picklers of protocols 2 to 5 write for plain data.
enum Opcode : std::uint8_t {
    kProto = 0x80,
    kFrame = 0x95,
    kStop = '.',
    kMark = '(',
    kEmptyDict = '}',
    kEmptyList = ']',
    kEmptyTuple = ')',
    kSetItem = 's',
    kSetItems = 'u',
    kAppend = 'a',
    kAppends = 'e',
    kTuple = 't',
    kTuple1 = 0x85,
    kTuple2 = 0x86,
    kTuple3 = 0x87,
    kShortText = 0x8c,
    kText = 'X',
    kLongText = 0x8d,
    kMemoize = 0x94,
    kBinPut = 'q',
    kLongBinPut = 'r',
    kBinGet = 'h',
    kLongBinGet = 'j',
    kInt1 = 'K',
    kInt2 = 'M',
    kInt4 = 'J',
    kLong1 = 0x8a,
    kLong4 = 0x8b,
    kFloat = 'G',
    kTrue = 0x88,
    kFalse = 0x89,
    kNone = 'N',
};

inline std::uint64_t little_endian(const std::uint8_t* data, std::size_t size_bytes) {
    std::uint64_t value = 0;
    std::memcpy(&value, data, size_bytes);
    return value;
}

}  // namespace fragtrace::analyzer
