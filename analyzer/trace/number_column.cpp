#include "analyzer/trace/number_column.h"

#include <fragtrace/bytes.h>

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__SSE2__)
#    include <emmintrin.h>
#endif

namespace fragtrace::analyzer {
namespace {

static_assert(std::endian::native == std::endian::little);

// Returns one bit for each of 64 bytes; it is set if a number ends there.
std::uint64_t ends_of(const std::uint8_t* bytes) {
    std::uint64_t continues = 0;
#if defined(__SSE2__)
    for (unsigned i = 0; i < 4; ++i) {
        const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + 16 * i));
        continues |= std::uint64_t{static_cast<std::uint32_t>(_mm_movemask_epi8(part))} << 16 * i;
    }
#else
    for (unsigned i = 0; i < 8; ++i) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes + 8 * i, sizeof word);
        // Gathers the top bits of 8 bytes into one byte.
        continues |= ((word >> 7 & 0x0101010101010101) * 0x0102040810204080) >> 56 << 8 * i;
    }
#endif
    return ~continues;
}

// Masks of the payload bits, by length in bytes.
constexpr std::uint64_t kKept[] = {0,
                                   0x7f,
                                   0x7f7f,
                                   0x7f7f7f,
                                   0x7f7f7f7f,
                                   0x7f7f7f7f7f,
                                   0x7f7f7f7f7f7f,
                                   0x7f7f7f7f7f7f7f,
                                   0x7f7f7f7f7f7f7f7f};

std::uint64_t gather(std::uint64_t word) {
    word = (word & 0x007f007f007f007f) | ((word & 0x7f007f007f007f00) >> 1);
    word = (word & 0x00003fff00003fff) | ((word & 0x3fff00003fff0000) >> 2);
    return (word & 0x000000000fffffff) | ((word & 0x0fffffff00000000) >> 4);
}

}  // namespace

NumberColumn::NumberColumn(const std::uint8_t* begin, const std::uint8_t* end, std::uint32_t count)
    : at_(begin), end_(end) {
    if (static_cast<std::size_t>(end - begin) == count) {
        std::uint8_t seen = 0;
        for (std::uint32_t i = 0; i < count; ++i) {
            seen |= begin[i];
        }
        one_byte_ = seen < 0x80;
    }
}

bool NumberColumn::read(std::uint32_t count, std::uint64_t* numbers) {
    const std::uint8_t* begin = at_;
    if (!read_words(count, numbers)) {
        at_ = begin;
        return read_long(count, numbers);
    }
    for (std::uint32_t i = 0; i < count; ++i) {
        numbers[i] = gather(numbers[i]);
    }
    return true;
}

// Writes the bytes of each number, without their top bits, into `words`. Returns false if a number
// is missing or longer than a word.
bool NumberColumn::read_words(std::uint32_t count, std::uint64_t* words) {
    std::uint32_t done = 0;
    while (done < count) {
        const auto left = static_cast<std::size_t>(end_ - at_);
        std::uint8_t copy[2 * kMargin];
        const std::uint8_t* bytes = at_;
        if (left < kMargin) {  // never read beyond the column
            std::memset(copy, 0, sizeof copy);
            std::copy(at_, end_, copy);
            bytes = copy;
        }
        std::uint64_t ends = ends_of(bytes);
        if (left < kWindowBytes) {
            ends &= (std::uint64_t{1} << left) - 1;
        }
        std::uint32_t begin = 0;
        for (; ends != 0 && done < count; ends &= ends - 1) {
            const auto end = static_cast<std::uint32_t>(std::countr_zero(ends)) + 1;
            const std::uint32_t length = end - begin;
            if (length > kWordBytes) {
                return false;
            }
            std::uint64_t word = 0;
            std::memcpy(&word, bytes + begin, sizeof word);
            words[done++] = word & kKept[length];
            begin = end;
        }
        if (begin == 0) {
            return false;
        }
        at_ += begin;
    }
    return true;
}

bool NumberColumn::read_long(std::uint32_t count, std::uint64_t* numbers) {
    ByteReader reader(at_, static_cast<std::size_t>(end_ - at_));
    for (std::uint32_t i = 0; i < count; ++i) {
        numbers[i] = reader.varint();
    }
    at_ = end_ - reader.left();
    return !reader.failed();
}

}  // namespace fragtrace::analyzer
