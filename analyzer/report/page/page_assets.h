// The page's script, style and HTML, built from viewer/ and linked into the program.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace fragtrace::analyzer {

std::string_view page_script();
std::string_view page_style();
std::string_view page_shell();  // <body> without its end tag
std::array<std::uint8_t, 32> page_script_sha256();
std::array<std::uint8_t, 32> page_style_sha256();

}  // namespace fragtrace::analyzer
