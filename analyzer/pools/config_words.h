// Splits an allocator configuration string into words and numbers, in the same way as PyTorch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

std::vector<std::string> split_config_words(std::string_view text);
// Both return false if there is no number or the number is out of range.
bool read_unsigned(const std::string& text, std::uint64_t& value);
bool read_double(const std::string& text, double& value);

}  // namespace fragtrace::analyzer
