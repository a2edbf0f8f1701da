// Settings of all pools except PyTorch's: "key:value,key:value", checked against the pool's known
// keys.
#pragma once

#include "analyzer/support/result.h"

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <variant>

namespace fragtrace::analyzer {

// Bytes, or a percentage of a size that the pool knows.
struct Amount {
    std::uint64_t bytes = 0;
    double percent = 0;  // if not 0, used instead of `bytes`

    [[nodiscard]] std::uint64_t of(std::uint64_t whole_bytes) const {
        return percent == 0
                   ? bytes
                   : static_cast<std::uint64_t>(static_cast<double>(whole_bytes) * (percent / 100));
    }
};

// A setting and the variable for its value, which contains the default beforehand: a size
// ("64KiB"), an amount ("4GiB", "50%"), a fraction (a number >= 0) or a switch ("True", "False").
struct PoolSetting {
    std::string_view key;
    std::variant<std::uint64_t*, Amount*, double*, bool*> value;
};

// Errors are kUsage and name the pool, the key and the known keys. Also accepts "key=value".
Status read_pool_settings(std::string_view pool,
                          std::string_view text,
                          std::initializer_list<PoolSetting> known);

}  // namespace fragtrace::analyzer
