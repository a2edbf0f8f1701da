#include "analyzer/analysis/explain/printed_size.h"

#include "analyzer/support/text.h"
#include "analyzer/support/units.h"

#include <array>
#include <cmath>
#include <fmt/format.h>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMostDigits = 20;
constexpr std::size_t kMostSizeLength = 32;
constexpr double kMostPrintedBytes = 1152921504606846976.0;  // 2^60

// Allocators print KB, MB and GB for powers of 1024. fragtrace/sizes.h reads the sizes that users
// write.
constexpr std::array<std::pair<std::string_view, std::uint64_t>, 10> kUnits = {{
    {"bytes", 1},
    {"KiB", kKiB},
    {"MiB", kMiB},
    {"GiB", kGiB},
    {"TiB", 1024 * kGiB},
    {"KB", kKiB},
    {"MB", kMiB},
    {"GB", kGiB},
    {"TB", 1024 * kGiB},
    {"B", 1},
}};

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace

std::optional<PrintedSize> size_at(std::string_view text, std::size_t* length) {
    std::size_t at = 0;
    double value = 0;
    while (at < text.size() && at < kMostDigits && is_digit(text[at])) {
        value = value * 10 + (text[at++] - '0');
    }
    if (at == 0) {
        return std::nullopt;
    }
    double place = 1;  // value of the last printed digit
    if (at + 1 < text.size() && text[at] == '.' && is_digit(text[at + 1])) {
        ++at;
        while (at < text.size() && at < kMostDigits && is_digit(text[at])) {
            place /= 10;
            value += place * (text[at++] - '0');
        }
    }
    const std::string_view number = text.substr(0, at);
    while (at < text.size() && text[at] == ' ') {
        ++at;
    }
    for (const auto& [name, unit] : kUnits) {
        const std::size_t end = at + name.size();
        if (text.substr(at, name.size()) != name || (end < text.size() && is_letter(text[end]))) {
            continue;
        }
        const double bytes = value * static_cast<double>(unit);
        if (bytes > kMostPrintedBytes) {
            return std::nullopt;
        }
        if (length != nullptr) {
            *length = end;
        }
        // Half of the last printed place, rounded up to whole bytes.
        const double error = unit == 1 ? 0 : std::ceil(place * static_cast<double>(unit) / 2);
        return PrintedSize{static_cast<std::uint64_t>(std::llround(bytes)),
                           static_cast<std::uint64_t>(error),
                           fmt::format("{} {}", number, name)};
    }
    return std::nullopt;
}

std::optional<PrintedSize> size_before(std::string_view text, std::string_view label) {
    const std::size_t end = text.find(label);
    if (end == std::string_view::npos) {
        return std::nullopt;
    }
    // Tries each position where a number can begin. The size must end exactly at the label;
    // otherwise it belongs to another one.
    const std::size_t from = end > kMostSizeLength ? end - kMostSizeLength : 0;
    for (std::size_t at = from; at < end; ++at) {
        if (!is_digit(text[at]) || (at > 0 && (is_digit(text[at - 1]) || text[at - 1] == '.'))) {
            continue;
        }
        std::size_t length = 0;
        const auto size = size_at(text.substr(at, end - at), &length);
        if (size && at + length == end) {
            return size;
        }
    }
    return std::nullopt;
}

std::optional<PrintedSize> size_after(std::string_view text, std::string_view label) {
    const std::size_t begin = text.find(label);
    return begin == std::string_view::npos ? std::nullopt
                                           : size_at(text.substr(begin + label.size()));
}

}  // namespace fragtrace::analyzer
