// Readable names of C++ functions.
#pragma once

#include <string>

namespace fragtrace::analyzer {

// Returns the readable form of a mangled name. If that form could become extremely long, its
// template arguments are left out.
std::string demangle(const char* name);

}  // namespace fragtrace::analyzer
