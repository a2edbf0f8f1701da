// The prediction of a what-if row and the outcome of the run, side by side.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace fragtrace::launcher {

struct OutcomeLine {
    const char* what;
    std::string recorded;
    std::string predicted;
    std::string outcome;
    std::optional<bool> held;  // nothing: nothing certain was predicted
};

// `recorded` and `outcome` are devices of two reports, `row` is a what-if row of the first report.
std::vector<OutcomeLine> outcome_lines(const nlohmann::json& recorded,
                                       const nlohmann::json& row,
                                       const nlohmann::json& outcome);

// Prints a table to the standard error.
void print_lines(const std::vector<OutcomeLine>& lines);

}  // namespace fragtrace::launcher
