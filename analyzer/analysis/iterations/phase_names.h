// Names of phases that recur with a number in them.
#pragma once

#include <string>
#include <string_view>

namespace fragtrace::analyzer {

// "ProfilerStep#12" and "ProfilerStep#13" are one name: numbers become "#".
std::string without_numbers(std::string_view name);

}  // namespace fragtrace::analyzer
