// The text of `fragtrace --help`.
#pragma once

#include <string>

namespace fragtrace::launcher {

std::string help_text();

}  // namespace fragtrace::launcher
