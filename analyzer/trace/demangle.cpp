#include "analyzer/trace/demangle.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cxxabi.h>
#include <string_view>

namespace fragtrace::analyzer {
namespace {

// Counts references to earlier parts of a mangled name. Each may double the length of the readable
// name.
std::size_t references_in(std::string_view name) {
    std::size_t count = 0;
    for (std::size_t at = 0; at + 1 < name.size(); ++at) {
        const char next = name[at + 1];
        const bool numbered = next == '_' || (next >= '0' && next <= '9');
        if (name[at] == 'T' || name[at] == 'S') {
            count += numbered || (name[at] == 'S' && next >= 'A' && next <= 'Z') ? 1 : 0;
        } else if (next == 'p' && (name[at] == 'D' || name[at] == 's')) {
            count += 4;  // one reference per element of a pack
        }
    }
    return count;
}

// The components of a nested name without template arguments: "at::native::copy<...>".
std::string outline(std::string_view name) {
    std::string result;
    std::size_t at = name.find_first_of("0123456789");
    while (at < name.size() && name[at] >= '0' && name[at] <= '9') {
        std::size_t length = 0;
        for (; at < name.size() && name[at] >= '0' && name[at] <= '9'; ++at) {
            length = std::min<std::size_t>(10 * length + static_cast<std::size_t>(name[at] - '0'),
                                           name.size());
        }
        result += (result.empty() ? "" : "::") + std::string(name.substr(at, length));
        at = std::min(at + length, name.size());
        if (at < name.size() && name[at] == 'I') {
            return result + "<...>(...)";
        }
    }
    return result.empty() ? std::string(name.substr(0, 256)) : result + "(...)";
}

}  // namespace

std::string demangle(const char* name) {
    constexpr std::size_t kShortName = 128;
    constexpr std::size_t kMostReferences = 24;
    constexpr std::size_t kLongestName = 8192;
    const std::string_view text_of_name(name);
    if (text_of_name.size() > kShortName &&
        (text_of_name.size() > kLongestName || references_in(text_of_name) > kMostReferences)) {
        return outline(text_of_name);
    }
    if (!text_of_name.starts_with("_Z")) {
        // A C name. Read as a mangled type, "f" would be float.
        return name;
    }
    int status = 0;
    char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
    std::string result = status == 0 && text != nullptr ? text : name;
    std::free(text);
    return result;
}

}  // namespace fragtrace::analyzer
