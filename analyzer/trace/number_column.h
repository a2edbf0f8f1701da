// A column of varints, read in blocks.
//
// The ends of all numbers in 64 bytes are found at once, so no number has to wait for the length of
// the one before. The groups of 7 bits are then joined for the whole block.
#pragma once

#include <array>
#include <cstdint>

namespace fragtrace::analyzer {

class NumberColumn {
  public:
    static constexpr std::uint32_t kBlock = 256;  // the most numbers that are read at once

    NumberColumn() = default;

    // The bytes must outlive the column.
    NumberColumn(const std::uint8_t* begin, const std::uint8_t* end, std::uint32_t count);

    // Whether every number is less than 0x80 and takes one byte. Read such a column with bytes().
    [[nodiscard]] bool one_byte() const { return one_byte_; }

    // Returns the next `count` numbers of a one_byte() column. The caller ensures that there are
    // that many.
    const std::uint8_t* bytes(std::uint32_t count) {
        const std::uint8_t* first = at_;
        at_ += count;
        return first;
    }

    // Reads the next `count` numbers of any other column. Returns false if the column is too short
    // or damaged.
    bool read(std::uint32_t count, std::uint64_t* numbers);

  private:
    static constexpr std::uint32_t kWindowBytes = 64;
    static constexpr std::uint32_t kWordBytes = 8;
    static constexpr std::uint32_t kMargin = kWindowBytes + kWordBytes;  // bytes read ahead of at_

    bool read_words(std::uint32_t count, std::uint64_t* words);
    bool read_long(std::uint32_t count, std::uint64_t* numbers);

    const std::uint8_t* at_ = nullptr;
    const std::uint8_t* end_ = nullptr;
    bool one_byte_ = false;
};

}  // namespace fragtrace::analyzer
