// How much memory a failed request, or a retry, would have found if the blocks of one program line
// did not exist.
#pragma once

#include "analyzer/analysis/analysis.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// The key is the label of a line. The value is the line's index in the result. Lines with the same
// index are removed together.
using LineNumbers = std::map<std::string, std::uint32_t>;

std::vector<Room> rooms_without_lines(const Analysis& analysis,
                                      const Diagnosis& diagnosis,
                                      const LineNumbers& lines);

}  // namespace fragtrace::analyzer
