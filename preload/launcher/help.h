// The text of `fragtrace --help`, and how its rows are wrapped.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fragtrace::launcher {

std::string help_text();

// Appends "  name   words words", wrapped at 100 columns. A name that is too long for its column
// gets its own line.
void add_row(std::string* text, std::string_view name, std::string_view words, std::size_t column);

}  // namespace fragtrace::launcher
