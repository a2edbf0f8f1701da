// Sizes for people.
#pragma once

#include <cstdint>
#include <fmt/format.h>
#include <string>

namespace fragtrace::launcher {

// "3.39 GiB", "64 MiB", "512 bytes".
inline std::string size_text(std::uint64_t bytes) {
    constexpr double kMiB = std::uint64_t{1} << 20;
    constexpr double kGiB = std::uint64_t{1} << 30;
    const auto size = static_cast<double>(bytes);
    return size >= 10 * kGiB ? fmt::format("{:.1f} GiB", size / kGiB)
           : size >= kGiB    ? fmt::format("{:.2f} GiB", size / kGiB)
           : size >= kMiB    ? fmt::format("{:.0f} MiB", size / kMiB)
                             : fmt::format("{} bytes", bytes);
}

}  // namespace fragtrace::launcher
