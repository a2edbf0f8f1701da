// Formats and parses sizes and times for people.
#pragma once

#include <fragtrace/sizes.h>

#include "analyzer/support/result.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace fragtrace::analyzer {

using fragtrace::kGiB;
using fragtrace::kKiB;
using fragtrace::kMiB;
using fragtrace::round_up;

// The driver maps device memory in pages of this size.
inline constexpr std::uint64_t kDriverPageBytes = 2 * kMiB;

// "1.85 GiB", "11 MiB", "512 B": three significant digits if there is a fraction.
std::string format_bytes(std::uint64_t size_bytes);
// "+12 MiB", "-1.5 GiB", "0 B".
std::string format_bytes_difference(std::int64_t difference_bytes);
// The difference from one size to another. It may exceed an int64_t, because files can contain any
// sizes.
std::string format_bytes_difference(std::uint64_t from_bytes, std::uint64_t to_bytes);
// "2.41 s", "350 ms", "12 us", "1 h 02 min".
std::string format_duration(std::uint64_t duration_ns);
// "23 %", "4.5 %" below 10 %. 0 % of nothing.
std::string format_percent(std::uint64_t part, std::uint64_t whole);
// "1,078".
std::string format_count(std::uint64_t count);
// "1 retry", "3 retries".
std::string format_counted(std::uint64_t count, std::string_view one, std::string_view many);

// Parses "16GiB", "1894 MiB", "24G", "25.8GB", "1073741824" with the rules of fragtrace/sizes.h.
// Errors are kUsage.
Result<std::uint64_t> parse_bytes(std::string_view text);

// The same for memory of a card. "24" is refused: it would be 24 bytes.
Result<std::uint64_t> parse_card_bytes(std::string_view text);

}  // namespace fragtrace::analyzer
