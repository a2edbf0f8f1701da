// options.def as text: what --help says, and what the launcher's options are.
#pragma once

namespace fragtrace::launcher {

struct OptionText {
    const char* variable;
    const char* option;  // as CLI11 takes it; empty = only a variable
    const char* value;   // what --help calls its value; "[=...]" may be left out
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
