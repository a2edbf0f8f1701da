// Sizes as allocators print them. They are rounded, so a printed figure stands for a range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fragtrace::analyzer {

// "13.25 GiB" stands for every size that is printed so: `bytes`, plus or minus at most
// `error_bytes`.
struct PrintedSize {
    std::uint64_t bytes = 0;
    std::uint64_t error_bytes = 0;  // 0 = exact
    std::string text = {};          // as printed, with one blank before the unit

    [[nodiscard]] std::uint64_t least() const {
        return bytes > error_bytes ? bytes - error_bytes : 0;
    }

    [[nodiscard]] std::uint64_t most() const { return bytes + error_bytes; }
};

// The size at the start of `text`: a number and a unit (bytes, B, KiB, MiB, GiB or TiB), with or
// without blanks between. KB, MB and GB of old messages also mean powers of 1024. `*length` is the
// number of characters read. nullopt: no size there, or more than 2^60 bytes.
std::optional<PrintedSize> size_at(std::string_view text, std::size_t* length = nullptr);

// The size that ends right before the first `label`, and the size that starts right after it.
std::optional<PrintedSize> size_before(std::string_view text, std::string_view label);
std::optional<PrintedSize> size_after(std::string_view text, std::string_view label);

}  // namespace fragtrace::analyzer
