#include "analyzer/pools/pool_settings.h"

#include "analyzer/support/units.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <string>

namespace fragtrace::analyzer {
namespace {

Error wrong(std::string_view pool, std::string_view what) {
    return {ErrorCode::kUsage, fmt::format("pool '{}': {}", pool, what)};
}

bool read_number(std::string_view text, double* number) {
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), *number);
    return failed == std::errc() && end == text.data() + text.size() && std::isfinite(*number) &&
           *number >= 0;
}

bool read_value(std::string_view text, std::uint64_t* value) {
    const auto parsed = parse_bytes(text);
    if (parsed) {
        *value = *parsed;
    }
    return parsed.ok();
}

bool read_value(std::string_view text, Amount* value) {
    if (text.ends_with('%')) {
        return read_number(text.substr(0, text.size() - 1), &value->percent) &&
               value->percent > 0 && value->percent <= 100;
    }
    value->percent = 0;
    return read_value(text, &value->bytes);
}

bool read_value(std::string_view text, double* value) {
    return read_number(text, value);
}

bool read_value(std::string_view text, bool* value) {
    *value = text == "True";
    return text == "True" || text == "False";
}

constexpr std::string_view expected(const PoolSetting& setting) {
    constexpr std::string_view kinds[] = {
        "a size (64KiB)", "a size or a share (4GiB, 50%)", "a number", "True or False"};
    return kinds[setting.value.index()];
}

}  // namespace

Status read_pool_settings(std::string_view pool,
                          std::string_view text,
                          std::initializer_list<PoolSetting> known) {
    while (!text.empty()) {
        const std::string_view item = text.substr(0, text.find(','));
        text.remove_prefix(std::min(text.size(), item.size() + 1));
        const std::size_t colon = item.find_first_of(":=");
        const std::string_view key = item.substr(0, colon);
        const auto* const found =
            std::find_if(known.begin(), known.end(), [key](const PoolSetting& setting) {
                return setting.key == key;
            });
        if (found == known.end()) {
            std::string keys;
            for (const PoolSetting& setting : known) {
                keys += fmt::format("{}{}", keys.empty() ? "" : ", ", setting.key);
            }
            return wrong(pool, fmt::format("unknown setting '{}'; known are: {}", key, keys));
        }
        const std::string_view value =
            colon == std::string_view::npos ? std::string_view() : item.substr(colon + 1);
        if (!std::visit([value](auto* target) { return read_value(value, target); },
                        found->value)) {
            return wrong(pool, fmt::format("{} needs {}, got '{}'", key, expected(*found), value));
        }
    }
    return Ok{};
}

}  // namespace fragtrace::analyzer
