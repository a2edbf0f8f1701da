// What std::string_view lacks.
#pragma once

#include <string_view>

namespace fragtrace::analyzer {

inline bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

// Whatever the locale is.
inline bool is_digit(char character) {
    return character >= '0' && character <= '9';
}

}  // namespace fragtrace::analyzer
