// The last component of a path: what modules and source files are called in a report.
#pragma once

#include <string_view>

namespace fragtrace::analyzer {

inline std::string_view base_name(std::string_view path) {
    return path.substr(path.find_last_of('/') + 1);
}

}  // namespace fragtrace::analyzer
