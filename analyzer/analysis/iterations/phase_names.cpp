#include "analyzer/analysis/iterations/phase_names.h"

#include <cctype>

namespace fragtrace::analyzer {

std::string without_numbers(std::string_view name) {
    std::string result;
    for (const char character : name) {
        const bool digit = std::isdigit(static_cast<unsigned char>(character)) != 0;
        if (!digit) {
            result += character;
        } else if (result.empty() || result.back() != '#') {
            result += '#';
        }
    }
    return result;
}

}  // namespace fragtrace::analyzer
