// options.def as text, for --help and for the launcher's options.
#pragma once

namespace fragtrace::launcher {

struct OptionText {
    const char* variable;
    const char* option;  // in the syntax of CLI11; empty = only a variable
    const char* value;   // the name of its value in --help; "[=...]" is optional
    const char* allowed;
    const char* description;
};

inline constexpr OptionText kOptionTexts[] = {
#define FT_OPTION(variable, setter, option, value, allowed, description) \
    {variable, option, value, allowed, description},
#include "recorder/options.def"
#undef FT_OPTION
};

}  // namespace fragtrace::launcher
