// The settings of the pools other than PyTorch's: "key:value,key:value", checked against what the
// pool knows.
#pragma once

#include "analyzer/support/result.h"

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <variant>

namespace fragtrace::analyzer {

// Bytes, or a share (in percent) of something that the pool knows.
struct Amount {
    std::uint64_t bytes = 0;
    double percent = 0;  // in place of the bytes when not 0

    [[nodiscard]] std::uint64_t of(std::uint64_t whole_bytes) const {
        return percent == 0
                   ? bytes
                   : static_cast<std::uint64_t>(static_cast<double>(whole_bytes) * (percent / 100));
    }
};

// A setting and where its value goes, which is the default until then: a size ("64KiB"), an amount
// ("4GiB", "50%"), a fraction (a number not below 0), a switch ("True", "False").
struct PoolSetting {
    std::string_view key;
    std::variant<std::uint64_t*, Amount*, double*, bool*> value;
};

// Errors are kUsage and name pool, key and what is known. "key=value" is understood as well.
Status read_pool_settings(std::string_view pool,
                          std::string_view text,
                          std::initializer_list<PoolSetting> known);

}  // namespace fragtrace::analyzer
