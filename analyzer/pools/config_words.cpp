#include "analyzer/pools/config_words.h"

#include <cerrno>
#include <cstdlib>

namespace fragtrace::analyzer {
namespace {

constexpr std::string_view kSeparators = ",:[]";

}  // namespace

// Ignores white space. Separators are tokens of their own.
std::vector<std::string> split_config_words(std::string_view text) {
    std::vector<std::string> tokens;
    std::string word;
    const auto flush = [&] {
        if (!word.empty()) {
            tokens.push_back(std::move(word));
            word.clear();
        }
    };
    for (const char c : text) {
        if (kSeparators.find(c) != std::string_view::npos) {
            flush();
            tokens.emplace_back(1, c);
        } else if (c != ' ' && (c < '\t' || c > '\r')) {
            word += c;
        }
    }
    flush();
    return tokens;
}

// Parses like strtoull, as PyTorch does: text after the digits is ignored, and a minus sign wraps
// around.
bool read_unsigned(const std::string& text, std::uint64_t& value) {
    char* end = nullptr;
    errno = 0;
    value = std::strtoull(text.c_str(), &end, 10);
    return end != text.c_str() && errno == 0;
}

bool read_double(const std::string& text, double& value) {
    char* end = nullptr;
    errno = 0;
    value = std::strtod(text.c_str(), &end);
    return end != text.c_str() && errno == 0;
}

}  // namespace fragtrace::analyzer
