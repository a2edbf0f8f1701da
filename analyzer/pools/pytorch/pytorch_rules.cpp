#include "analyzer/pools/pytorch/pytorch_rules.h"

#include "analyzer/pools/pytorch/known_releases.h"

#include <charconv>
#include <fmt/format.h>
#include <optional>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// Major and minor number of "2.6", "2.6.0", "2.6.0a0+git1234".
std::optional<std::pair<int, int>> numbers_of(std::string_view release) {
    int major = 0;
    int minor = 0;
    const char* const end = release.data() + release.size();
    const auto dot = std::from_chars(release.data(), end, major);
    if (dot.ec != std::errc{} || dot.ptr == end || *dot.ptr != '.' ||
        std::from_chars(dot.ptr + 1, end, minor).ec != std::errc{} || major < 0 || major > 1000 ||
        minor < 0 || minor > 99) {
        return std::nullopt;
    }
    return std::pair{major, minor};
}

}  // namespace

PytorchRules PytorchRules::for_release(std::string_view release) {
    const auto numbers = numbers_of(release);
    return numbers ? for_version(numbers->first, numbers->second) : PytorchRules{};
}

std::string doubt_about_release(std::string_view release) {
    constexpr std::pair kFirst{2, 0};
    constexpr std::pair kLast{2, 15};
    const auto numbers = numbers_of(release);
    if (!numbers || (*numbers >= kFirst && *numbers <= kLast)) {
        return "";
    }
    const auto& nearest = *numbers < kFirst ? kFirst : kLast;
    return fmt::format(
        "the rules of PyTorch {}.{} are not known: its replay follows those of {}.{}",
        numbers->first,
        numbers->second,
        nearest.first,
        nearest.second);
}

bool PytorchRules::is_release(std::string_view text) {
    return numbers_of(text).has_value();
}

}  // namespace fragtrace::analyzer
