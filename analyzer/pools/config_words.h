// The words and numbers of an allocator configuration string, read as PyTorch reads them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

std::vector<std::string> split_config_words(std::string_view text);
// False: there is no number, or it does not fit.
bool read_unsigned(const std::string& text, std::uint64_t& value);
bool read_double(const std::string& text, double& value);

}  // namespace fragtrace::analyzer
