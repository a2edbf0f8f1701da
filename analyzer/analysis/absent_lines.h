// What a failed request, or a retry, would have found if a line of the program held nothing.
#pragma once

#include "analyzer/analysis/analysis.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// By label of a line, numbers below the size of what is returned. Lines of one number are absent
// together.
using LineNumbers = std::map<std::string, std::uint32_t>;

std::vector<Room> rooms_without_lines(const Analysis& analysis,
                                      const Diagnosis& diagnosis,
                                      const LineNumbers& lines);

}  // namespace fragtrace::analyzer
