// Returns the last component of a path. Reports name modules and source files by it.
#pragma once

#include <string_view>

namespace fragtrace::analyzer {

inline std::string_view base_name(std::string_view path) {
    return path.substr(path.find_last_of('/') + 1);
}

}  // namespace fragtrace::analyzer
