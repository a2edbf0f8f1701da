// A column of varints, read a block at a time.
//
// Where each number ends is found for 64 bytes at once, so that no number waits for the length of
// the one before; the groups of 7 bits are then moved together for the whole block.
#pragma once

#include <array>
#include <cstdint>

namespace fragtrace::analyzer {

class NumberColumn {
  public:
    static constexpr std::uint32_t kBlock = 256;  // most numbers read at a time

    NumberColumn() = default;

    // The bytes must outlive the column.
    NumberColumn(const std::uint8_t* begin, const std::uint8_t* end, std::uint32_t count);

    // Every number is less than 0x80 and a byte of its own: read them with bytes().
    [[nodiscard]] bool one_byte() const { return one_byte_; }

    // The next `count` numbers of a column that is one_byte(), which has them.
    const std::uint8_t* bytes(std::uint32_t count) {
        const std::uint8_t* first = at_;
        at_ += count;
        return first;
    }

    // The next `count` numbers of any other column. False where it is too short or damaged.
    bool read(std::uint32_t count, std::uint64_t* numbers);

  private:
    static constexpr std::uint32_t kWindowBytes = 64;
    static constexpr std::uint32_t kWordBytes = 8;
    static constexpr std::uint32_t kMargin = kWindowBytes + kWordBytes;  // read beyond a number

    bool read_words(std::uint32_t count, std::uint64_t* words);
    bool read_long(std::uint32_t count, std::uint64_t* numbers);

    const std::uint8_t* at_ = nullptr;
    const std::uint8_t* end_ = nullptr;
    bool one_byte_ = false;
};

}  // namespace fragtrace::analyzer
