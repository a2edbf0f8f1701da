// Names of phases without their changing numbers.
#pragma once

#include <string>
#include <string_view>

namespace fragtrace::analyzer {

// Replaces each number by "#", so that "ProfilerStep#12" and "ProfilerStep#13" become one name.
std::string without_numbers(std::string_view name);

}  // namespace fragtrace::analyzer
