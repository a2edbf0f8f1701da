// Units of sizes, rounding, and sizes as people write them: "64MiB", "1.5 GB", "24g", "1073741824".
// The recorder, the launcher, the virtual GPU and the analyzer share this header.
//
// Header only. No allocation, no exceptions, no global state that the loader would have to
// relocate.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace fragtrace {

inline constexpr uint64_t kKiB = 1024;
inline constexpr uint64_t kMiB = 1024 * kKiB;
inline constexpr uint64_t kGiB = 1024 * kMiB;

// Rounds `bytes` up to a multiple of `unit_bytes`. If the result does not fit in 64 bits, it wraps
// around to less than `bytes`.
constexpr uint64_t round_up(uint64_t bytes, uint64_t unit_bytes) {
    return (bytes + unit_bytes - 1) / unit_bytes * unit_bytes;
}

enum class SizeText { kRead, kNoNumber, kUnknownUnit, kTooLarge };

struct SizeUnit {
    char name[4];  // in capitals; the text may have either case
    uint64_t bytes;
};

// GB is 10^9 bytes, GiB and G are 2^30. A number without a unit is bytes.
inline constexpr SizeUnit kSizeUnits[] = {{"", 1},
                                          {"B", 1},
                                          {"K", kKiB},
                                          {"KIB", kKiB},
                                          {"KB", 1'000},
                                          {"M", kMiB},
                                          {"MIB", kMiB},
                                          {"MB", 1'000'000},
                                          {"G", kGiB},
                                          {"GIB", kGiB},
                                          {"GB", 1'000'000'000},
                                          {"T", 1024 * kGiB},
                                          {"TIB", 1024 * kGiB},
                                          {"TB", 1'000'000'000'000}};

// The largest size that is accepted. Sums of a few such sizes fit in 64 bits.
inline constexpr uint64_t kLargestSize_bytes = uint64_t{1} << 60;

constexpr bool is_size_unit(const SizeUnit& unit, const char* text, size_t length) {
    size_t at = 0;
    for (; at < length && at + 1 < sizeof unit.name; ++at) {
        const char c = text[at];
        if ((c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c) != unit.name[at]) {
            return false;
        }
    }
    return at == length && unit.name[at] == '\0';
}

// Reads a size. The whole text must be a number with an optional fraction, optional blanks and an
// optional unit. `bytes` is rounded down, and changes only if the result is kRead.
constexpr SizeText read_size(const char* text, size_t length, uint64_t* bytes) {
    constexpr size_t kMostPlaces = 18;
    const auto is_digit = [text, length](size_t at) {
        return at < length && text[at] >= '0' && text[at] <= '9';
    };
    size_t at = 0;
    uint64_t whole = 0;
    for (; is_digit(at); ++at) {
        whole =
            whole > kLargestSize_bytes ? whole : whole * 10 + static_cast<uint64_t>(text[at] - '0');
    }
    if (at == 0) {
        return SizeText::kNoNumber;
    }
    size_t places_begin = at;
    size_t places_end = at;
    if (at < length && text[at] == '.') {
        places_begin = ++at;
        for (; is_digit(at); ++at) {
        }
        places_end = at - places_begin > kMostPlaces ? places_begin + kMostPlaces : at;
    }
    while (at < length && text[at] == ' ') {
        ++at;
    }
    for (const SizeUnit& unit : kSizeUnits) {
        if (!is_size_unit(unit, text + at, length - at)) {
            continue;
        }
        if (whole > kLargestSize_bytes / unit.bytes) {
            return SizeText::kTooLarge;
        }
        uint64_t fraction_bytes = 0;
        for (size_t place = places_end; place > places_begin; --place) {
            const auto digit = static_cast<uint64_t>(text[place - 1] - '0');
            fraction_bytes = (digit * unit.bytes + fraction_bytes) / 10;
        }
        *bytes = whole * unit.bytes + fraction_bytes;
        return SizeText::kRead;
    }
    return SizeText::kUnknownUnit;
}

}  // namespace fragtrace
