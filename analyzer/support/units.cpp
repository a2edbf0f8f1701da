#include "analyzer/support/units.h"

#include <array>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

std::string trimmed(double value) {
    if (value >= 99.95) {
        return fmt::format("{:.0f}", value);
    }
    std::string text = value >= 9.995 ? fmt::format("{:.1f}", value) : fmt::format("{:.2f}", value);
    while (text.back() == '0') {
        text.pop_back();
    }
    if (text.back() == '.') {
        text.pop_back();
    }
    return text;
}

}  // namespace

std::string format_bytes(std::uint64_t size_bytes) {
    constexpr std::array<const char*, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    auto value = static_cast<double>(size_bytes);
    std::size_t unit = 0;
    while (value >= 1023.5 && unit + 1 < kUnits.size()) {
        value /= 1024;
        ++unit;
    }
    return trimmed(value) + " " + kUnits[unit];
}

std::string format_bytes_difference(std::int64_t difference_bytes) {
    const auto bits = static_cast<std::uint64_t>(difference_bytes);
    return difference_bytes < 0 ? format_bytes_difference(0 - bits, 0)
                                : format_bytes_difference(0, bits);
}

std::string format_bytes_difference(std::uint64_t from_bytes, std::uint64_t to_bytes) {
    if (from_bytes == to_bytes) {
        return "0 B";
    }
    return to_bytes > from_bytes ? "+" + format_bytes(to_bytes - from_bytes)
                                 : "-" + format_bytes(from_bytes - to_bytes);
}

std::string format_duration(std::uint64_t duration_ns) {
    const auto value = static_cast<double>(duration_ns);
    if (value < 1e3) {
        return fmt::format("{} ns", duration_ns);
    }
    if (value < 1e6) {
        return trimmed(value / 1e3) + " us";
    }
    if (value < 1e9) {
        return trimmed(value / 1e6) + " ms";
    }
    if (value < 120e9) {
        return trimmed(value / 1e9) + " s";
    }
    const std::uint64_t minutes = duration_ns / 60'000'000'000;
    if (minutes < 60) {
        return fmt::format("{} min {:02} s", minutes, duration_ns / 1'000'000'000 % 60);
    }
    return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
}

std::string format_percent(std::uint64_t part, std::uint64_t whole) {
    if (whole == 0) {
        return "0 %";
    }
    const double value = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
    return fmt::format("{:.{}f} %", value, value < 9.95 && part != 0 ? 1 : 0);
}

std::string format_count(std::uint64_t count) {
    std::string digits = std::to_string(count);
    for (auto position = static_cast<std::ptrdiff_t>(digits.size()) - 3; position > 0;
         position -= 3) {
        digits.insert(static_cast<std::size_t>(position), 1, ',');
    }
    return digits;
}

std::string format_counted(std::uint64_t count, std::string_view one, std::string_view many) {
    return fmt::format("{} {}", format_count(count), count == 1 ? one : many);
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
    const auto bad = [text](const char* why) {
        return Error{
            ErrorCode::kUsage,
            fmt::format(
                "'{}' is not a size: {} (examples: 16GiB, 1894MiB, 1073741824)", text, why)};
    };
    constexpr std::uint64_t kMost_bytes = kGiB * 1024 * 1024;
    std::uint64_t size_bytes = 0;
    const SizeText read = read_size(text.data(), text.size(), &size_bytes);
    if (read == SizeText::kNoNumber) {
        return bad("it must begin with a number that is not negative");
    }
    if (read == SizeText::kUnknownUnit) {
        return bad("its unit is none of B, KB, MB, GB, TB, KiB, MiB, GiB, TiB");
    }
    if (read == SizeText::kTooLarge || size_bytes > kMost_bytes) {
        return bad("no device has more than 1 PiB");
    }
    return size_bytes;
}

Result<std::uint64_t> parse_card_bytes(std::string_view text) {
    constexpr std::uint64_t kLeastWithoutUnit = 1000;
    const auto bytes = parse_bytes(text);
    if (bytes && *bytes > 0 && *bytes < kLeastWithoutUnit &&
        text.find_first_not_of("0123456789.") == std::string_view::npos) {
        return Error{ErrorCode::kUsage,
                     fmt::format("'{0}' has no unit; write {0}GiB, or {0}B for bytes", text)};
    }
    return bytes;
}

}  // namespace fragtrace::analyzer
